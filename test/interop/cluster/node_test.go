package cluster

import (
	"fmt"
	"strings"
	"testing"
)

func TestRestartsLeaveContainersWhereTheyAre(t *testing.T) {
	create(t, threeClasses()...)
	awaitRunning(t, "guaranteed", "burstable", "best-effort")
	awaitAgreement(t)
	before := placesOf(records(t))
	restarts := map[string]func(t *testing.T){
		"Kubelet": func(t *testing.T) {
			call(t, "stop", "kubelet")
			call(t, "start", "kubelet")
			kubectl(t, "wait", "--for=condition=Ready", "node/node", timeout())
		},
		"Containerd": func(t *testing.T) {
			call(t, "kill", "containerd")
			call(t, "start", "containerd")
			await(t, "qrmd to be connected again", func() error {
				status, err := callWith("", "qrmctl", "status")
				if err == nil && !strings.Contains(status, "Mode:        NRI") {
					err = fmt.Errorf("it says %s", status)
				}
				return err
			})
		},
		"Qrmd": killQrmd,
	}
	for name, restart := range restarts {
		t.Run(name, func(t *testing.T) {
			restart(t)
			awaitQrmd(t)
			awaitAgreement(t)
			if after := placesOf(records(t)); after != before {
				t.Errorf("places were\n%s\nand are\n%s", before, after)
			}
			// And new ones are placed.
			create(t, pod("later", podSpec(container("c", sleep, bestEffort))))
			awaitRunning(t, "later")
			await(t, "a record of the later pod", func() error {
				if found := records(t); found["later/c"].Name == "" {
					return fmt.Errorf("there are %v", found)
				}
				return nil
			})
			kubectl(t, "delete", "pod", "later", timeout())
			await(t, "the later pod to be forgotten", func() error {
				if found := records(t); len(found) != 3 {
					return fmt.Errorf("there are %v", found)
				}
				return nil
			})
		})
	}
}

func TestPodCreatedWhileQrmdIsNotRunningIsPlacedWhenItReturns(t *testing.T) {
	create(t, pod("early", podSpec(container("c", sleep, someCpu))))
	awaitRunning(t, "early")
	// A DaemonSet that no node is for has no pod.
	nowhere := `{"spec":{"template":{"spec":{"nodeSelector":{"qrm.local/nowhere":"true"}}}}}`
	kubectl(t, "--namespace", "kube-system", "patch", "daemonset", "qrm", "--patch", nowhere)
	defer func() {
		kubectl(t, "--namespace", "kube-system", "patch", "daemonset", "qrm", "--type=json",
			`--patch=[{"op":"remove","path":"/spec/template/spec/nodeSelector/qrm.local~1nowhere"}]`)
		kubectl(t, "--namespace", "kube-system", "rollout", "status", "daemonset/qrm", timeout())
		awaitQrmd(t)
		await(t, "a CPU for the pod that came meanwhile", func() error {
			found, err := recordsOf("default")
			if err == nil && !found["late/c"].ownsCpus() {
				err = fmt.Errorf("there are %v", found)
			}
			return err
		})
		awaitAgreement(t)
	}()
	await(t, "qrmd to be gone", func() error {
		if _, err := callWith("", "on-node", "pgrep", "-x", "qrmd"); err == nil {
			return fmt.Errorf("it runs")
		}
		return nil
	})
	create(t, pod("late", podSpec(container("c", sleep, ownCpu))))
	awaitRunning(t, "late")
}

func TestDrainedNodeForgetsItsPods(t *testing.T) {
	objects := append(threeClasses(), deployment("web", 2, podSpec(container("c", sleep, someCpu))))
	create(t, objects...)
	awaitRunning(t, "guaranteed", "burstable", "best-effort")
	kubectl(t, "rollout", "status", "deployment/web", timeout())
	kubectl(t, "drain", "node", "--ignore-daemonsets", "--force", timeout())
	await(t, "qrmd to forget the drained pods", func() error {
		found, err := recordsOf("default")
		if err == nil && len(found) > 0 {
			err = fmt.Errorf("it has %v", found)
		}
		return err
	})
	kubectl(t, "uncordon", "node")
	kubectl(t, "rollout", "status", "deployment/web", timeout())
	awaitAgreement(t)
}

func TestPodThatDoesNotFitSaysWhy(t *testing.T) {
	// kube-scheduler and kubelet see room for both; but a CPU has to be kept for all others.
	upgrade(t, configurationWith(t, ""), "--set", "resources.requests.cpu=0")
	defer func() { upgrade(t, configurationWith(t, "")) }()
	create(t, pod("first", podSpec(container("c", sleep, ownCpu))))
	awaitRunning(t, "first")
	create(t, pod("second", podSpec(container("c", sleep, ownCpu))))
	await(t, "the container's status to say why", func() error {
		status, err := statusOf("second")
		if err != nil {
			return err
		}
		for _, each := range status.Status.ContainerStatuses {
			waiting := each.State.Waiting
			if waiting != nil && waiting.Reason == "CreateContainerError" && strings.Contains(waiting.Message, "cannot admit container") {
				return nil
			}
		}
		return fmt.Errorf("it is %+v", status.Status)
	})
	await(t, "an event that says why", func() error {
		events := kubectl(t, "get", "events", "--field-selector", "involvedObject.name=second", "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(events, "cannot admit container c of pod default/second") {
			return fmt.Errorf("there are %s", events)
		}
		return nil
	})
	kubectl(t, "delete", "pod", "first", timeout())
	// Kubelet tries again by itself.
	awaitRunning(t, "second")
	ownCpusOf(t, "second/c")
}
