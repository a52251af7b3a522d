package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// installScheduler installs the chart of qrm-scheduler until the test ends.
func installScheduler(t *testing.T) {
	t.Helper()
	path, err := filepath.Abs("../../../charts/qrm-scheduler")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { helm(t, "uninstall", "qrm-scheduler", "--wait", timeout()) })
	// kube-scheduler shall see room on a node of two CPUs.
	helm(t, "upgrade", "--install", "qrm-scheduler", path, "--set", "resources.requests.cpu=0,kubeScheduler.resources.requests.cpu=0")
	kubectl(t, "--namespace", "kube-system", "rollout", "status", "deployment/qrm-scheduler", timeout())
}

// ofWholeCpus is a Guaranteed pod; if `placed`, it asks for qrm-scheduler, else for the cluster's
// own scheduler.
func ofWholeCpus(name string, cpus int, placed bool) object {
	spec := podSpec(container("c", sleep, requests{cpus * 1000, true}))
	if placed {
		spec["schedulerName"] = "qrm"
	}
	return pod(name, spec)
}

func numaNodes(t *testing.T) map[int]bool {
	t.Helper()
	text, err := os.ReadFile("/sys/devices/system/node/online")
	if err != nil {
		t.Fatal(err)
	}
	return idsOf(strings.TrimSpace(string(text)))
}

// cpusOfNumaNode are those that the kernel names.
func cpusOfNumaNode(t *testing.T, node int) map[int]bool {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/node/node%d/cpulist", node))
	if err != nil {
		t.Fatal(err)
	}
	return idsOf(strings.TrimSpace(string(text)))
}

// refusalOf is nil when the pod has an event by which qrmd rejects it.
func refusalOf(pod string) error {
	var events struct {
		Items []struct{ Reason, Message string }
	}
	if err := read(&events, "kubectl", "get", "events", "--field-selector", "involvedObject.name="+pod, "-o", "json"); err != nil {
		return err
	}
	for _, event := range events.Items {
		if event.Reason == "PlacementRefused" && strings.Contains(event.Message, "cannot admit container c of pod default/"+pod) {
			return nil
		}
	}
	return fmt.Errorf("there are %+v", events.Items)
}

// A pod on each NUMA node leaves it one CPU. Together they are enough for the next pod, but none
// alone is. On a single NUMA node, that pod wants the last CPU, which has to be kept for all
// others.
func TestPodThatFitsNoNumaNodeWaitsForRoom(t *testing.T) {
	nodes := numaNodes(t)
	wanted := min(2, len(nodes))
	upgrade(t, strictConfiguration(t), "--set", "resources.requests.cpu=0")
	t.Cleanup(func() { upgrade(t, configurationWith(t, "")) })
	installScheduler(t)
	var fillers []object
	var names []string
	for id := range nodes {
		names = append(names, fmt.Sprintf("filler-%d", id))
		fillers = append(fillers, ofWholeCpus(names[len(names)-1], len(cpusOfNumaNode(t, id))-1, true))
	}
	create(t, fillers...)
	awaitRunning(t, names...)
	create(t, ofWholeCpus("wide", wanted, true))

	t.Run("WithTheExtenderItStaysPendingWithTheReason", func(t *testing.T) {
		await(t, "the reason on the pod that waits", func() error { return waitsForANumaNode("wide") })
	})
	t.Run("WithoutTheExtenderItIsBoundAndRejected", func(t *testing.T) {
		create(t, ofWholeCpus("unplaced", wanted, false))
		await(t, "an event by which qrmd refuses it", func() error { return refusalOf("unplaced") })
		if bound := kubectl(t, "get", "pod", "unplaced", "-o", "jsonpath={.spec.nodeName}"); bound != "node" {
			t.Errorf("it is bound to %q", bound)
		}
	})
	t.Run("WhenRoomAppearsItIsBoundAndAdmitted", func(t *testing.T) {
		if err := waitsForANumaNode("wide"); err != nil {
			t.Errorf("it waits no longer: %v", err)
		}
		kubectl(t, "delete", "pod", names[0], timeout())
		awaitRunning(t, "wide")
		isOnOneNumaNode(t, "wide/c", nodes)
	})
}

// strictConfiguration rejects pods that would not be on one NUMA node, and publishes what a
// scheduler places by.
func strictConfiguration(t *testing.T) string {
	t.Helper()
	path := configurationWith(t, "publish: [node-config, events]\n")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	strict := strings.Replace(string(text), "topology-policy: best-effort", "topology-policy: single-numa-node", 1)
	if err := os.WriteFile(path, []byte(strict), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var mayBeWhy = regexp.MustCompile("1 (no NUMA placement fits under topology-policy single-numa-node|the node has too little cpu left where it is needed)")

// waitsForANumaNode is nil when the pod is bound to no node, and its condition says that none of the NUMA nodes fits.
func waitsForANumaNode(name string) error {
	var pod struct {
		Spec   struct{ NodeName string }
		Status struct {
			Phase      string
			Conditions []struct{ Type, Status, Reason, Message string }
		}
	}
	if err := read(&pod, "kubectl", "get", "pod", name, "-o", "json"); err != nil {
		return err
	}
	for _, each := range pod.Status.Conditions {
		if each.Type == "PodScheduled" && each.Reason == "Unschedulable" && mayBeWhy.MatchString(each.Message) &&
			pod.Status.Phase == "Pending" && pod.Spec.NodeName == "" {
			return nil
		}
	}
	return fmt.Errorf("it is %+v", pod)
}

// isOnOneNumaNode fails the test unless the container has exclusive CPUs of one of the nodes.
func isOnOneNumaNode(t *testing.T, name string, nodes map[int]bool) {
	t.Helper()
	awaitAgreement(t)
	own := ownCpusOf(t, name)
	for id := range nodes {
		ofNode := cpusOfNumaNode(t, id)
		inside := true
		for cpu := range idsOf(own) {
			inside = inside && ofNode[cpu]
		}
		if inside {
			return
		}
	}
	t.Errorf("its CPUs %s are on several NUMA nodes", own)
}
