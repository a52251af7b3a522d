// Package interop asks qrm's sockets with the clients that Kubernetes publishes.
package interop

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	podresourcesalpha "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
)

// sampleNode is a process that serves two pods on a socket.
type sampleNode struct {
	socket string
	pid    int
}

func serve(t *testing.T) sampleNode {
	t.Helper()
	binary := os.Getenv("QRM_INTEROP_NODE")
	if binary == "" {
		t.Fatal("QRM_INTEROP_NODE names no binary; run scripts/interop.sh")
	}
	dir, err := os.MkdirTemp("/tmp", "qrm-interop")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "pod-resources", "kubelet.sock")
	server := exec.Command(binary, socket)
	server.Stderr = os.Stderr
	input, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		input.Close()
		if err := server.Wait(); err != nil {
			t.Errorf("the node ended badly: %v", err)
		}
	})
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || line != "serving\n" {
		t.Fatalf("the node said %q: %v", line, err)
	}
	return sampleNode{socket: socket, pid: server.Process.Pid}
}

// dial connects as the published clients do: insecure, over the unix socket, 16 MiB.
func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

func connect(t *testing.T) *grpc.ClientConn {
	t.Helper()
	return dial(t, serve(t).socket)
}

func withDeadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func listedPod(t *testing.T, pods []*podresources.PodResources, name string) *podresources.PodResources {
	t.Helper()
	for _, pod := range pods {
		if pod.GetName() == name {
			return pod
		}
	}
	t.Fatalf("pod %s is not listed in %v", name, pods)
	return nil
}

func TestListShowsExclusiveCpusSortedAndMemoryByNode(t *testing.T) {
	client := podresources.NewPodResourcesListerClient(connect(t))
	response, err := client.List(withDeadline(t), &podresources.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	database := listedPod(t, response.GetPodResources(), "database")
	if database.GetNamespace() != "shop" {
		t.Errorf("namespace is %q", database.GetNamespace())
	}
	main := database.GetContainers()[1]
	if got := main.GetCpuIds(); !slices.Equal(got, []int64{2, 3, 5}) {
		t.Errorf("cpu_ids are %v", got)
	}
	memory := main.GetMemory()
	if len(memory) != 2 || memory[1].GetMemoryType() != "memory" || memory[1].GetSize() != 2<<30 ||
		memory[1].GetTopology().GetNodes()[0].GetID() != 1 {
		t.Errorf("memory is %v", memory)
	}
	if got := listedPod(t, response.GetPodResources(), "web").GetContainers()[0].GetCpuIds(); len(got) != 0 {
		t.Errorf("shared CPUs are listed: %v", got)
	}
}

func TestListPutsSidecarsFirstAndLeavesInitContainersOut(t *testing.T) {
	client := podresources.NewPodResourcesListerClient(connect(t))
	response, err := client.List(withDeadline(t), &podresources.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, container := range listedPod(t, response.GetPodResources(), "database").GetContainers() {
		names = append(names, container.GetName())
	}
	if !slices.Equal(names, []string{"proxy", "main"}) {
		t.Errorf("containers are %v", names)
	}
}

func TestGetFindsAPod(t *testing.T) {
	client := podresources.NewPodResourcesListerClient(connect(t))
	response, err := client.Get(withDeadline(t),
		&podresources.GetPodResourcesRequest{PodName: "web", PodNamespace: "shop"})
	if err != nil || response.GetPodResources().GetName() != "web" {
		t.Fatalf("got %v: %v", response, err)
	}
}

func TestGetOfAnUnknownPodIsKubeletsError(t *testing.T) {
	client := podresources.NewPodResourcesListerClient(connect(t))
	_, err := client.Get(withDeadline(t),
		&podresources.GetPodResourcesRequest{PodName: "nobody", PodNamespace: "shop"})
	if status.Code(err) != codes.Unknown || status.Convert(err).Message() != "pod nobody in namespace shop not found" {
		t.Fatalf("got %v", err)
	}
}

func TestGetAllocatableResourcesTellsCpusAndMemory(t *testing.T) {
	client := podresources.NewPodResourcesListerClient(connect(t))
	response, err := client.GetAllocatableResources(withDeadline(t), &podresources.AllocatableResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got := response.GetCpuIds(); !slices.Equal(got, []int64{1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("cpu_ids are %v", got)
	}
	if got := response.GetMemory(); len(got) != 2 || got[1].GetSize() != 2048 {
		t.Errorf("memory is %v", got)
	}
}

func TestFirstVersionIsServedOnTheSameSocket(t *testing.T) {
	client := podresourcesalpha.NewPodResourcesListerClient(connect(t))
	response, err := client.List(withDeadline(t), &podresourcesalpha.ListPodResourcesRequest{})
	if err != nil || len(response.GetPodResources()) != 2 {
		t.Fatalf("got %v: %v", response, err)
	}
}

func TestMoreThanTenCallsAtOnceAreRejected(t *testing.T) {
	client := podresources.NewPodResourcesListerClient(connect(t))
	const calls = 1000
	errors := make(chan error, calls)
	for range calls {
		go func() {
			_, err := client.List(withDeadline(t), &podresources.ListPodResourcesRequest{})
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
