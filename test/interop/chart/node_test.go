package chart

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const roleLabel = "katalyst.kubewharf.io/pod_role"

// node is a real containerd with the chart's pod on it.
type node struct {
	*kubelet
	release    *release
	dir        string
	kubeletDir string // where the runtime's directory does not show it
	podsApi    net.Listener
	cpus       [2]string // of the pools web and etl
	qrmd       runningPod
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// twoCpus are the first and the last that this process may use.
func twoCpus(t *testing.T) [2]string {
	list := strings.FieldsFunc(allowedCpus(t, "self"), func(r rune) bool { return r == ',' || r == '-' })
	return [2]string{list[0], list[len(list)-1]}
}

func freePort(t *testing.T) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// startNode renders the chart for directories of this test. Its namespace is not one that qrmd
// skips.
func startNode(t *testing.T, name string, overrides values) *node {
	t.Helper()
	n := &node{kubelet: newKubelet(t, os.Getenv("QRM_CRI_SOCKET"), os.Getenv("QRM_CGROUP_PARENT")),
		dir: filepath.Join(os.Getenv("QRM_WORK_DIR"), name), kubeletDir: t.TempDir(), cpus: twoCpus(t)}
	n.release = renderIn(t, otherNamespace, with(overrides, "config", ownRule+fmt.Sprintf(`
nri-socket: %[1]s
cri-socket: %[2]s
kubelet-state-dir: %[4]s
kubelet-pods-socket: %[4]s/pods-api/pods-api.sock
kubelet-url: ""
kubelet-pod-resources-socket: %[4]s/pod-resources/kubelet.sock
state-dir: %[3]s/lib/state
registration-dir: %[3]s/lib/resource-plugins
plugins-registry-dir: %[3]s/lib/plugins_registry
pod-resources-socket: %[3]s/lib/pod-resources/kubelet.sock
pod-resources-group: "65534"
control-socket: %[3]s/run/control.sock
metrics-address: 127.0.0.1:%[5]d
probe-address: 127.0.0.1:%[8]d
plugins:
  cpu:
    pools:
      online: {cpus: "%[6]s", roles: [web]}
      offline: {cpus: "%[7]s", roles: [etl]}
    default-pool: offline
`, os.Getenv("QRM_NRI_SOCKET"), os.Getenv("QRM_CRI_SOCKET"), n.dir, n.kubeletDir, freePort(t), n.cpus[0], n.cpus[1], freePort(t))))
	err := os.MkdirAll(filepath.Join(n.kubeletDir, "pods-api"), 0o755)
	if err == nil {
		n.podsApi, err = net.Listen("unix", filepath.Join(n.kubeletDir, "pods-api/pods-api.sock"))
	}
	if err != nil {
		t.Fatal(err)
	}
	n.writeState("cpu_manager_state", "none")
	n.writeState("memory_manager_state", "None")
	return n
}

// writeState replaces a state file as kubelet does.
func (n *node) writeState(name, policy string) {
	n.t.Helper()
	file := filepath.Join(n.kubeletDir, name)
	err := os.WriteFile(file+".new", []byte(`{"policyName":"`+policy+`"}`), 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// startQrmd runs the chart's pod and waits for its readiness probe.
func (n *node) startQrmd() {
	n.t.Helper()
	template := n.release.daemonSet.Spec.Template
	n.qrmd = n.run("qrmd", otherNamespace, template.Labels, template.Annotations, containerOf(n.t, n.release, n.dir))
	await(n.t, "the startup probe", func() bool { return n.probe(n.release.container().StartupProbe) })
	await(n.t, "the readiness probe", func() bool { return n.probe(n.release.container().ReadinessProbe) })
}

// stopQrmd ends it as a rolling update does.
func (n *node) stopQrmd() {
	n.t.Helper()
	if code := n.stop(n.qrmd, *n.release.pod().TerminationGracePeriodSeconds); code != 0 {
		n.t.Errorf("qrmd ended with %d", code)
	}
}

func (n *node) probe(probe *corev1.Probe) bool {
	answer, err := http.Get(fmt.Sprintf("http://%s%s", net.JoinHostPort(probe.HTTPGet.Host, probe.HTTPGet.Port.String()), probe.HTTPGet.Path))
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// qrmctl is what `qrmctl ... -o json` prints in qrmd's container.
func (n *node) qrmctl(command string) map[string]any {
	n.t.Helper()
	text, err := n.exec(n.qrmd, "qrmctl", command, "-o", "json")
	document := map[string]any{}
	if err == nil {
		err = json.Unmarshal([]byte(text), &document)
	}
	if err != nil {
		n.t.Fatalf("%s: %v", text, err)
	}
	return document
}

func (n *node) runRole(role string) runningPod {
	n.t.Helper()
	return n.run(role, "default", map[string]string{roleLabel: role}, nil, &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: "main"},
		Image:    &cri.ImageSpec{Image: os.Getenv("QRM_IMAGE")},
		Linux: &cri.LinuxContainerConfig{Resources: &cri.LinuxContainerResources{CpuShares: 102},
			SecurityContext: &cri.LinuxContainerSecurityContext{
				NamespaceOptions: &cri.NamespaceOption{Network: cri.NamespaceMode_NODE, Pid: cri.NamespaceMode_CONTAINER}}},
	})
}

// awaitPodsApi waits until qrmd calls the double of kubelet's Pods API, and hangs up.
func (n *node) awaitPodsApi() {
	n.t.Helper()
	n.podsApi.(*net.UnixListener).SetDeadline(time.Now().Add(patience))
	connection, err := n.podsApi.Accept()
	if err != nil {
		n.t.Errorf("kubelet's sockets are not reached through the read-only mount: %v", err)
		return
	}
	connection.Close()
	n.podsApi.Close()
}

// playMainJob runs containers of two pools, before and after qrmd's pod was replaced.
func (n *node) playMainJob() {
	n.t.Helper()
	if status := n.qrmctl("status"); status["ready"] != true || status["runtime"].(map[string]any)["nri_connected"] != true {
		n.t.Errorf("status is %v", status)
	}
	if !n.probe(n.release.container().LivenessProbe) {
		n.t.Error("the liveness probe fails")
	}
	web, etl := n.runRole("web"), n.runRole("etl")
	expect := func(when string) {
		n.t.Helper()
		// Its own pod asks for nothing, and stays on the default pool.
		await(n.t, "qrmd to place its own pod", func() bool { return n.allowed(n.qrmd) == n.cpus[1] })
		for name, want := range map[runningPod]string{web: n.cpus[0], etl: n.cpus[1]} {
			if got := n.allowed(name); got != want {
				n.t.Errorf("%s, the kernel gives CPUs %s instead of %s", when, got, want)
			}
		}
		if pods := n.qrmctl("pods")["pods"].([]any); len(pods) != 3 {
			n.t.Errorf("%s, qrmd knows of %v instead of these and its own", when, pods)
		}
	}
	expect("after their creation")
	n.stopQrmd()
	n.startQrmd()
	expect("after qrmd's pod was replaced")
	n.stop(web, 0)
	n.stop(etl, 0)
}

// expectRights compares with the kernel's values for qrmd's process.
func (n *node) expectRights(want map[string]string) {
	n.t.Helper()
	for key, value := range want {
		if got := processStatus(n.t, n.process(n.qrmd), key); got != value {
			n.t.Errorf("%s is %s instead of %s", key, got, value)
		}
	}
}

// skipWithoutRuntime is for the tests that test/e2e/daemonset.sh runs.
func skipWithoutRuntime(t *testing.T) {
	if os.Getenv("QRM_CRI_SOCKET") == "" {
		t.Skip("runs within scripts/containerd.sh")
	}
}

func TestPodOnNodeNeedsFewRights(t *testing.T) {
	skipWithoutRuntime(t)
	n := startNode(t, "least", nil)
	n.startQrmd()
	n.awaitPodsApi()
	const chownAndSysNice = "0000000000800001"
	n.expectRights(map[string]string{"CapPrm": chownAndSysNice, "CapEff": chownAndSysNice, "CapBnd": chownAndSysNice,
		"CapAmb": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2"})
	n.playMainJob()
	n.stopQrmd()
}

func TestPodOnNodeMayBePrivileged(t *testing.T) {
	skipWithoutRuntime(t)
	n := startNode(t, "privileged", at("privileged", true))
	n.startQrmd()
	n.awaitPodsApi()
	n.expectRights(map[string]string{"CapEff": processStatus(t, "self", "CapEff"), "NoNewPrivs": "0", "Seccomp": "0"})
	n.playMainJob()
	n.stopQrmd()
}

func TestPodOnNodeStartsAgainToSeeKubeletsNewPolicy(t *testing.T) {
	skipWithoutRuntime(t)
	n := startNode(t, "policy", nil)
	n.startQrmd()
	n.awaitPodsApi()
	n.writeState("cpu_manager_state", "static")
	await(t, "qrmd to end", func() bool { return n.status(n.qrmd).Status.State == cri.ContainerState_CONTAINER_EXITED })
	if code := n.stop(n.qrmd, 0); code != 0 {
		t.Errorf("it ended with %d", code)
	}

	template := n.release.daemonSet.Spec.Template
	n.qrmd = n.run("qrmd", otherNamespace, template.Labels, template.Annotations, containerOf(t, n.release, n.dir))
	await(t, "the startup probe", func() bool { return n.probe(n.release.container().StartupProbe) })
	if problems := fmt.Sprint(n.qrmctl("status")); !strings.Contains(problems, "cpuManagerPolicy: none") {
		t.Errorf("it does not stand aside for kubelet: %s", problems)
	}
	n.stopQrmd()
}
