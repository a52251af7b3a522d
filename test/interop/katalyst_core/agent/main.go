// Command agent runs Katalyst's own cpu, memory and network plugins, and on request its ORM, as katalyst-agent does. With
// --zones it prints what Katalyst's reporter makes of the answers of a pod-resources socket, and ends.
//
// Doubled are its surroundings: the machine is that of package node with a NIC at each NUMA node, the pods come from a
// file, and there is no API server: its clients are client-go's fakes, and nothing is configured by objects.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	cadvisor "github.com/google/cadvisor/info/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	nodeapis "github.com/kubewharf/katalyst-api/pkg/apis/node/v1alpha1"
	apiconsts "github.com/kubewharf/katalyst-api/pkg/consts"
	base "github.com/kubewharf/katalyst-core/cmd/base"
	katalystagent "github.com/kubewharf/katalyst-core/cmd/katalyst-agent/app/agent"
	"github.com/kubewharf/katalyst-core/cmd/katalyst-agent/app/agent/qrm"
	"github.com/kubewharf/katalyst-core/cmd/katalyst-agent/app/options"
	"github.com/kubewharf/katalyst-core/pkg/agent/orm"
	_ "github.com/kubewharf/katalyst-core/pkg/agent/qrm-plugins/cpu"
	_ "github.com/kubewharf/katalyst-core/pkg/agent/qrm-plugins/memory"
	_ "github.com/kubewharf/katalyst-core/pkg/agent/qrm-plugins/network"
	"github.com/kubewharf/katalyst-core/pkg/agent/resourcemanager/fetcher/kubelet/topology"
	"github.com/kubewharf/katalyst-core/pkg/config"
	"github.com/kubewharf/katalyst-core/pkg/config/agent/qrm/statedirectory"
	"github.com/kubewharf/katalyst-core/pkg/consts"
	"github.com/kubewharf/katalyst-core/pkg/metaserver"
	metaagent "github.com/kubewharf/katalyst-core/pkg/metaserver/agent"
	"github.com/kubewharf/katalyst-core/pkg/metaserver/agent/metric"
	"github.com/kubewharf/katalyst-core/pkg/metaserver/agent/pod"
	"github.com/kubewharf/katalyst-core/pkg/metaserver/external"
	"github.com/kubewharf/katalyst-core/pkg/metaserver/kcc"
	"github.com/kubewharf/katalyst-core/pkg/metaserver/npd"
	"github.com/kubewharf/katalyst-core/pkg/metaserver/resourcepackage"
	"github.com/kubewharf/katalyst-core/pkg/metaserver/spd"
	"github.com/kubewharf/katalyst-core/pkg/metrics"
	"github.com/kubewharf/katalyst-core/pkg/util/kubelet/podresources"
	"github.com/kubewharf/katalyst-core/pkg/util/machine"
)

// nodeMemory is what each NUMA node has, in bytes.
const nodeMemory = 220 << 30

func main() {
	plugins := flag.String("plugins", "", "directory in which the plugins serve")
	state := flag.String("state", "", "directory of the plugins' checkpoints")
	pods := flag.String("pods", "", "file with a JSON list of the node's pods")
	runtime := flag.String("orm", "", "run ORM on this NRI socket")
	zones := flag.String("zones", "", "print the zones that this pod-resources socket reports")
	klog.InitFlags(nil)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	conf, err := options.NewOptions().Config()
	if err != nil {
		klog.Exit(err)
	}
	if *zones != "" {
		err = printZones(ctx, conf, metaServerOf(podFile(*pods)), *zones)
	} else {
		err = run(ctx, conf, *plugins, *state, podFile(*pods), *runtime)
	}
	if err != nil {
		klog.Exit(err)
	}
}

func run(ctx context.Context, conf *config.Configuration, plugins, state string, pods podFile, runtime string) error {
	conf.QRMPluginSocketDirs = []string{plugins}
	*conf.StateDirectoryConfiguration = statedirectory.StateDirectoryConfiguration{
		StateFileDirectory: state, InMemoryStateFileDirectory: filepath.Join(state, "in-memory")}
	generic, err := base.GenerateFakeGenericContext()
	if err != nil {
		return err
	}
	surroundings := &katalystagent.GenericContext{GenericContext: generic, MetaServer: metaServerOf(pods)}
	for name, create := range map[string]katalystagent.InitFunc{
		qrm.QRMPluginNameCPU: qrm.InitQRMCPUPlugins, qrm.QRMPluginNameMemory: qrm.InitQRMMemoryPlugins,
		qrm.QRMPluginNameNetwork: qrm.InitQRMNetworkPlugins,
	} {
		_, plugin, err := create(surroundings, conf, nil, name)
		if err != nil {
			return fmt.Errorf("cannot create %s: %w", name, err)
		}
		go plugin.Run(ctx)
	}
	if runtime != "" {
		if err := runORM(ctx, conf, surroundings.MetaServer, plugins, state, runtime); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// metaServerOf is what katalyst-agent knows of the node.
func metaServerOf(pods podFile) *metaserver.MetaServer {
	return &metaserver.MetaServer{
		MetaAgent: &metaagent.MetaAgent{
			PodFetcher:          pods,
			MetricsFetcher:      metric.NewFakeMetricsFetcher(metrics.DummyMetrics{}),
			KatalystMachineInfo: machineOf(2, 20),
		},
		ConfigurationManager:    &kcc.DummyConfigurationManager{},
		ServiceProfilingManager: spd.NewDummyServiceProfilingManager(nil),
		ResourcePackageManager:  resourcepackage.NewResourcePackageManager(npd.NewDummyNPDFetcher()),
		ExternalManager:         external.InitExternalManager(pods),
		NPDFetcher:              npd.NewDummyNPDFetcher(),
	}
}

// machineOf is a machine of packages with one NUMA node, a NIC, and two threads a core, which are neighbours by number, as
// those of package node.
func machineOf(packages, cores int) *machine.KatalystMachineInfo {
	cpus := &machine.CPUTopology{
		NumCPUs: 2 * packages * cores, NumCores: packages * cores, NumSockets: packages, NumNUMANodes: packages,
		NUMANodeIDToSocketID: map[int]int{}, NUMAToCPUs: machine.NUMANodeInfo{}, CPUDetails: machine.CPUDetails{},
	}
	memory := &machine.MemoryTopology{MemoryDetails: machine.MemoryDetails{}, PageSize: 4096}
	info := &cadvisor.MachineInfo{NumCores: cpus.NumCPUs}
	for cpu := range cpus.NumCPUs {
		id := cpu / (2 * cores)
		cpus.CPUDetails[cpu] = machine.CPUTopoInfo{NUMANodeID: id, SocketID: id, CoreID: cpu / 2, L3CacheID: id}
	}
	network := &machine.ExtraNetworkInfo{}
	sockets := &machine.AllocatableInterfaceSocketInfo{IfIndex2Sockets: map[int][]int{}, Socket2IfIndexes: map[int][]int{}}
	for id := range packages {
		cells := cadvisor.Node{Id: id, Memory: nodeMemory}
		for core := id * cores; core < (id+1)*cores; core++ {
			cells.Cores = append(cells.Cores, cadvisor.Core{Id: core, Threads: []int{2 * core, 2*core + 1}, SocketID: id})
		}
		info.Topology = append(info.Topology, cells)
		address := net.IPv4(192, 0, 2, byte(1+id))
		network.Interface = append(network.Interface, machine.InterfaceInfo{Name: fmt.Sprintf("eth%d", id), IfIndex: 1 + id,
			Speed: 25000, NumaNode: id, Enable: true, Addr: &machine.IfaceAddr{IPV4: []*net.IP{&address}}})
		sockets.IfIndex2Sockets[1+id], sockets.Socket2IfIndexes[id] = []int{id}, []int{1 + id}
		cpus.NUMANodeIDToSocketID[id] = id
		cpus.NUMAToCPUs[id] = cpus.CPUDetails.CPUsInNUMANodes(id)
		memory.MemoryDetails[id] = nodeMemory
		info.MemoryCapacity += nodeMemory
	}
	extra, err := machine.GenerateDummyExtraTopology(packages)
	if err != nil {
		klog.Exit(err)
	}
	extra.AllocatableInterfaceSocketInfo = sockets
	return &machine.KatalystMachineInfo{MachineInfo: info, CPUTopology: cpus, MemoryTopology: memory,
		ExtraCPUInfo: &machine.ExtraCPUInfo{}, ExtraNetworkInfo: network, ExtraTopologyInfo: extra}
}

// runORM runs ORM in its NRI mode, as a plugin of the runtime, with its files beside state, and tells it of the plugins.
func runORM(ctx context.Context, conf *config.Configuration, metaServer *metaserver.MetaServer,
	plugins, state, runtime string) error {
	conf.ORMWorkMode = consts.WorkModeNri
	conf.ORMNRISocketPath = runtime
	conf.TopologyPolicyName = "single-numa-node" // as qrmd in package node
	conf.ORMDevicesProvider = orm.NoneDevicesProvider
	conf.ORMReconcilePeriod = 200 * time.Millisecond
	conf.ORMPodResourcesSocket = "unix:" + filepath.Join(state, "pod-resources.sock")
	directory := filepath.Join(state, "orm")
	if err := os.MkdirAll(directory, 0o750); err != nil {
		return err
	}
	manager, err := orm.NewManager(filepath.Join(directory, "kubelet.sock"), metrics.DummyMetrics{}, metaServer, conf)
	if err != nil {
		return err
	}
	for resource, name := range map[string]string{"cpu": "qrm_cpu_plugin_dynamic", "memory": "qrm_memory_plugin_dynamic",
		string(apiconsts.ResourceNetBandwidth): "qrm_network_plugin_static"} {
		socket := filepath.Join(plugins, name+".sock")
		for { // The plugin serves in a moment.
			err := manager.RegisterPlugin(resource, socket, []string{"v1alpha1"})
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("%s is not served: %w", socket, err)
			}
		}
	}
	go manager.Run(ctx)
	return nil
}

// printZones prints Katalyst's TopologyZones of a node whose pod resources are served on socket.
func printZones(ctx context.Context, conf *config.Configuration, metaServer *metaserver.MetaServer, socket string) error {
	nodes := func() ([]cadvisor.Node, error) { return metaServer.MachineInfo.Topology, nil }
	reporter, err := topology.NewPodResourcesServerTopologyAdapter(metaServer, conf.QoSConfiguration, conf.AgentConfiguration,
		[]string{socket}, nil, "", conf.ResourceNameToZoneTypeMap, nil, nodes, nil, podresources.GetV1Client,
		conf.NeedValidationResources)
	if err != nil {
		return err
	}
	if err := reporter.Run(ctx, nil); err != nil {
		return err
	}
	var zones []*nodeapis.TopologyZone
	asked := wait.PollImmediate(10*time.Millisecond, 5*time.Second, func() (bool, error) { // It connects in the background.
		zones, err = reporter.GetTopologyZones(ctx)
		return err == nil, nil
	})
	if asked != nil {
		return err
	}
	printed := json.NewEncoder(os.Stdout)
	printed.SetIndent("", "  ")
	return printed.Encode(zones)
}

// podFile is a file with a JSON list of pods: Katalyst's pods, read again for each question.
type podFile string

func (f podFile) now() *pod.PodFetcherStub {
	text, err := os.ReadFile(string(f))
	var pods []*v1.Pod
	if err == nil {
		err = json.Unmarshal(text, &pods)
	}
	if err != nil {
		klog.Exitf("cannot read the pods: %v", err)
	}
	return &pod.PodFetcherStub{PodList: pods}
}

func (f podFile) GetPodList(ctx context.Context, filter func(*v1.Pod) bool) ([]*v1.Pod, error) {
	return f.now().GetPodList(ctx, filter)
}

func (f podFile) GetPod(ctx context.Context, uid string) (*v1.Pod, error) {
	return f.now().GetPod(ctx, uid)
}

func (f podFile) GetContainerID(uid, container string) (string, error) {
	return f.now().GetContainerID(uid, container)
}

func (f podFile) GetContainerSpec(uid, container string) (*v1.Container, error) {
	return f.now().GetContainerSpec(uid, container)
}

func (f podFile) Run(context.Context) {}
