// Package interop asks qrmd's pod-resources socket with the clients that Kubernetes publishes.
package interop

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	podresourcesalpha "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"

	"qrm.local/test/interop/node"
)

// placing gives pods of role database exclusive CPUs and memory of the same NUMA node.
const placing = node.Machine + `builtin-plugins: [cpu, memory]
pod-ended-after: 100ms
plugins:
  cpu:
    reserved-cpus: "0-1,40-41"
    roles: {database: {numa: one, share-numa-with: []}}
  memory:
    reserved-memory: 500Mi
    roles: {database: {numa: one, share-numa-with: []}}
`

const gib = 1 << 30

// startWithPods runs a pod with CPUs and memory of its own and a sidecar, and one in the shared pool.
func startWithPods(t *testing.T) *node.Node {
	t.Helper()
	n := node.Start(t, placing)
	n.Run(node.Pod{Name: "database", Namespace: "shop",
		Labels:      map[string]string{"katalyst.kubewharf.io/pod_role": "database"},
		Annotations: map[string]string{"kubernetes.io/main-container-name": "main"},
		Containers: []node.Container{{Name: "main", MilliCpus: 20000, MemoryBytes: 40 * gib},
			{Name: "proxy", MilliCpus: 100, MemoryBytes: gib}}})
	n.Run(node.Pod{Name: "web", Namespace: "shop",
		Containers: []node.Container{{Name: "main", MilliCpus: 500, MemoryBytes: gib}}})
	return n
}

func v1Client(t *testing.T, n *node.Node) podresources.PodResourcesListerClient {
	return podresources.NewPodResourcesListerClient(node.Dial(t, n.Socket()))
}

func listedPod(t *testing.T, n *node.Node, name string) *podresources.PodResources {
	t.Helper()
	response, err := v1Client(t, n).List(node.Deadline(t), &podresources.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range response.GetPodResources() {
		if pod.GetName() == name {
			return pod
		}
	}
	t.Fatalf("pod %s is not listed in %v", name, response)
	return nil
}

func upTo(first, last int64) []int64 {
	var ids []int64
	for id := first; id <= last; id++ {
		ids = append(ids, id)
	}
	return ids
}

func TestPodResources(t *testing.T) {
	n := startWithPods(t)
	t.Run("ListShowsExclusiveCpusSortedAndMemoryByNode", func(t *testing.T) {
		database := listedPod(t, n, "database")
		if database.GetNamespace() != "shop" {
			t.Errorf("namespace is %q", database.GetNamespace())
		}
		main := database.GetContainers()[0]
		if got := main.GetCpuIds(); !slices.Equal(got, upTo(2, 21)) {
			t.Errorf("cpu_ids are %v", got)
		}
		memory := main.GetMemory()
		if len(memory) != 1 || memory[0].GetMemoryType() != "memory" || memory[0].GetSize() != 40*gib ||
			memory[0].GetTopology().GetNodes()[0].GetID() != 0 {
			t.Errorf("memory is %v", memory)
		}
	})
	t.Run("SharedCpusAreNotListedAsIds", func(t *testing.T) {
		if got := listedPod(t, n, "web").GetContainers()[0].GetCpuIds(); len(got) != 0 {
			t.Errorf("shared CPUs are listed: %v", got)
		}
	})
	t.Run("AppContainersAreInTheirOrder", func(t *testing.T) {
		var names []string
		for _, container := range listedPod(t, n, "database").GetContainers() {
			names = append(names, container.GetName())
		}
		if !slices.Equal(names, []string{"main", "proxy"}) {
			t.Errorf("containers are %v", names)
		}
	})
	t.Run("GetFindsAPod", func(t *testing.T) {
		response, err := v1Client(t, n).Get(node.Deadline(t),
			&podresources.GetPodResourcesRequest{PodName: "web", PodNamespace: "shop"})
		if err != nil || response.GetPodResources().GetName() != "web" {
			t.Fatalf("got %v: %v", response, err)
		}
	})
	t.Run("GetOfAnUnknownPodIsKubeletsError", func(t *testing.T) {
		_, err := v1Client(t, n).Get(node.Deadline(t),
			&podresources.GetPodResourcesRequest{PodName: "nobody", PodNamespace: "shop"})
		if status.Code(err) != codes.Unknown || status.Convert(err).Message() != "pod nobody in namespace shop not found" {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("AllocatableIsWhatIsNotReserved", func(t *testing.T) {
		response, err := v1Client(t, n).GetAllocatableResources(node.Deadline(t), &podresources.AllocatableResourcesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if got := response.GetCpuIds(); !slices.Equal(got, append(upTo(2, 39), upTo(42, 79)...)) {
			t.Errorf("cpu_ids are %v", got)
		}
		if got := response.GetMemory(); len(got) != 2 || got[0].GetSize() != 237182648320 || got[1].GetSize() != 237282263040 {
			t.Errorf("memory is %v", got)
		}
	})
	t.Run("FirstVersionIsServedOnTheSameSocket", func(t *testing.T) {
		client := podresourcesalpha.NewPodResourcesListerClient(node.Dial(t, n.Socket()))
		response, err := client.List(node.Deadline(t), &podresourcesalpha.ListPodResourcesRequest{})
		if err != nil || len(response.GetPodResources()) != 2 {
			t.Fatalf("got %v: %v", response, err)
		}
	})
	awaitListed := func(pods int) {
		n.Await("List without the pod", func() bool {
			response, err := v1Client(t, n).List(node.Deadline(t), &podresources.ListPodResourcesRequest{})
			return err == nil && len(response.GetPodResources()) == pods
		})
	}
	t.Run("PodsThatAreGoneAreNotListed", func(t *testing.T) {
		n.Remove("web")
		awaitListed(1)
	})
	t.Run("PodsThatHaveEndedAreNotListed", func(t *testing.T) {
		n.Finish("database")
		awaitListed(0)
	})
}

func TestMoreThanTenCallsAtOnceAreRejected(t *testing.T) {
	client := v1Client(t, node.Start(t, placing))
	const calls = 1000
	errors := make(chan error, calls)
	for range calls {
		go func() {
			_, err := client.List(node.Deadline(t), &podresources.ListPodResourcesRequest{})
			errors <- err
		}()
	}
	rejected := 0
	for range calls {
		if err := <-errors; err != nil {
			if status.Code(err) != codes.ResourceExhausted || status.Convert(err).Message() != "rejected by rate limit" {
				t.Fatalf("got %v", err)
			}
			rejected++
		}
	}
	if rejected == 0 || rejected == calls {
		t.Errorf("%d of %d calls were rejected", rejected, calls)
	}
}
