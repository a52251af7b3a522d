// Package node runs qrmd beside a simulated container runtime, for tests that ask its sockets.
package node

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Patience is how long a test waits for what should come at once.
const Patience = 10 * time.Second

// MachineWithPorts is the proposal's node: 80 CPUs on two NUMA nodes.
const MachineWithPorts = `machine: "synthetic:package:2 [numa] core:20 pu:2"
numa-memory: {0: 237706936320, 1: 237806551040}
topology-policy: single-numa-node
reconcile-period: 200ms
`

// Machine is the same, where nothing is served over HTTP.
const Machine = MachineWithPorts + `metrics-address: ""
probe-address: ""
`

// Container is a container as its pod's manifest has it; its limits are its requests.
type Container struct {
	Name        string `json:"name"`
	MilliCpus   int64  `json:"milli_cpus"`
	MemoryBytes int64  `json:"memory_bytes"`
}

// Pod is a pod for the runtime to run.
type Pod struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Containers  []Container       `json:"containers"`
}

// Options are what a container runs with.
type Options struct {
	Envs        map[string]string `json:"envs"`
	Annotations map[string]string `json:"annotations"`
	Linux       struct {
		CpusetCpus string `json:"cpusetCpus"`
		CpusetMems string `json:"cpusetMems"`
	} `json:"linux_container_resources"`
}

// Node is a simulated runtime with a real qrmd attached to it.
type Node struct {
	t       *testing.T
	dir     string
	bin     string
	runtime *exec.Cmd
	daemon  *exec.Cmd
	orders  *json.Encoder
	answers *bufio.Reader
}

// Start runs both until the test ends; config is qrmd's configuration except sockets and
// directories.
func Start(t *testing.T, config string) *Node {
	t.Helper()
	return start(t, config, nil)
}

// StartMeasured is Start with a runtime in real time, where the test may: it measures qrmd, without
// its own wait for a CPU.
func StartMeasured(t *testing.T, config string) *Node {
	t.Helper()
	realTime := []string{"chrt", "--rr", "1"}
	if err := exec.Command(realTime[0], append(realTime[1:], "true")...).Run(); err != nil {
		t.Logf("the runtime is not in real time, and its own waits are measured too: chrt: %v", err)
		realTime = nil
	}
	return start(t, config, realTime)
}

// start runs the runtime with the words of a command before its own.
func start(t *testing.T, config string, before []string) *Node {
	t.Helper()
	node := StartRuntime(t, before...)
	if err := os.WriteFile(node.Path("qrmd.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	node.StartDaemon()
	return node
}

// StartRuntime runs the runtime until the test ends, with the words of a command before its own, and no qrmd.
func StartRuntime(t *testing.T, before ...string) *Node {
	t.Helper()
	bin := os.Getenv("QRM_BIN_DIR")
	if bin == "" {
		t.Fatal("QRM_BIN_DIR names no directory; run scripts/interop.sh")
	}
	dir, err := os.MkdirTemp("/tmp", "qrm-interop") // short, for sockets go below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	node := &Node{t: t, dir: dir, bin: bin}
	node.startRuntime(before)
	return node
}

// Path is a file of the node's private directory, which all users may enter.
func (n *Node) Path(name string) string { return filepath.Join(n.dir, name) }

// Socket is where pod resources are served.
func (n *Node) Socket() string { return n.Path("pod-resources/kubelet.sock") }

// RegistrationDir is where plugins call Register on kubelet.sock, PluginsDir the watched directory.
func (n *Node) RegistrationDir() string { return n.Path("registration") }
func (n *Node) PluginsDir() string      { return n.Path("plugins") }

// Pid is qrmd's.
func (n *Node) Pid() int { return n.daemon.Process.Pid }

func (n *Node) startRuntime(before []string) {
	n.t.Helper()
	words := append(slices.Clone(before), filepath.Join(n.bin, "interop_runtime"), n.dir)
	runtime := exec.Command(words[0], words[1:]...)
	runtime.Stderr = os.Stderr
	input, err := runtime.StdinPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	output, err := runtime.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := runtime.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		input.Close()
		if err := runtime.Wait(); err != nil {
			n.t.Errorf("the runtime ended badly: %v", err)
		}
	})
	n.runtime = runtime
	n.orders, n.answers = json.NewEncoder(input), bufio.NewReader(output)
	n.readAnswer(&struct{}{})
}

// StartDaemon starts qrmd and waits until it is attached to the runtime.
func (n *Node) StartDaemon() {
	n.t.Helper()
	log, err := os.OpenFile(n.Path("qrmd.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	n.daemon = exec.Command(filepath.Join(n.bin, "qrmd"), "--simulate", "--config="+n.Path("qrmd.yaml"),
		"--state-dir="+n.Path("state"), "--registration-dir="+n.RegistrationDir(),
		"--plugins-registry-dir="+n.PluginsDir(), "--pod-resources-socket="+n.Socket(),
		"--control-socket="+n.Path("control.sock"), "--nri-socket="+n.Path("nri.sock"),
		"--cri-socket="+n.Path("cri.sock"), "--kubelet-pod-resources-socket=")
	n.daemon.Stdout, n.daemon.Stderr = log, log
	if err := n.daemon.Start(); err != nil {
		n.t.Fatal(err)
	}
	daemon := n.daemon
	n.t.Cleanup(func() { n.stop(daemon) })
	n.Await("qrmd to attach to the runtime", func() bool {
		status, err := n.Qrmctl("status", "-o", "json")
		return err == nil && strings.Contains(status, `"nri_connected": true`)
	})
}

// StopDaemon ends qrmd, which must end well.
func (n *Node) StopDaemon() {
	n.t.Helper()
	n.stop(n.daemon)
}

func (n *Node) stop(daemon *exec.Cmd) {
	n.t.Helper()
	if daemon.ProcessState != nil {
		return
	}
	daemon.Process.Signal(syscall.SIGTERM)
	if err := daemon.Wait(); err != nil || n.t.Failed() {
		log, _ := os.ReadFile(n.Path("qrmd.log"))
		n.t.Logf("qrmd wrote:\n%s", log)
		if err != nil {
			n.t.Errorf("qrmd ended badly: %v", err)
		}
	}
}

// Log is what qrmd has written so far.
func (n *Node) Log() string {
	n.t.Helper()
	log, err := os.ReadFile(n.Path("qrmd.log"))
	if err != nil {
		n.t.Fatal(err)
	}
	return string(log)
}

// Qrmctl is what qrmctl prints.
func (n *Node) Qrmctl(arguments ...string) (string, error) {
	output, err := exec.Command(filepath.Join(n.bin, "qrmctl"),
		append(arguments, "--control-socket="+n.Path("control.sock"))...).CombinedOutput()
	return string(output), err
}

// Await fails the test when condition does not come true soon.
func (n *Node) Await(what string, condition func() bool) {
	n.t.Helper()
	for end := time.Now().Add(Patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			n.t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// Run starts a pod and returns how long each of its containers took to be created.
func (n *Node) Run(pod Pod) []time.Duration {
	n.t.Helper()
	created, err := n.TryRun(pod)
	if err != nil {
		n.t.Fatal(err)
	}
	return created
}

// TryRun is Run for a pod that may be rejected.
func (n *Node) TryRun(pod Pod) ([]time.Duration, error) {
	n.t.Helper()
	var answer struct {
		Error   string  `json:"error"`
		Created []int64 `json:"created_us"`
	}
	n.order(map[string]any{"command": "run", "pod": pod}, &answer)
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	var created []time.Duration
	for _, microseconds := range answer.Created {
		created = append(created, time.Duration(microseconds)*time.Microsecond)
	}
	return created, nil
}

// Remove takes a pod away.
func (n *Node) Remove(pod string) {
	n.t.Helper()
	n.end("remove", pod)
}

// Finish ends a pod's containers for good and stops its sandbox, which stays.
func (n *Node) Finish(pod string) {
	n.t.Helper()
	n.end("finish", pod)
}

// Resize changes the resources of the pod's first container in place.
func (n *Node) Resize(pod Pod) error {
	n.t.Helper()
	return n.obey("resize", pod)
}

func (n *Node) end(command, pod string) {
	n.t.Helper()
	if err := n.obey(command, pod); err != nil {
		n.t.Fatal(err)
	}
}

// obey gives the runtime an order that it answers with nothing or an error.
func (n *Node) obey(command string, pod any) error {
	n.t.Helper()
	var answer struct {
		Error string `json:"error"`
	}
	n.order(map[string]any{"command": command, "pod": pod}, &answer)
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return nil
}

// Options are what the pod's first container runs with now.
func (n *Node) Options(pod string) Options {
	n.t.Helper()
	var options Options
	n.order(map[string]any{"command": "options", "pod": pod}, &options)
	return options
}

func (n *Node) order(order, answer any) {
	n.t.Helper()
	if err := n.orders.Encode(order); err != nil {
		n.t.Fatalf("the runtime is gone: %v", err)
	}
	n.readAnswer(answer)
}

func (n *Node) readAnswer(answer any) {
	n.t.Helper()
	line, err := n.answers.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, answer)
	}
	if err != nil {
		n.t.Fatalf("the runtime said %q: %v", line, err)
	}
}

// Dial connects as the published clients do: insecure, over the unix socket, 16 MiB.
func Dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)))
	if err != nil {
		t.Fatal(fmt.Errorf("cannot dial %s: %w", socket, err))
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

// Deadline is for calls that should be answered at once.
func Deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	return ctx
}
