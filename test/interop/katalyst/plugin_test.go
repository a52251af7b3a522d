// Package katalyst registers a plugin written against Katalyst's API with qrmd, and asks for what it gave with
// Katalyst's client.
package katalyst

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	resourceplugin "k8s.io/kubelet/pkg/apis/resourceplugin/v1alpha1"

	"qrm.local/test/interop/node"
)

const resourceName = "cpu"

// pinningPlugin gives every container the same CPUs, until the test names others.
type pinningPlugin struct {
	resourceplugin.UnimplementedResourcePluginServer

	mutex     sync.Mutex
	cpus      string
	hints     map[string]*resourceplugin.ListOfTopologyHints
	requests  []*resourceplugin.ResourceRequest // of Allocate, in the order they came
	allocated map[string]*resourceplugin.ContainerResources
	removed   []string
	statuses  []*registration.RegistrationStatus
}

func newPlugin(cpus string) *pinningPlugin {
	return &pinningPlugin{cpus: cpus, allocated: map[string]*resourceplugin.ContainerResources{}}
}

func pluginOptions() *resourceplugin.ResourcePluginOptions {
	return &resourceplugin.ResourcePluginOptions{WithTopologyAlignment: true, NeedReconcile: true}
}

// allocation is what a container gets; the mutex is held.
func (p *pinningPlugin) allocation() *resourceplugin.ResourceAllocation {
	return &resourceplugin.ResourceAllocation{
		ResourceAllocation: map[string]*resourceplugin.ResourceAllocationInfo{resourceName: {
			OciPropertyName:   "CpusetCpus",
			IsScalarResource:  true,
			AllocatedQuantity: 4,
			AllocationResult:  p.cpus,
			Envs:              map[string]string{"PINNED_BY": "go"},
			Annotations:       map[string]string{"qrm.test/pinned": "yes"},
		}}}
}

func (p *pinningPlugin) GetResourcePluginOptions(context.Context, *resourceplugin.Empty) (*resourceplugin.ResourcePluginOptions, error) {
	return pluginOptions(), nil
}

func (p *pinningPlugin) GetTopologyHints(_ context.Context, request *resourceplugin.ResourceRequest) (*resourceplugin.ResourceHintsResponse, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return &resourceplugin.ResourceHintsResponse{PodUid: request.GetPodUid(), ContainerName: request.GetContainerName(),
		ResourceName: resourceName, ResourceHints: p.hints}, nil
}

func (p *pinningPlugin) Allocate(_ context.Context, request *resourceplugin.ResourceRequest) (*resourceplugin.ResourceAllocationResponse, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.requests = append(p.requests, request)
	pod := p.allocated[request.GetPodUid()]
	if pod == nil {
		pod = &resourceplugin.ContainerResources{ContainerResources: map[string]*resourceplugin.ResourceAllocation{}}
		p.allocated[request.GetPodUid()] = pod
	}
	pod.ContainerResources[request.GetContainerName()] = p.allocation()
	return &resourceplugin.ResourceAllocationResponse{PodUid: request.GetPodUid(), ContainerName: request.GetContainerName(),
		ResourceName: resourceName, AllocationResult: p.allocation()}, nil
}

func (p *pinningPlugin) RemovePod(_ context.Context, request *resourceplugin.RemovePodRequest) (*resourceplugin.RemovePodResponse, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.allocated, request.GetPodUid())
	p.removed = append(p.removed, request.GetPodUid())
	return &resourceplugin.RemovePodResponse{}, nil
}

// GetResourcesAllocation answers with what its containers should have now.
func (p *pinningPlugin) GetResourcesAllocation(context.Context, *resourceplugin.GetResourcesAllocationRequest) (*resourceplugin.GetResourcesAllocationResponse, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	response := &resourceplugin.GetResourcesAllocationResponse{PodResources: map[string]*resourceplugin.ContainerResources{}}
	for uid, pod := range p.allocated {
		containers := map[string]*resourceplugin.ResourceAllocation{}
		for container := range pod.GetContainerResources() {
			containers[container] = p.allocation()
		}
		response.PodResources[uid] = &resourceplugin.ContainerResources{ContainerResources: containers}
	}
	return response, nil
}

func (p *pinningPlugin) GetTopologyAwareResources(_ context.Context, request *resourceplugin.GetTopologyAwareResourcesRequest) (*resourceplugin.GetTopologyAwareResourcesResponse, error) {
	quantities := []*resourceplugin.TopologyAwareQuantity{{ResourceValue: 4, Node: 1, Name: "socket-1", Type: "cpu"}}
	return &resourceplugin.GetTopologyAwareResourcesResponse{
		PodUid: request.GetPodUid(),
		ContainerTopologyAwareResources: &resourceplugin.ContainerTopologyAwareResources{
			ContainerName: request.GetContainerName(),
			AllocatedResources: map[string]*resourceplugin.TopologyAwareResource{resourceName: {
				IsScalarResource:                  true,
				AggregatedQuantity:                4,
				OriginalAggregatedQuantity:        4,
				TopologyAwareQuantityList:         quantities,
				OriginalTopologyAwareQuantityList: quantities,
			}}}}, nil
}

func (p *pinningPlugin) GetTopologyAwareAllocatableResources(context.Context, *resourceplugin.GetTopologyAwareAllocatableResourcesRequest) (*resourceplugin.GetTopologyAwareAllocatableResourcesResponse, error) {
	return &resourceplugin.GetTopologyAwareAllocatableResourcesResponse{
		AllocatableResources: map[string]*resourceplugin.AllocatableTopologyAwareResource{
			resourceName: {IsScalarResource: true, AggregatedAllocatableQuantity: 80, AggregatedCapacityQuantity: 80}}}, nil
}

// GetInfo and NotifyRegistrationStatus are the watched directory's.
func (p *pinningPlugin) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.ResourcePlugin, Name: resourceName, SupportedVersions: resourceplugin.SupportedVersions[:]}, nil
}

func (p *pinningPlugin) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.statuses = append(p.statuses, status)
	return &registration.RegistrationStatusResponse{}, nil
}

// serve listens on a socket until the test ends.
func (p *pinningPlugin) serve(t *testing.T, socket string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	resourceplugin.RegisterResourcePluginServer(server, p)
	registration.RegisterRegistrationServer(server, p)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
}

// registerDirectly calls Register on kubelet.sock, as Katalyst's plugins do.
func (p *pinningPlugin) registerDirectly(t *testing.T, n *node.Node) {
	t.Helper()
	p.serve(t, filepath.Join(n.RegistrationDir(), "go_cpu.sock"))
	client := resourceplugin.NewRegistrationClient(node.Dial(t, filepath.Join(n.RegistrationDir(), "kubelet.sock")))
	if _, err := client.Register(node.Deadline(t), &resourceplugin.RegisterRequest{
		Version: resourceplugin.Version, Endpoint: "go_cpu.sock", ResourceName: resourceName, Options: pluginOptions()}); err != nil {
		t.Fatal(err)
	}
	awaitLive(n)
}

// registerByDirectory puts the socket where qrmd finds it.
func (p *pinningPlugin) registerByDirectory(t *testing.T, n *node.Node) {
	t.Helper()
	p.serve(t, filepath.Join(n.PluginsDir(), "go_cpu.sock"))
	awaitLive(n)
	n.Await("the plugin to be told", func() bool {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		return slices.ContainsFunc(p.statuses, func(status *registration.RegistrationStatus) bool { return status.PluginRegistered })
	})
}

func awaitLive(n *node.Node) {
	n.Await("the plugin to be live", func() bool {
		plugins, err := n.Qrmctl("plugins", "-o", "json")
		return err == nil && strings.Contains(plugins, `"live": true`)
	})
}

func (p *pinningPlugin) moveTo(cpus string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.cpus = cpus
}

func (p *pinningPlugin) requestsSoFar() []*resourceplugin.ResourceRequest {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return slices.Clone(p.requests)
}

func (p *pinningPlugin) wasToldOfRemoval(uid string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return slices.Contains(p.removed, uid)
}

// onlyThePlugin is a node whose CPUs no other plugin gives away.
const onlyThePlugin = node.Machine + "builtin-plugins: []\n"

// The whole life of a plugin's container, for a plugin that registers by either path.
func playContainerLife(t *testing.T, register func(*pinningPlugin, *testing.T, *node.Node)) {
	n := node.Start(t, onlyThePlugin)
	plugin := newPlugin("40-43")
	register(plugin, t, n)

	n.Run(node.Pod{Name: "pinned", Namespace: "shop", Labels: map[string]string{"app": "web"},
		Containers: []node.Container{{Name: "main", MilliCpus: 4000, MemoryBytes: 1 << 30}}})
	requests := plugin.requestsSoFar()
	if len(requests) != 1 || requests[0].GetPodNamespace() != "shop" || requests[0].GetContainerName() != "main" ||
		requests[0].GetResourceRequests()[resourceName] != 4 || requests[0].GetLabels()["app"] != "web" {
		t.Errorf("the plugin was asked %v", requests)
	}
	options := n.Options("pinned")
	if options.Linux.CpusetCpus != "40-43" || options.Envs["PINNED_BY"] != "go" || options.Annotations["qrm.test/pinned"] != "yes" {
		t.Errorf("the container was created with %+v", options)
	}
	expectListed(t, n)

	plugin.moveTo("44-47") // reaches the runtime as UpdateContainerResources
	n.Await("the reconcile", func() bool { return n.Options("pinned").Linux.CpusetCpus == "44-47" })

	n.Remove("pinned")
	n.Await("RemovePod", func() bool { return plugin.wasToldOfRemoval("uid-pinned") })
}

// listed is what the extended List reports about the CPUs of pod pinned.
func listed(t *testing.T, n *node.Node) *podresources.TopologyAwareResource {
	t.Helper()
	client := podresources.NewPodResourcesListerClient(node.Dial(t, n.Socket()))
	response, err := client.List(node.Deadline(t), &podresources.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range response.GetPodResources() {
		for _, resource := range pod.GetContainers()[0].GetResources() {
			if pod.GetName() == "pinned" && resource.GetResourceName() == resourceName {
				return resource
			}
		}
	}
	t.Fatalf("the pod's CPUs are not listed in %v", response)
	return nil
}

// expectListed fails the test unless List reports four CPUs, and soon on the plugin's NUMA node.
func expectListed(t *testing.T, n *node.Node) {
	t.Helper()
	if resource := listed(t, n); resource.GetAggregatedQuantity() != 4 {
		t.Errorf("List tells of %v", resource)
	}
	n.Await("the plugin's own word in List", func() bool {
		byNode := listed(t, n).GetTopologyAwareQuantityList()
		return len(byNode) == 1 && byNode[0].GetNode() == 1 && byNode[0].GetResourceValue() == 4 &&
			byNode[0].GetName() == "socket-1" && byNode[0].GetType() == "cpu"
	})
}

func TestPluginThatCallsRegisterIsAskedReconciledAndListed(t *testing.T) {
	playContainerLife(t, (*pinningPlugin).registerDirectly)
}

func TestPluginInTheWatchedDirectoryIsAskedReconciledAndListed(t *testing.T) {
	playContainerLife(t, (*pinningPlugin).registerByDirectory)
}

func TestPluginIsAskedAgainAfterTheDaemonRestarted(t *testing.T) {
	n := node.Start(t, onlyThePlugin)
	plugin := newPlugin("40-43")
	plugin.registerByDirectory(t, n)
	n.Run(node.Pod{Name: "pinned", Namespace: "shop",
		Containers: []node.Container{{Name: "main", MilliCpus: 4000}}})
	n.StopDaemon()
	n.StartDaemon()
	awaitLive(n)
	expectListed(t, n)
	plugin.moveTo("44-47")
	n.Await("the reconcile", func() bool { return n.Options("pinned").Linux.CpusetCpus == "44-47" })
}

func hint(preferred bool, nodes ...uint64) *resourceplugin.TopologyHint {
	return &resourceplugin.TopologyHint{Nodes: nodes, Preferred: preferred}
}

func TestKatalystsClientReadsWhatKubeletsApiDoesNotHave(t *testing.T) {
	n := node.Start(t, onlyThePlugin)
	newPlugin("40-43").registerDirectly(t, n)
	n.Run(node.Pod{Name: "pinned", Namespace: "shop",
		Labels:      map[string]string{resourceplugin.PodRoleLabelKey: "database"},
		Annotations: map[string]string{resourceplugin.PodTypeAnnotationKey: "online"},
		Containers:  []node.Container{{Name: "main", MilliCpus: 4000}}})
	client := podresources.NewPodResourcesListerClient(node.Dial(t, n.Socket()))
	list, err := client.List(node.Deadline(t), &podresources.ListPodResourcesRequest{})
	if err != nil || len(list.GetPodResources()) != 1 {
		t.Fatalf("got %v: %v", list, err)
	}
	pod := list.GetPodResources()[0]
	if pod.GetPodRole() != "database" || pod.GetPodType() != "online" ||
		pod.GetLabels()[resourceplugin.PodRoleLabelKey] != "database" ||
		pod.GetAnnotations()[resourceplugin.PodTypeAnnotationKey] != "online" {
		t.Errorf("List tells of %v", pod)
	}
	n.Await("what the plugin can give out", func() bool {
		allocatable, err := client.GetAllocatableResources(node.Deadline(t), &podresources.AllocatableResourcesRequest{})
		return err == nil && len(allocatable.GetResources()) == 1 &&
			allocatable.GetResources()[0].GetResourceName() == resourceName &&
			allocatable.GetResources()[0].GetAggregatedCapacityQuantity() == 80
	})
}

// A hint list that is absent leaves the choice open, and an empty list rejects every node: Go
// plugins distinguish them by nil.
func TestAbsentAndEmptyHintsAreDistinguished(t *testing.T) {
	n := node.Start(t, onlyThePlugin)
	plugin := newPlugin("40-43")
	plugin.registerDirectly(t, n)
	pod := node.Pod{Name: "absent", Namespace: "shop", Containers: []node.Container{{Name: "main", MilliCpus: 4000}}}

	plugin.hints = map[string]*resourceplugin.ListOfTopologyHints{resourceName: nil}
	if _, err := n.TryRun(pod); err != nil {
		t.Errorf("no preference was taken for a refusal: %v", err)
	}
	pod.Name, plugin.hints = "placed", map[string]*resourceplugin.ListOfTopologyHints{
		resourceName: {Hints: []*resourceplugin.TopologyHint{hint(true, 1)}}}
	n.Run(pod)
	requests := plugin.requestsSoFar()
	if chosen := requests[len(requests)-1].GetHint(); !slices.Equal(chosen.GetNodes(), []uint64{1}) || !chosen.GetPreferred() {
		t.Errorf("Allocate came with hint %v", chosen)
	}
	pod.Name, plugin.hints = "refused", map[string]*resourceplugin.ListOfTopologyHints{resourceName: {}}
	if _, err := n.TryRun(pod); err == nil || !strings.Contains(err.Error(), "cpu") {
		t.Errorf("a pod that fits no node was admitted: %v", err)
	}
}

func TestInvalidRegistrationsAreRejected(t *testing.T) {
	n := node.Start(t, onlyThePlugin)
	client := resourceplugin.NewRegistrationClient(node.Dial(t, filepath.Join(n.RegistrationDir(), "kubelet.sock")))
	for name, request := range map[string]*resourceplugin.RegisterRequest{
		"version":  {Version: "v9", Endpoint: "go.sock", ResourceName: "cpu"},
		"resource": {Version: "v1alpha1", Endpoint: "go.sock", ResourceName: ""},
		"endpoint": {Version: "v1alpha1", Endpoint: "../go.sock", ResourceName: "cpu"},
	} {
		if _, err := client.Register(node.Deadline(t), request); err == nil {
			t.Errorf("a registration with a bad %s was taken", name)
		} else if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a registration with a bad %s was not answered", name)
		}
	}
}
