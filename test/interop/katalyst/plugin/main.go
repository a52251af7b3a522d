// Command plugin is a resource plugin against Katalyst's API, for benchmarks: it gives every container the same, and
// knows nothing of qrm's extensions. It is started as qrm-plugin-cpu, qrm-plugin-memory or qrm-plugin-nic, with the flags
// of those.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	resourceplugin "k8s.io/kubelet/pkg/apis/resourceplugin/v1alpha1"
)

// kind is what a plugin of one name serves, and gives.
type kind struct {
	resource string
	given    *resourceplugin.ResourceAllocationInfo
}

var kinds = map[string]kind{
	"cpu": {"cpu", &resourceplugin.ResourceAllocationInfo{
		OciPropertyName: "CpusetCpus", AllocationResult: "0-15,40-55", IsScalarResource: true, AllocatedQuantity: 0.5}},
	"memory": {"memory", &resourceplugin.ResourceAllocationInfo{
		OciPropertyName: "CpusetMems", AllocationResult: "0-1", IsScalarResource: true, AllocatedQuantity: 1 << 20}},
	"nic": {"NIC", &resourceplugin.ResourceAllocationInfo{
		IsScalarResource: true, AllocatedQuantity: 1,
		Envs:        map[string]string{"NIC": "eth0", "NIC_ADDRESS": "2001:db8::1"},
		Annotations: map[string]string{"example.com/nic": "eth0", "example.com/zone": "a"}}},
}

type plugin struct {
	resourceplugin.UnimplementedResourcePluginServer
	kind

	mutex sync.Mutex
	held  map[string]*resourceplugin.ContainerResources // by pod UID
}

func (p *plugin) allocation() *resourceplugin.ResourceAllocation {
	return &resourceplugin.ResourceAllocation{
		ResourceAllocation: map[string]*resourceplugin.ResourceAllocationInfo{p.resource: p.given}}
}

func (p *plugin) GetResourcePluginOptions(context.Context, *resourceplugin.Empty) (*resourceplugin.ResourcePluginOptions, error) {
	return &resourceplugin.ResourcePluginOptions{NeedReconcile: true}, nil
}

func (p *plugin) Allocate(_ context.Context, request *resourceplugin.ResourceRequest) (*resourceplugin.ResourceAllocationResponse, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	pod := p.held[request.GetPodUid()]
	if pod == nil {
		pod = &resourceplugin.ContainerResources{ContainerResources: map[string]*resourceplugin.ResourceAllocation{}}
		p.held[request.GetPodUid()] = pod
	}
	pod.ContainerResources[request.GetContainerName()] = p.allocation()
	return &resourceplugin.ResourceAllocationResponse{PodUid: request.GetPodUid(), ContainerName: request.GetContainerName(),
		ResourceName: p.resource, AllocationResult: p.allocation()}, nil
}

func (p *plugin) RemovePod(_ context.Context, request *resourceplugin.RemovePodRequest) (*resourceplugin.RemovePodResponse, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.held, request.GetPodUid())
	return &resourceplugin.RemovePodResponse{}, nil
}

// GetResourcesAllocation returns all allocations, in the order of a map: another order each time.
func (p *plugin) GetResourcesAllocation(context.Context, *resourceplugin.GetResourcesAllocationRequest) (*resourceplugin.GetResourcesAllocationResponse, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	response := &resourceplugin.GetResourcesAllocationResponse{PodResources: map[string]*resourceplugin.ContainerResources{}}
	for uid, pod := range p.held {
		response.PodResources[uid] = pod
	}
	return response, nil
}

func (p *plugin) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.ResourcePlugin, Name: p.resource, SupportedVersions: resourceplugin.SupportedVersions[:]}, nil
}

func (p *plugin) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !status.GetPluginRegistered() {
		log.Printf("not registered: %s", status.GetError())
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func main() {
	directory := flag.String("plugins-registry-dir", "", "where the socket is made")
	flag.String("config", "", "ignored: what is given does not depend on it")
	flag.String("state-dir", "", "ignored: nothing is kept")
	flag.Parse()
	name := strings.TrimPrefix(filepath.Base(os.Args[0]), "qrm-plugin-")
	serves, known := kinds[name]
	if !known || *directory == "" {
		log.Fatalf("cannot serve %q: start it as qrm-plugin-cpu, -memory or -nic, with --plugins-registry-dir", name)
	}
	listener, err := net.Listen("unix", filepath.Join(*directory, name+".sock"))
	if err != nil {
		log.Fatal(err)
	}
	p := &plugin{kind: serves, held: map[string]*resourceplugin.ContainerResources{}}
	server := grpc.NewServer()
	resourceplugin.RegisterResourcePluginServer(server, p)
	registration.RegisterRegistrationServer(server, p)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-stop
		server.Stop()
	}()
	if err := server.Serve(listener); err != nil {
		log.Fatal(err)
	}
}
