// Package cluster tries qrm, installed by its chart, on the node that scripts/cluster.sh makes: unmodified programs of
// Kubernetes, containerd, and pods that are made over the API server. That script runs it.
package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for what the node does in seconds when it has its CPUs to itself, and in minutes in
// the emulated machine.
func patience() time.Duration {
	if os.Getenv("QRM_VM") != "" {
		return 10 * time.Minute
	}
	return 2 * time.Minute
}

// timeout is the flag by which kubectl and helm wait as long.
func timeout() string { return "--timeout=" + patience().String() }

type object = map[string]any

func TestMain(m *testing.M) {
	if os.Getenv("QRM_CLUSTER") == "" {
		fmt.Println("skipped: scripts/cluster.sh test runs these")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// callWith gives scripts/cluster.sh its standard input, and returns its standard output.
func callWith(input string, words ...string) (string, error) {
	command := exec.Command(os.Getenv("QRM_CLUSTER"), words...)
	var out, problems bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &out, &problems
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(problems.String()))
	}
	return out.String(), nil
}

// call runs a command of scripts/cluster.sh, which must succeed.
func call(t *testing.T, words ...string) string {
	t.Helper()
	out, err := callWith("", words...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func kubectl(t *testing.T, words ...string) string {
	t.Helper()
	return call(t, append([]string{"kubectl"}, words...)...)
}

// read parses what a command prints as JSON.
func read(into any, words ...string) error {
	out, err := callWith("", words...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

// await waits until `check` finds nothing wrong.
func await(t *testing.T, what string, check func() error) {
	t.Helper()
	begin := time.Now()
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Since(begin) > patience() {
			t.Fatalf("timed out waiting for %s: %v", what, err)
		}
		time.Sleep(300 * time.Millisecond)
	}
}

func toJson(t *testing.T, value object) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// create makes the objects, which are gone again, and forgotten by qrmd, when the test ends.
func create(t *testing.T, objects ...object) {
	t.Helper()
	text := toJson(t, object{"apiVersion": "v1", "kind": "List", "items": objects})
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := callWith("", "kubectl", "get", "events,pods", "-o", "wide", "--sort-by=.metadata.creationTimestamp")
			pods, _ := callWith("", "qrmctl", "pods")
			t.Logf("the cluster:\n%s\nqrmd:\n%s", out, pods)
		}
		if _, err := callWith(text, "kubectl", "delete", "--ignore-not-found", "--wait", timeout(), "-f", "-"); err != nil {
			t.Error(err)
		}
		await(t, "qrmd to forget what was deleted", leftover)
	})
	// kubectl's own validation needs all of the API's schemas within 32 s, which the emulated machine does not make.
	if _, err := callWith(text, "kubectl", "create", "--validate=false", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// requests are those of a container: of CPU, in milli CPUs, and as much as limit where `guaranteed`.
type requests struct {
	milliCpus  int
	guaranteed bool
}

func (r requests) resources() object {
	if r.milliCpus == 0 {
		return object{}
	}
	amounts := object{"cpu": fmt.Sprintf("%dm", r.milliCpus), "memory": "32Mi"}
	if r.guaranteed {
		return object{"requests": amounts, "limits": amounts}
	}
	return object{"requests": amounts}
}

var (
	ownCpu     = requests{1000, true}
	someCpu    = requests{100, false}
	bestEffort = requests{}
)

const sleep = "exec sleep 100000"

// container runs a script of busybox's shell.
func container(name, script string, asked requests) object {
	return object{"name": name, "image": "localhost/busybox:1", "command": []string{"/bin/sh", "-c", script}, "resources": asked.resources()}
}

func podSpec(containers ...object) object {
	return object{"terminationGracePeriodSeconds": 1, "containers": containers}
}

func pod(name string, spec object) object {
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name}, "spec": spec}
}

func deployment(name string, replicas int, spec object) object {
	labels := object{"app": name}
	return object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": name},
		"spec": object{"replicas": replicas, "selector": object{"matchLabels": labels},
			"template": object{"metadata": object{"labels": labels}, "spec": spec}}}
}

// podStatus is what the API server reports about a pod, as far as tests ask.
type podStatus struct {
	Metadata struct{ Name string }
	Status   struct {
		Phase, Reason, Message                                               string
		ContainerStatuses, InitContainerStatuses, EphemeralContainerStatuses []containerStatus
	}
}

type containerStatus struct {
	Name         string
	Ready        bool
	RestartCount int
	State        struct {
		Running *struct{}
		Waiting *struct{ Reason, Message string }
	}
}

func statusOf(name string) (podStatus, error) {
	var status podStatus
	err := read(&status, "kubectl", "get", "pod", name, "-o", "json")
	return status, err
}

// awaitRunning waits until all app containers of the pods run.
func awaitRunning(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		await(t, "pod "+name+" to run", func() error {
			status, err := statusOf(name)
			if err != nil {
				return err
			}
			if len(status.Status.ContainerStatuses) == 0 {
				return fmt.Errorf("it is %+v", status.Status)
			}
			for _, each := range status.Status.ContainerStatuses {
				if each.State.Running == nil {
					return fmt.Errorf("container %s is %+v", each.Name, each)
				}
			}
			return nil
		})
	}
}

// killQrmd kills qrmd as a crash would.
func killQrmd(t *testing.T) {
	t.Helper()
	call(t, "on-node", "kill", "-KILL", strings.TrimSpace(call(t, "on-node", "pgrep", "-x", "qrmd")))
}

// awaitQrmd waits until qrmd is ready.
func awaitQrmd(t *testing.T) {
	t.Helper()
	await(t, "qrmd to be ready", func() error {
		var status struct{ Ready bool }
		err := read(&status, "qrmctl", "status", "-o", "json")
		if err == nil && !status.Ready {
			err = fmt.Errorf("it is not ready")
		}
		return err
	})
}
