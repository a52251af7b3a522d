package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Each has another QoS class.
func threeClasses() []object {
	return []object{
		pod("guaranteed", podSpec(container("c", sleep, ownCpu))),
		pod("burstable", podSpec(container("c", sleep, someCpu))),
		pod("best-effort", podSpec(container("c", sleep, bestEffort))),
	}
}

func TestQosClasses(t *testing.T) {
	create(t, threeClasses()...)
	awaitRunning(t, "guaranteed", "burstable", "best-effort")
	awaitAgreement(t)
	t.Run("GuaranteedGetsAnExclusiveCpu", func(t *testing.T) {
		if cpus := ownCpusOf(t, "guaranteed/c"); len(idsOf(cpus)) != 1 {
			t.Errorf("it owns %s", cpus)
		}
	})
	t.Run("OthersShareTheRest", func(t *testing.T) {
		found := records(t)
		own, _ := found["guaranteed/c"].cpus()
		for _, name := range []string{"burstable/c", "best-effort/c"} {
			if cpus, exclusive := found[name].cpus(); exclusive || cpus == "" || cpus == own {
				t.Errorf("%s has %v, and the owner %s", name, found[name], own)
			}
		}
	})
	t.Run("ProcessRunsOnItsCpuFromTheFirstInstruction", func(t *testing.T) {
		text := kubectl(t, "exec", "guaranteed", "--", "grep", "Cpus_allowed_list", "/proc/1/status")
		if got := strings.Fields(text)[1]; got != ownCpusOf(t, "guaranteed/c") {
			t.Errorf("the kernel lets it run on %s", got)
		}
	})
}

func TestInitContainersAndSidecars(t *testing.T) {
	spec := podSpec(container("main", sleep, ownCpu), container("helper", sleep, requests{200, true}))
	sidecar := container("sidecar", sleep, requests{100, true})
	sidecar["restartPolicy"] = "Always"
	spec["initContainers"] = []object{container("init", "grep Cpus_allowed_list /proc/self/status", ownCpu), sidecar}
	create(t, pod("whole", spec))
	awaitRunning(t, "whole")
	awaitAgreement(t)
	own := ownCpusOf(t, "whole/main")
	t.Run("InitContainerRanOnACpuOfThePod", func(t *testing.T) {
		if got := strings.Fields(kubectl(t, "logs", "whole", "-c", "init"))[1]; got != own {
			t.Errorf("it ran on %s, and main on %s", got, own)
		}
	})
	t.Run("OthersOfThePodShareTheRest", func(t *testing.T) {
		found := records(t)
		for _, name := range []string{"whole/sidecar", "whole/helper"} {
			if cpus, exclusive := found[name].cpus(); exclusive || cpus == own {
				t.Errorf("%s has %v, and main %s", name, found[name], own)
			}
		}
	})
	t.Run("TypesAreThoseOfTheSpec", func(t *testing.T) {
		found := records(t)
		for name, want := range map[string]string{"whole/main": "MAIN", "whole/sidecar": "SIDECAR", "whole/helper": "SIDECAR"} {
			if found[name].Type != want {
				t.Errorf("%s is %s and not %s", name, found[name].Type, want)
			}
		}
	})
}

func TestRolloutGoesOnThoughQrmdIsKilled(t *testing.T) {
	const replicas = 20
	spec := podSpec(container("c", sleep, requests{10, false}))
	create(t, deployment("web", replicas, spec))
	kubectl(t, "rollout", "status", "deployment/web", "--timeout=3m")
	kubectl(t, "set", "env", "deployment/web", "ROUND=2")
	await(t, "the roll-out to be half done", func() error {
		done := kubectl(t, "get", "deployment", "web", "-o", "jsonpath={.status.updatedReplicas}")
		if len(done) < 2 {
			return fmt.Errorf("%q replicas are new", done)
		}
		return nil
	})
	killQrmd(t)
	kubectl(t, "rollout", "status", "deployment/web", "--timeout=4m")
	awaitQrmd(t)
	await(t, "qrmd to have the new pods on record, and no others", func() error {
		found, err := recordsOf("default")
		if err == nil && len(found) != replicas {
			err = fmt.Errorf("it has %d containers", len(found))
		}
		return err
	})
	awaitAgreement(t)
}

func TestStatefulSetComesBackToAFullNode(t *testing.T) {
	labels := object{"app": "database"}
	create(t, object{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": object{"name": "database"},
		"spec": object{"replicas": 1, "serviceName": "database", "selector": object{"matchLabels": labels},
			"template": object{"metadata": object{"labels": labels}, "spec": podSpec(container("c", sleep, ownCpu))}}})
	awaitRunning(t, "database-0")
	for range 3 {
		uid := kubectl(t, "get", "pod", "database-0", "-o", "jsonpath={.metadata.uid}")
		kubectl(t, "delete", "pod", "database-0", "--wait=false")
		await(t, "the next database-0", func() error {
			if next, err := callWith("", "kubectl", "get", "pod", "database-0", "-o", "jsonpath={.metadata.uid}"); err != nil || next == uid {
				return fmt.Errorf("there is %s: %w", next, err)
			}
			return nil
		})
		awaitRunning(t, "database-0")
		ownCpusOf(t, "database-0/c")
	}
	if refused := call(t, "qrmctl", "refusals", "--since", "2m"); strings.Contains(refused, "database-0") {
		t.Errorf("it was refused before it got its place: %s", refused)
	}
	awaitAgreement(t)
}

func TestJobGivesItsCpuBack(t *testing.T) {
	spec := podSpec(container("c", "grep Cpus_allowed_list /proc/self/status", ownCpu))
	spec["restartPolicy"] = "Never"
	create(t, object{"apiVersion": "batch/v1", "kind": "Job", "metadata": object{"name": "job"},
		"spec": object{"template": object{"metadata": object{}, "spec": spec}}})
	kubectl(t, "wait", "--for=condition=Complete", "job/job", timeout())
	if text := kubectl(t, "logs", "job/job"); len(idsOf(strings.Fields(text)[1])) != 1 {
		t.Errorf("it did not run on a CPU of its own: %s", text)
	}
	// While its pod still exists.
	create(t, pod("next", podSpec(container("c", sleep, ownCpu))))
	awaitRunning(t, "next")
	ownCpusOf(t, "next/c")
}

func TestCrashLoopKeepsItsAllocations(t *testing.T) {
	create(t, pod("crash", podSpec(container("c", "grep Cpus_allowed_list /proc/self/status; sleep 2; exit 1", ownCpu))))
	await(t, "the first start", func() error {
		_, own := records(t)["crash/c"].cpus()
		if !own {
			return fmt.Errorf("no record")
		}
		return nil
	})
	cpus := ownCpusOf(t, "crash/c")
	create(t, pod("neighbour", podSpec(container("c", sleep, someCpu))))
	awaitRunning(t, "neighbour")
	for restarts := 0; restarts < 3; {
		status, err := statusOf("crash")
		if err != nil {
			t.Fatal(err)
		}
		restarts = status.Status.ContainerStatuses[0].RestartCount
		if got := ownCpusOf(t, "crash/c"); got != cpus {
			t.Fatalf("after %d restarts its CPUs are %s and no longer %s", restarts, got, cpus)
		}
		if got, _ := records(t)["neighbour/c"].cpus(); idsOf(got)[firstOf(cpus)] {
			t.Fatalf("after %d restarts the neighbour is on %s", restarts, got)
		}
		time.Sleep(time.Second)
	}
	if text := kubectl(t, "logs", "crash"); strings.Fields(text)[1] != cpus {
		t.Errorf("it ran on %s and not on %s", text, cpus)
	}
}

func firstOf(list string) int {
	for id := range idsOf(list) {
		return id
	}
	return -1
}

func TestStaticPodIsPlaced(t *testing.T) {
	dir := filepath.Join(os.Getenv("QRM_CLUSTER_DIR"), "static-pods")
	file := filepath.Join(dir, "static.json")
	text := toJson(t, pod("static", podSpec(container("c", sleep, ownCpu))))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	awaitRunning(t, "static-node")
	ownCpusOf(t, "static-node/c")
	awaitAgreement(t)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	await(t, "qrmd to forget the static pod", func() error {
		if found := records(t); len(found) > 0 {
			return fmt.Errorf("it has %v", found)
		}
		return nil
	})
}

func TestEphemeralContainerUsesTheSharedCpus(t *testing.T) {
	create(t, pod("patient", podSpec(container("c", sleep, ownCpu))))
	awaitRunning(t, "patient")
	own := ownCpusOf(t, "patient/c")
	kubectl(t, "debug", "patient", "--image=localhost/busybox:1", "--container=doctor", "--image-pull-policy=IfNotPresent", "--", "/bin/sh", "-c", sleep)
	await(t, "the ephemeral container to run", func() error {
		status, err := statusOf("patient")
		if err == nil && (len(status.Status.EphemeralContainerStatuses) == 0 || status.Status.EphemeralContainerStatuses[0].State.Running == nil) {
			err = fmt.Errorf("it is %+v", status.Status.EphemeralContainerStatuses)
		}
		return err
	})
	awaitAgreement(t)
	found := records(t)
	if cpus, exclusive := found["patient/doctor"].cpus(); exclusive || cpus == own || cpus == "" {
		t.Errorf("the ephemeral container has %v, and its pod owns %s", found["patient/doctor"], own)
	}
	if got := ownCpusOf(t, "patient/c"); got != own {
		t.Errorf("the pod's CPUs are %s and no longer %s", got, own)
	}
}
