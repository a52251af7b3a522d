// Package hostile attacks qrmd's sockets, ports and admissions, and measures the effect on other
// clients.
package hostile

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"qrm.local/test/interop/node"
)

const (
	politeRole        = "QRM_INTEROP_POLITE"
	politeInterval    = 100 * time.Millisecond
	admissionInterval = 20 * time.Millisecond
	memoryAllowance   = 50 << 20
	hostileUser       = 12345
	politeUser        = 65534
	rounds            = 3 // of peace and attack, so that what else the machine does falls on both
	// Below that, a percentile says more about the machine's other work than about ours.
	meaningfulSamples = 1000
	// The number of admissions between two of a hostile pod.
	hostileEvery = 10
	probeTimeout = time.Second // kubelet's default
	// qrmd's error about an admission that its deadline ended.
	unanswered = "no decision within"
)

const (
	served = `builtin-plugins: [cpu, memory]
metrics-address: 127.0.0.1:0
probe-address: 127.0.0.1:0
`
	ordinary = node.MachineWithPorts + served + `plugins:
  cpu: {roles: {database: {numa: one, share-numa-with: [database]}}}
  memory: {roles: {database: {numa: one, share-numa-with: [database]}}}
`
	// Real time needs reserved CPUs, and so this machine; the pod shares the others.
	realTime = served + `topology-policy: single-numa-node
reconcile-period: 200ms
realtime-priority: 1
plugins: {cpu: {reserved-cpus: "0"}}
`
)

// mode is how qrmd's threads are scheduled.
type mode struct {
	name   string
	config string
	cpus   int64 // of the pod that is admitted
	// How many times longer an admission may take under attack than in peace, where a bare hand-over of the same mode
	// takes at most as many; 0: as long as it does.
	times float64
}

var modes = []mode{
	{"plain", ordinary + "nice: 0\n", 4, 0},
	{"nice", ordinary, 4, 2},
	{"real-time", realTime, 1, 2},
}

// attackTime is short by default; QRM_HOSTILE_SECONDS=60 for the whole attack.
func attackTime() time.Duration {
	if seconds, err := strconv.Atoi(os.Getenv("QRM_HOSTILE_SECONDS")); err == nil {
		return time.Duration(seconds) * time.Second
	}
	return 3 * time.Second
}

// TestPoliteClient is a process of another user, not a test of its own: it fails when a call of its does.
func TestPoliteClient(t *testing.T) {
	socket := os.Getenv(politeRole)
	if socket == "" {
		t.Skip("runs within TestHostileClientHarmsNoOtherClient")
	}
	ended := make(chan struct{})
	go func() {
		os.Stdin.Read(make([]byte, 1))
		close(ended)
	}()
	client := podresources.NewPodResourcesListerClient(node.Dial(t, socket))
	var took []time.Duration
	for {
		select {
		case <-ended:
			fmt.Printf("another user's List: %s\n", describe(took))
			return
		case <-time.After(politeInterval):
		}
		begin := time.Now()
		if _, err := client.List(node.Deadline(t), &podresources.ListPodResourcesRequest{}); err != nil {
			t.Fatalf("a polite call failed: %v", err)
		}
		took = append(took, time.Since(begin))
	}
}

// runAs starts this program in the role of another process and returns a function that ends it and
// returns its output.
func runAs(t *testing.T, n *node.Node, test, role string, user uint32) (end func() (string, error)) {
	t.Helper()
	program, err := os.ReadFile("/proc/self/exe") // a copy, where another user can run it
	if err != nil {
		t.Fatal(err)
	}
	path := n.Path(strings.ToLower(role))
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, "-test.run=^"+test+"$", "-test.timeout=1h")
	command.Env = append(os.Environ(), role+"="+n.Socket(), attackPorts+"="+strings.Join(ports(t, n), ","))
	var output strings.Builder
	command.Stdout, command.Stderr = &output, &output
	if os.Geteuid() == 0 { // a user of the socket's group
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: 0}}
	}
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() (string, error) {
		if ended {
			return output.String(), nil
		}
		ended = true
		io.WriteString(input, "\n")
		if role == attackRole { // it prints nothing, and may get no time to end
			command.Process.Kill()
		}
		err := command.Wait()
		return output.String(), err
	}
	t.Cleanup(func() { end() })
	return end
}

func percentile(sorted []time.Duration, of float64) time.Duration {
	return sorted[int(of*float64(len(sorted)-1))]
}

func describe(took []time.Duration) string {
	if len(took) == 0 {
		return "none"
	}
	sorted := slices.Sorted(slices.Values(took))
	return fmt.Sprintf("%d, p50 %v, p99 %v, slowest %v", len(sorted), percentile(sorted, 0.5), percentile(sorted, 0.99), sorted[len(sorted)-1])
}

func residentBytes(t *testing.T, pid int) int64 {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(content))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// processorTime is what a process has used so far.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')'):]))
	var ticks int64
	for _, field := range fields[12:14] { // utime, stime
		used, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += used
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// ports are the ports of metrics and of probes in qrmd's log.
func ports(t *testing.T, n *node.Node) []string {
	t.Helper()
	found := regexp.MustCompile(`metrics_port=(\d+) probe_port=(\d+)`).FindStringSubmatch(n.Log())
	if found == nil {
		t.Fatal("qrmd does not say where it serves HTTP")
	}
	return found[1:]
}

// probe asks as kubelet does: by a connection of its own each time.
func probe(t *testing.T, n *node.Node) {
	t.Helper()
	client := http.Client{Timeout: probeTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://127.0.0.1:" + ports(t, n)[1] + "/healthz")
	if err != nil {
		t.Errorf("kubelet would restart qrmd: %v", err)
		return
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("kubelet would restart qrmd: it answers %d", answer.StatusCode)
	}
}

// runHostile has a pod created whose annotations are as long as kubelet allows, deep and full of
// control characters. It may be rejected.
func runHostile(n *node.Node) {
	pod := node.Pod{Name: "hostile", Namespace: "shop", Labels: map[string]string{"katalyst.kubewharf.io/pod_role": "database"},
		Annotations: map[string]string{
			"katalyst.kubewharf.io/cpu_enhancement":    strings.Repeat("[", 60_000),
			"katalyst.kubewharf.io/memory_enhancement": "{\"numa_binding\": \"" + strings.Repeat("\x1b[2J\n", 10_000) + "\"}",
			"katalyst.kubewharf.io/qos_level":          strings.Repeat("x", 60_000),
			"shop/" + strings.Repeat("k", 50):          strings.Repeat("\x00", 60_000),
		},
		Containers: []node.Container{{Name: "main", MilliCpus: 100, MemoryBytes: 1 << 20}}}
	if _, err := n.TryRun(pod); err == nil {
		n.Remove(pod.Name)
	}
}

// seen is what a watch reports: how long admissions took, the longest that qrmd ended without a
// decision, 0 where none, and the largest memory use.
type seen struct {
	created []time.Duration
	ended   time.Duration
	peak    int64
}

// watch admits a pod every now and then. Under attack, hostile pods and kubelet's probes come
// between.
func watch(t *testing.T, n *node.Node, of mode, length time.Duration, attacked bool) (seen seen) {
	t.Helper()
	used := processorTime(t, n.Pid())
	defer func() {
		t.Logf("qrmd used %v of processor time in %v", processorTime(t, n.Pid())-used, length)
	}()
	pod := node.Pod{Namespace: "shop", Labels: map[string]string{"katalyst.kubewharf.io/pod_role": "database"},
		Containers: []node.Container{{Name: "main", MilliCpus: 1000 * of.cpus, MemoryBytes: 1 << 30}}}
	asked := 0
	for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(admissionInterval) {
		if attacked && asked%hostileEvery == 0 {
			runHostile(n)
			probe(t, n)
		}
		pod.Name = fmt.Sprintf("database-%d", asked) // no sandbox has the name of an earlier one
		asked++
		begin := time.Now()
		created, err := n.TryRun(pod)
		if err != nil && strings.Contains(err.Error(), unanswered) {
			t.Log(err)
			seen.ended = max(seen.ended, time.Since(begin))
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		seen.created = append(seen.created, created...)
		n.Remove(pod.Name)
		seen.peak = max(seen.peak, residentBytes(t, n.Pid()))
	}
	return seen
}

// expectDecisions fails for an admission that was ended without a decision, unless the machine
// itself was stalled. Then a bare hand-over, a durable record and two woken threads, took as long,
// except for the decision's wait before it.
func expectDecisions(t *testing.T, ended time.Duration, bare []time.Duration) {
	t.Helper()
	if ended == 0 {
		return
	}
	slowest := time.Duration(0)
	if len(bare) > 0 {
		slowest = slices.Max(bare)
	}
	if slowest < ended/2 {
		t.Errorf("an admission got no decision in %v, and a bare hand-over took no longer than %v meanwhile", ended, slowest)
		return
	}
	t.Logf("the machine stood still: an admission got no decision in %v, a bare hand-over took %v", ended, slowest)
}

// both has the times in peace and under attack.
type both struct{ peace, attack []time.Duration }

// compare gives a percentile in peace and under attack, and prints it.
func (b both) compare(t *testing.T, what string, of float64) (before, during time.Duration) {
	t.Helper()
	if len(b.peace) == 0 || len(b.attack) == 0 {
		return 0, 0
	}
	before = percentile(slices.Sorted(slices.Values(b.peace)), of)
	during = percentile(slices.Sorted(slices.Values(b.attack)), of)
	t.Logf("%s p%.0f: %v in peace, %v under attack, ratio %.2f", what, 100*of, before, during, float64(during)/float64(before))
	return before, during
}

// handOvers measures bare hand-overs until it is ended; none where there is no real time.
func handOvers(t *testing.T, n *node.Node, of mode) (end func() []time.Duration) {
	t.Helper()
	command := exec.Command(filepath.Join(os.Getenv("QRM_BIN_DIR"), "handover"), n.Path("handover.log"), of.name)
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return func() (took []time.Duration) {
		input.Close()
		if err := command.Wait(); err != nil {
			t.Logf("no bare hand-overs: %v", err)
			return nil
		}
		for line := range strings.Lines(output.String()) {
			nanoseconds, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Duration(nanoseconds))
		}
		return took
	}
}

// expectLimits holds an admission to its mode's limit where the kernel spares a bare hand-over of that mode, and elsewhere
// to what a bare hand-over suffers, which no program is spared: an admission is made of hand-overs.
func expectLimits(t *testing.T, of mode, admissions, bare both) {
	t.Helper()
	for _, part := range []float64{0.5, 0.99} {
		times := of.times
		if before, during := bare.compare(t, "bare hand-over", part); before > 0 && times > 0 {
			times = max(times, float64(during)/float64(before))
		}
		peace, attack := admissions.compare(t, "admission", part)
		limit := time.Duration(times * float64(peace))
		if times > 0 && attack > limit {
			t.Errorf("admission p%.0f under attack is over %v", 100*part, limit)
		}
	}
}

// The attackers occupy all CPUs with work of their own, so that also an admission that they do not touch waits for its turn.
// qrmd runs as it does on any node: what it does against that is part of what is measured. The runtime, which measures, does not
// wait for CPUs.
func TestHostileClientHarmsNoOtherClient(t *testing.T) {
	for _, of := range modes {
		t.Run(of.name, func(t *testing.T) { attackNode(t, of) })
	}
}

func attackNode(t *testing.T, of mode) {
	if of.name == "real-time" && runtime.NumCPU() < 2 {
		t.Skip("one CPU cannot be reserved and given to containers")
	}
	n := node.StartMeasured(t, of.config)
	length := attackTime() / rounds
	watch(t, n, of, length/2, false) // warms up
	before := residentBytes(t, n.Pid())
	var admissions, bare both
	var peak int64
	for range rounds {
		endBare := handOvers(t, n, of)
		peace := watch(t, n, of, length, false)
		barePeace := endBare()
		expectDecisions(t, peace.ended, barePeace)
		admissions.peace, bare.peace = append(admissions.peace, peace.created...), append(bare.peace, barePeace...)

		endPolite := runAs(t, n, "TestPoliteClient", politeRole, politeUser)
		endAttack := runAs(t, n, "TestAttack", attackRole, hostileUser)
		endBare = handOvers(t, n, of)
		attack := watch(t, n, of, length, true)
		bareAttack := endBare()
		expectDecisions(t, attack.ended, bareAttack)
		admissions.attack, bare.attack = append(admissions.attack, attack.created...), append(bare.attack, bareAttack...)
		peak = max(peak, attack.peak)
		output, err := endPolite()
		t.Log(strings.Split(output, "\n")[0])
		if err != nil {
			t.Errorf("the other user suffered: %s", output)
		}
		endAttack()
	}

	t.Logf("admissions in peace: %s", describe(admissions.peace))
	t.Logf("admissions under attack: %s", describe(admissions.attack))
	if len(admissions.attack) >= meaningfulSamples {
		expectLimits(t, of, admissions, bare)
	}
	t.Logf("memory grew by %d KiB", (peak-before)>>10)
	if grown := peak - before; grown > memoryAllowance {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
}
