package cluster

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// configurationOfCpu is the usual configuration with more keys of the cpu plugin.
func configurationOfCpu(t *testing.T, keys string) string {
	t.Helper()
	usual, err := os.ReadFile("../../../scripts/cluster/qrmd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "qrmd.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(string(usual), "  cpu:\n", "  cpu:\n"+keys, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// serveDevices runs a device plugin in a pod, until kubelet has reported its devices to the API
// server.
func serveDevices(t *testing.T) {
	t.Helper()
	const directory = "/var/lib/kubelet/device-plugins"
	spec := podSpec(object{"name": "c", "image": importProgram(t, "deviceplugin"), "args": []string{directory},
		"volumeMounts": []object{{"name": "sockets", "mountPath": directory}}})
	spec["volumes"] = []object{{"name": "sockets", "hostPath": object{"path": directory, "type": "Directory"}}}
	create(t, pod("devices", spec))
	await(t, "the node to have devices", func() error {
		var nodes struct {
			Items []struct {
				Status struct{ Allocatable map[string]string }
			}
		}
		if err := read(&nodes, "kubectl", "get", "nodes", "-o", "json"); err != nil {
			return err
		}
		if has := nodes.Items[0].Status.Allocatable; has["example.com/gpu"] != "2" || has["example.com/lost"] != "1" {
			return fmt.Errorf("it has %v", has)
		}
		return nil
	})
}

// engine is a pod with one of the devices.
func engine(name, device string) object {
	spec := podSpec(container("c", sleep, someCpu))
	spec["containers"].([]object)[0]["resources"] = object{
		"requests": object{"cpu": "100m", "memory": "32Mi"}, "limits": object{device: "1"}}
	made := pod(name, spec)
	made["metadata"].(object)["labels"] = object{"app": "engine"}
	return made
}

// awaitRejection waits until a container of the pod waits with a reason that has the words.
func awaitRejection(t *testing.T, name, words string) {
	t.Helper()
	await(t, "pod "+name+" to be rejected", func() error {
		status, err := statusOf(name)
		if err != nil {
			return err
		}
		for _, each := range status.Status.ContainerStatuses {
			waiting := each.State.Waiting
			if waiting != nil && strings.Contains(waiting.Message, words) {
				return nil
			}
			if waiting != nil {
				err = fmt.Errorf("it waits, %s: %s", waiting.Reason, waiting.Message)
			}
		}
		return cmp.Or(err, fmt.Errorf("it is %+v", status.Status))
	})
}

func TestPodIsPlacedBesideTheDeviceThatKubeletGaveIt(t *testing.T) {
	upgrade(t, configurationOfCpu(t, `    rules: [{select: {label: {app: engine}}, pool: near}]
    pools: {near: {size: {max: 1}, instances: {by: pod}, place: {near: ["example.com/*"], require: near}}}
`))
	defer func() { upgrade(t, configurationWith(t, "")) }()
	serveDevices(t)
	create(t, engine("lost", "example.com/lost"))
	awaitRejection(t, "lost", "kubelet reported no such device of the pod on a known NUMA node")
	create(t, engine("found", "example.com/gpu"))
	awaitRunning(t, "found")
	if pools := call(t, "qrmctl", "pool", "get"); !strings.Contains(pools, "near/default/found ") {
		t.Errorf("the pools are %s", pools)
	}
	killQrmd(t)
	awaitQrmd(t)
	if pools := call(t, "qrmctl", "pool", "get"); !strings.Contains(pools, "near/default/found ") {
		t.Errorf("after a restart the pools are %s", pools)
	}
}

func TestDriverPlacesAPodWithADeviceBesideStatic(t *testing.T) {
	upgrade(t, configurationWith(t, "compute-drivers: {attributes: {namespaces: [default]}}\n"), "--set", "computeDriver.enabled=true")
	defer func() { upgrade(t, configurationWith(t, ""), "--set", "computeDriver.enabled=false") }()
	kubectl(t, "--namespace", "kube-system", "rollout", "status", "daemonset/qrm-cci-driver", timeout())
	await(t, "the driver to be live", func() error {
		plugins, err := callWith("", "qrmctl", "plugins")
		if err == nil && !strings.Contains(plugins, "cci.qrm.io/attributes") {
			err = fmt.Errorf("the plugins are %s", plugins)
		}
		return err
	})
	serveDevices(t)
	driven := pod("driven", podSpec(container("c", sleep, ownCpu)))
	resources := ownCpu.resources()
	resources["limits"] = object{"cpu": "1", "memory": "32Mi", "example.com/gpu": "1"}
	driven["spec"].(object)["containers"].([]object)[0]["resources"] = resources
	driven["metadata"].(object)["annotations"] = object{"cci.qrm.io/driver": "attributes"}
	create(t, driven)
	awaitRunning(t, "driven")
	cpus := ownCpusOf(t, "driven/c")
	if why := call(t, "qrmctl", "explain", "default/driven"); !strings.Contains(why, "cci.qrm.io/attributes") {
		t.Errorf("no driver placed it: %s", why)
	}
	isSmall := runtime.NumCPU() == 2 // has no room for both
	if isSmall {
		kubectl(t, "delete", "pod", "driven", "--wait", timeout())
	}
	create(t, pod("owner", podSpec(container("c", sleep, ownCpu))))
	awaitRunning(t, "owner")
	if others := ownCpusOf(t, "owner/c"); (others == cpus) != isSmall {
		t.Errorf("static gave CPUs %s, the driver %s", others, cpus)
	}
}
