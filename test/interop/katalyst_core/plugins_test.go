// Package katalystcore runs Katalyst's own cpu and memory plugins beside qrmd, and beside Katalyst's ORM.
package katalystcore

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	resourceplugin "k8s.io/kubelet/pkg/apis/resourceplugin/v1alpha1"

	"qrm.local/test/interop/node"
)

// everythingAllowed lets the pods ask for what they want, as in Katalyst.
const everythingAllowed = "permissions: [{namespaces: [shop], allow: [everything]}]\n"

// onlyTheirs is a node whose resources only Katalyst's plugins give away.
const onlyTheirs = node.Machine + everythingAllowed + "builtin-plugins: []\n"

// agentProgram is built from directory agent.
var agentProgram string

func TestMain(m *testing.M) {
	directory, err := os.MkdirTemp("", "katalyst")
	if err != nil {
		panic(err)
	}
	agentProgram = filepath.Join(directory, "agent")
	build := exec.Command("go", "build", "-o", agentProgram, "./agent")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(directory)
	os.Exit(code)
}

// katalyst is Katalyst's agent on a node.
type katalyst struct {
	t           *testing.T
	node        *node.Node
	pods        []*v1.Pod
	connections map[string]*grpc.ClientConn
}

func (k *katalyst) dial(socket string) *grpc.ClientConn {
	k.t.Helper()
	if k.connections[socket] == nil {
		k.connections[socket] = node.Dial(k.t, socket)
	}
	return k.connections[socket]
}

// start runs the agent until the test ends.
func start(t *testing.T, n *node.Node, arguments ...string) *katalyst {
	t.Helper()
	k := &katalyst{t: t, node: n, connections: map[string]*grpc.ClientConn{}}
	k.tell()
	for _, directory := range []string{k.pluginsDir(), k.stateDir()} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Create(n.Path("katalyst.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	program := exec.Command(agentProgram, append([]string{"--plugins=" + k.pluginsDir(), "--state=" + k.stateDir(),
		"--pods=" + k.podFile()}, arguments...)...)
	program.Stdout, program.Stderr = log, log
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		program.Process.Signal(syscall.SIGTERM)
		if err := program.Wait(); err != nil {
			t.Errorf("Katalyst's agent ended badly: %v", err)
		}
		if t.Failed() {
			text, _ := os.ReadFile(n.Path("katalyst.log"))
			lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
				return !strings.HasPrefix(line, "E") && !strings.HasPrefix(line, "F") && !strings.HasPrefix(line, "panic")
			})
			t.Logf("the last errors of Katalyst's agent:\n%s", strings.Join(lines[max(0, len(lines)-20):], "\n"))
		}
	})
	return k
}

func (k *katalyst) pluginsDir() string { return k.node.PluginsDir() }
func (k *katalyst) stateDir() string   { return k.node.Path("katalyst") }
func (k *katalyst) podFile() string    { return k.node.Path("pods.json") }

// tell writes the pods where the agent reads them.
func (k *katalyst) tell() {
	k.t.Helper()
	text, err := json.Marshal(k.pods)
	if err == nil {
		err = os.WriteFile(k.podFile()+".new", text, 0o644)
	}
	if err == nil {
		err = os.Rename(k.podFile()+".new", k.podFile())
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// run starts a pod as kubelet does: known to Katalyst's agent first, then to the runtime.
func (k *katalyst) run(pod node.Pod) error {
	k.t.Helper()
	k.pods = append(k.pods, asKubeletHasIt(pod))
	k.tell()
	_, err := k.node.TryRun(pod)
	return err
}

// remove takes a pod away.
func (k *katalyst) remove(pod string) {
	k.t.Helper()
	k.pods = slices.DeleteFunc(k.pods, func(known *v1.Pod) bool { return known.Name == pod })
	k.tell()
	k.node.Remove(pod)
}

// asKubeletHasIt is the running pod as katalyst-agent reads it from kubelet.
func asKubeletHasIt(pod node.Pod) *v1.Pod {
	known := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: types.UID("uid-" + pod.Name),
			Labels: pod.Labels, Annotations: pod.Annotations},
		Status: v1.PodStatus{Phase: v1.PodRunning},
	}
	for _, container := range pod.Containers {
		amounts := v1.ResourceList{
			v1.ResourceCPU:    *resource.NewMilliQuantity(container.MilliCpus, resource.DecimalSI),
			v1.ResourceMemory: *resource.NewQuantity(container.MemoryBytes, resource.BinarySI),
		}
		known.Spec.Containers = append(known.Spec.Containers, v1.Container{Name: container.Name,
			Resources: v1.ResourceRequirements{Requests: amounts, Limits: amounts}})
	}
	return known
}

// given is what a plugin says that each container has: by "pod/container", for example "4-7".
func (k *katalyst) given(resourceName string) map[string]string {
	k.t.Helper()
	socket := filepath.Join(k.pluginsDir(), "qrm_"+resourceName+"_plugin_dynamic.sock")
	answer, err := resourceplugin.NewResourcePluginClient(k.dial(socket)).
		GetResourcesAllocation(node.Deadline(k.t), &resourceplugin.GetResourcesAllocationRequest{})
	if err != nil {
		k.t.Fatal(err)
	}
	given := map[string]string{}
	for uid, pod := range answer.GetPodResources() {
		for container, resources := range pod.GetContainerResources() {
			given[strings.TrimPrefix(uid, "uid-")+"/"+container] =
				resources.GetResourceAllocation()[resourceName].GetAllocationResult()
		}
	}
	return given
}

// listed is what a pod-resources socket lists: a line for each container and resource, and for each of its NUMA nodes;
// empty if it is asked too often.
func (k *katalyst) listed(socket string) string {
	k.t.Helper()
	list, err := podresources.NewPodResourcesListerClient(k.dial(socket)).
		List(node.Deadline(k.t), &podresources.ListPodResourcesRequest{})
	if status.Code(err) == codes.ResourceExhausted {
		return ""
	}
	if err != nil {
		k.t.Fatal(err)
	}
	var lines []string
	for _, pod := range list.GetPodResources() {
		for _, container := range pod.GetContainers() {
			for _, given := range container.GetResources() {
				of := fmt.Sprintf("%s/%s %s", pod.GetName(), container.GetName(), given.GetResourceName())
				lines = append(lines, fmt.Sprintf("%s: %v of %v", of, given.GetAggregatedQuantity(),
					given.GetOriginalAggregatedQuantity()))
				for _, zone := range given.GetTopologyAwareQuantityList() {
					lines = append(lines, fmt.Sprintf("%s on node %d: %v", of, zone.GetNode(), zone.GetResourceValue()))
				}
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// zones are what Katalyst's reporter makes of a pod-resources socket, in JSON; empty if it cannot.
func (k *katalyst) zones(socket string) string {
	report := exec.Command(agentProgram, "--zones="+socket, "--pods="+k.podFile())
	var errors strings.Builder
	report.Stderr = &errors
	text, err := report.Output()
	if err != nil {
		k.t.Logf("no zones yet: %s", errors.String()[max(0, errors.Len()-300):])
	}
	return string(text)
}

// besideQrmd is Katalyst's agent with qrmd in ORM's place.
func besideQrmd(t *testing.T) *katalyst {
	t.Helper()
	n := node.Start(t, onlyTheirs)
	k := start(t, n)
	n.Await("qrmd to know the plugins", func() bool {
		plugins, err := n.Qrmctl("plugins", "-o", "json")
		return err == nil && strings.Count(plugins, `"live": true`) == 3
	})
	return k
}

// besideORM is Katalyst's agent with ORM, and no qrmd.
func besideORM(t *testing.T) *katalyst {
	t.Helper()
	n := node.StartRuntime(t)
	k := start(t, n, "--orm="+n.Path("nri.sock"))
	n.Await("ORM to attach to the runtime", func() bool {
		log, _ := os.ReadFile(n.Path("katalyst.log"))
		return strings.Contains(string(log), "Started plugin")
	})
	return k
}

const (
	qosLevel = "katalyst.kubewharf.io/qos_level"
	memory   = "katalyst.kubewharf.io/memory_enhancement"
	main     = "kubernetes.io/main-container-name"
)

// pod is a pod of one container; annotations are key, value, key, value.
func pod(name string, cpus, gibibytes int64, annotations ...string) node.Pod {
	all := map[string]string{}
	for i := 0; i < len(annotations); i += 2 {
		all[annotations[i]] = annotations[i+1]
	}
	return node.Pod{Name: name, Namespace: "shop", Annotations: all,
		Containers: []node.Container{{Name: "app", MilliCpus: 1000 * cpus, MemoryBytes: gibibytes << 30}}}
}

const bound = `{"numa_binding": "true"}`

// withSidecar is the pod with a container before its own.
func withSidecar(pod node.Pod) node.Pod {
	sidecar := node.Container{Name: "sidecar", MilliCpus: 1000, MemoryBytes: 1 << 30}
	pod.Containers = append([]node.Container{sidecar}, pod.Containers...)
	return pod
}

func TestASidecarBeforeItsMainContainerIsPinnedOnceThatRuns(t *testing.T) {
	k := besideQrmd(t)
	if err := k.run(withSidecar(pod("db", 8, 20, qosLevel, "dedicated_cores", memory, bound, main, "app"))); err != nil {
		t.Fatal(err)
	}
	k.node.Await("the sidecar to have the CPUs of its main container", func() bool {
		cpus := k.given("cpu")["db/app"]
		return cpus != "" && k.node.Options("db").Linux.CpusetCpus == cpus
	})
}

func TestADedicatedPodIsBoundToOneNode(t *testing.T) {
	k := besideQrmd(t)
	if err := k.run(pod("db", 8, 20, qosLevel, "dedicated_cores", memory, bound)); err != nil {
		t.Fatal(err)
	}
	options := k.node.Options("db").Linux
	if options.CpusetCpus != k.given("cpu")["db/app"] || options.CpusetMems != k.given("memory")["db/app"] ||
		len(options.CpusetMems) != 1 {
		t.Errorf("the container runs with %+v, and the plugins gave %v and %v", options, k.given("cpu"), k.given("memory"))
	}
}

func TestAResizeIsAskedOfThePlugins(t *testing.T) {
	k := besideQrmd(t)
	web := pod("web", 4, 8, qosLevel, "shared_cores", memory, bound)
	if err := k.run(web); err != nil {
		t.Fatal(err)
	}
	web.Containers[0].MilliCpus, web.Containers[0].MemoryBytes = 6000, 16<<30
	k.pods = []*v1.Pod{asKubeletHasIt(web)}
	k.tell()
	if err := k.node.Resize(web); err != nil {
		t.Fatal(err)
	}
	k.node.Await("the memory plugin to have given as much", func() bool {
		return strings.Contains(k.listed(k.node.Socket()), fmt.Sprintf("web/app memory on node 0: %v", float64(16<<30)))
	})
}

// What ORM gives, qrmd gives with the same plugins. The differences are in docs/plugins.md.
func TestTheSamePodsHaveTheSameBesideORM(t *testing.T) {
	pods := []node.Pod{
		pod("web", 4, 8, qosLevel, "shared_cores"),
		pod("agent", 1, 1, qosLevel, "system_cores"),
		withSidecar(pod("db", 8, 20, qosLevel, "dedicated_cores", memory, bound, main, "app")),
		pod("bound", 4, 8, qosLevel, "shared_cores", memory, bound),
		pod("batch", 2, 4, qosLevel, "reclaimed_cores"),
		pod("whole", 10, 20, qosLevel, "dedicated_cores", memory, `{"numa_binding": "true", "numa_exclusive": "true"}`),
		pod("huge", 60, 20, qosLevel, "dedicated_cores", memory, bound),
		pod("plain", 2, 2),
	}
	qrmd, orm := besideQrmd(t), besideORM(t)
	play := func(pod node.Pod) {
		ours, theirs := qrmd.run(pod), orm.run(pod)
		if (ours == nil) != (theirs == nil) {
			t.Errorf("pod %s: qrmd says %v, ORM %v", pod.Name, ours, theirs)
		}
	}
	for _, pod := range pods {
		play(pod)
	}
	socket := filepath.Join(orm.stateDir(), "pod-resources.sock")
	compare := func() {
		for _, name := range []string{"cpu", "memory"} {
			same(t, "of the "+name+" plugin", qrmd, func() (string, string) {
				return fmt.Sprint(qrmd.given(name)), fmt.Sprint(orm.given(name))
			})
		}
		same(t, "in List", qrmd, func() (string, string) { return qrmd.listed(qrmd.node.Socket()), orm.listed(socket) })
		same(t, "in Katalyst's zones", qrmd, func() (string, string) { return qrmd.zones(qrmd.node.Socket()), orm.zones(socket) })
	}
	compare()
	if zones := qrmd.zones(qrmd.node.Socket()); !strings.Contains(zones, `"name": "eth1"`) {
		t.Errorf("the NICs of the network plugin are not in the zones:\n%s", zones)
	}
	for name := range qrmd.given("cpu") {
		if name, isApp := strings.CutSuffix(name, "/app"); isApp && name != "db" {
			qrmd.node.Await("container app of "+name+" to have what the plugins gave", func() bool {
				has := qrmd.node.Options(name).Linux
				return has.CpusetCpus == qrmd.given("cpu")[name+"/app"] && has.CpusetMems == qrmd.given("memory")[name+"/app"]
			})
		}
	}
	for _, k := range []*katalyst{qrmd, orm} {
		k.remove("db")
	}
	play(pod("db2", 12, 20, qosLevel, "dedicated_cores", memory, bound))
	compare()
	late := pod("late", 1, 1, qosLevel, "system_cores")
	if ours, theirs := qrmd.run(late), orm.run(late); ours == nil || theirs != nil {
		t.Errorf("a system_cores pod beside a dedicated pod: qrmd says %v, ORM %v", ours, theirs)
	}
}

// same fails the test unless both soon say the same: each asks its plugins now and then.
func same(t *testing.T, where string, k *katalyst, said func() (ours, theirs string)) {
	t.Helper()
	var ours, theirs string
	t.Cleanup(func() {
		if ours != theirs {
			t.Logf("%s, with qrmd:\n%s\nwith ORM:\n%s", where, ours, theirs)
		}
	})
	k.node.Await("both to say the same "+where, func() bool {
		ours, theirs = said()
		return ours == theirs && ours != ""
	})
}
