package chart

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
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
	release *release
	dir     string
	cpus    [2]string // of the pools web and etl
	qrmd    runningPod
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
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

// startNode renders the chart for directories of the test's own. Its namespace is none that qrmd leaves alone.
func startNode(t *testing.T) *node {
	t.Helper()
	n := &node{kubelet: newKubelet(t, os.Getenv("QRM_CRI_SOCKET"), os.Getenv("QRM_CGROUP_PARENT")),
		dir: filepath.Join(os.Getenv("QRM_WORK_DIR"), "node"), cpus: twoCpus(t)}
	n.release = render(t, at("config", fmt.Sprintf(`
nri-socket: %s
cri-socket: %s
kubelet-state-dir: %[3]s/kubelet
kubelet-pods-socket: %[3]s/kubelet/pods-api/pods-api.sock
kubelet-pod-resources-socket: %[3]s/kubelet/pod-resources/kubelet.sock
state-dir: %[3]s/lib/state
registration-dir: %[3]s/lib/resource-plugins
plugins-registry-dir: %[3]s/lib/plugins_registry
pod-resources-socket: %[3]s/lib/pod-resources/kubelet.sock
control-socket: %[3]s/run/control.sock
metrics-address: 127.0.0.1:%d
plugins:
  cpu:
    pools:
      online: {cpus: "%s", roles: [web]}
      offline: {cpus: "%s", roles: [etl]}
    default-pool: offline
`, os.Getenv("QRM_NRI_SOCKET"), os.Getenv("QRM_CRI_SOCKET"), n.dir, freePort(t), n.cpus[0], n.cpus[1])))
	if err := os.MkdirAll(filepath.Join(n.dir, "kubelet", "pods-api"), 0o755); err != nil {
		t.Fatal(err)
	}
	return n
}

// startQrmd runs the chart's pod and waits for its readiness probe.
func (n *node) startQrmd() {
	n.t.Helper()
	template := n.release.daemonSet.Spec.Template
	n.qrmd = n.run("qrmd", namespace, template.Labels, template.Annotations, containerOf(n.t, n.release, n.dir))
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
	port := n.release.container().Ports[0].ContainerPort
	answer, err := http.Get(fmt.Sprintf("http://%s%s", net.JoinHostPort(probe.HTTPGet.Host, strconv.Itoa(int(port))), probe.HTTPGet.Path))
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

// TestPodOnNode is run by test/e2e/daemonset.sh.
func TestPodOnNode(t *testing.T) {
	if os.Getenv("QRM_CRI_SOCKET") == "" {
		t.Skip("runs within scripts/containerd.sh")
	}
	n := startNode(t)
	podsApi, err := net.Listen("unix", filepath.Join(n.dir, "kubelet/pods-api/pods-api.sock"))
	if err != nil {
		t.Fatal(err)
	}
	called := make(chan struct{})
	go func() {
		if connection, err := podsApi.Accept(); err == nil {
			connection.Close()
			close(called)
		}
		podsApi.Close()
	}()
	n.startQrmd()

	if status := n.qrmctl("status"); status["ready"] != true || status["runtime"].(map[string]any)["nri_connected"] != true {
		t.Errorf("status is %v", status)
	}
	if !n.probe(n.release.container().LivenessProbe) {
		t.Error("the liveness probe fails")
	}
	select {
	case <-called:
	case <-time.After(patience):
		t.Error("kubelet's sockets are not reached through the read-only mount")
	}
	web, etl := n.runRole("web"), n.runRole("etl")
	expect := func(when string) {
		t.Helper()
		for name, want := range map[runningPod]string{web: n.cpus[0], etl: n.cpus[1], n.qrmd: allowedCpus(t, "self")} {
			if got := n.allowed(name); got != want {
				t.Errorf("%s, the kernel gives CPUs %s instead of %s", when, got, want)
			}
		}
		if pods := n.qrmctl("pods")["pods"].([]any); len(pods) != 2 {
			t.Errorf("%s, qrmd knows of %v", when, pods)
		}
	}
	expect("after their creation")

	n.stopQrmd()
	n.startQrmd()
	expect("after qrmd's pod was replaced")
	n.stop(web, 0)
	n.stop(etl, 0)
	n.stopQrmd()
}
