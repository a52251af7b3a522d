package chart

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	topologyv1alpha2 "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	"github.com/k8stopologyawareschedwg/podfingerprint"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const (
	topologyModule = "github.com/k8stopologyawareschedwg/noderesourcetopology-api"
	topologyPath   = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies/n1"
	nodePath       = "/api/v1/nodes/n1"
	classResource  = "oom.qrm.io/first"
	publishedAt    = "qrm.io/published-at"
	repairTime     = 2 * time.Second
)

// publishedNode is qrmd on a simulated runtime, which publishes Node n1 to a kube-apiserver.
type publishedNode struct {
	*apiServer
	dir    string
	orders io.Writer
	told   *json.Decoder
	qrmd   *exec.Cmd
	token  string // of the chart's account, for a pod on n1
}

const publishAll = "publish: [topology, extended-resources, classes, class-resources, pod-classes, pod-failures, node-config, events]\n"

// installAccount makes what the chart makes for qrmd's account, and returns a token as kubelet mounts it.
func (n *publishedNode) installAccount() string {
	n.t.Helper()
	made := render(n.t, at("config", publishAll))
	n.mustCreate("/apis/rbac.authorization.k8s.io/v1/clusterroles", made.role)
	n.mustCreate("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", made.binding)
	n.mustCreate("/api/v1/namespaces/"+namespace+"/serviceaccounts", made.account)
	const group = "/apis/admissionregistration.k8s.io/v1/"
	for _, policy := range made.policies {
		n.mustCreate(group+"validatingadmissionpolicies", policy)
	}
	for _, binding := range made.bindings {
		n.mustCreate(group+"validatingadmissionpolicybindings", binding)
	}
	pod := podWith("qrmd", nil, nil)
	spec := pod["spec"].(object)
	spec["nodeName"], spec["serviceAccountName"] = "n1", made.account.Name
	n.mustCreate(podsOf(namespace), pod)
	return n.tokenOf(namespace, made.account.Name, object{"boundObjectRef": object{"apiVersion": "v1", "kind": "Pod", "name": "qrmd"}})
}

// mustBeForbidden patches with qrmd's own token, which may not.
func (n *publishedNode) mustBeForbidden(path string, patch object) {
	n.t.Helper()
	text, _ := json.Marshal(patch)
	n.await("a patch of "+path+" to be forbidden", func() bool {
		answer, err := n.request(http.MethodPatch, path, n.token, "application/merge-patch+json", text)
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusForbidden
	})
}

// createTopologyKind has the API server know NodeResourceTopology as its publishers define it.
func (s *apiServer) createTopologyKind() {
	s.t.Helper()
	where, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", topologyModule).Output()
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(where)), "manifests", "crd.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	var kind object
	if err := yaml.Unmarshal(text, &kind); err != nil {
		s.t.Fatal(err)
	}
	s.mustCreate("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", kind)
}

func startPublishedNode(t *testing.T) *publishedNode {
	t.Helper()
	programs := os.Getenv("QRM_APISERVER_DIR")
	if programs == "" {
		t.Skip("runs within test/e2e/publish.sh")
	}
	// Sockets have short paths.
	dir, err := os.MkdirTemp("/tmp", "qrm-publish")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	node := &publishedNode{apiServer: startApiServer(t, programs), dir: dir}
	node.createTopologyKind()
	node.mustCreate("/api/v1/nodes", object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": "n1"},
		"status": object{"capacity": object{"cpu": "16"}, "allocatable": object{"cpu": "16"}}})
	node.mustCreate("/api/v1/nodes", object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": "n2"}})
	node.token = node.installAccount()
	node.write("kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "%s", certificate-authority: "%s"}}], users: [{name: u, user: {token: "%s"}}]}`, node.url, node.authority, node.token))
	node.write("classes.yaml", "classes: {first: {oom_score_adj: 1000}, shown: {oom_score_adj: 500}}\n")
	sample, err := os.ReadFile("../runtime/node.yaml")
	if err != nil {
		t.Fatal(err)
	}
	node.write("qrmd.yaml", strings.ReplaceAll(string(sample), "/tmp/node", dir)+fmt.Sprintf(`
%[2]snode-name: n1
kubeconfig: %[1]s/kubeconfig
reject-as: fail
qos-classes: true
class-types: {oom: {config-file: %[1]s/classes.yaml, classes: {first: {capacity: 1000}, shown: {service-accounts: [default/default]}}}}
`, dir, publishAll))
	node.startRuntime()
	node.startDaemon()
	return node
}

func (n *publishedNode) write(name, text string) {
	n.t.Helper()
	if err := os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

func (n *publishedNode) startRuntime() {
	n.t.Helper()
	command := exec.Command(filepath.Join(os.Getenv("QRM_BIN_DIR"), "interop_runtime"), n.dir)
	orders, err := command.StdinPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	told, err := command.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { orders.Close(); command.Wait() })
	n.orders, n.told = orders, json.NewDecoder(told)
	var ready object
	if err := n.told.Decode(&ready); err != nil {
		n.t.Fatal(err)
	}
}

func (n *publishedNode) startDaemon() {
	n.t.Helper()
	log, err := os.OpenFile(filepath.Join(n.dir, "qrmd.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	n.qrmd = exec.Command(filepath.Join(os.Getenv("QRM_BIN_DIR"), "qrmd"), "--simulate", "--config="+filepath.Join(n.dir, "qrmd.yaml"))
	n.qrmd.Stdout, n.qrmd.Stderr = log, log
	if err := n.qrmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		n.qrmd.Process.Kill()
		n.qrmd.Wait()
		log.Close()
		if text, _ := os.ReadFile(log.Name()); n.t.Failed() {
			n.t.Logf("qrmd ended with:\n%s", text[max(0, len(text)-4000):])
		}
	})
}

// run makes a pod of one Guaranteed container, and returns why it was rejected.
func (n *publishedNode) run(name string, cpus int) string {
	n.t.Helper()
	return n.order(object{"command": "run", "pod": object{"name": name, "namespace": "default",
		"containers": []object{{"name": "c", "milli_cpus": cpus * 1000, "memory_bytes": 4096}}}})
}

func (n *publishedNode) order(command object) string {
	n.t.Helper()
	if err := json.NewEncoder(n.orders).Encode(command); err != nil {
		n.t.Fatal(err)
	}
	var answer struct{ Error string }
	if err := n.told.Decode(&answer); err != nil {
		n.t.Fatal(err)
	}
	return answer.Error
}

// topology is the object as Go's consumers read it; empty while there is none.
func (n *publishedNode) topology() topologyv1alpha2.NodeResourceTopology {
	n.t.Helper()
	var read topologyv1alpha2.NodeResourceTopology
	n.get(topologyPath, &read)
	return read
}

func (n *publishedNode) node() corev1.Node {
	n.t.Helper()
	var read corev1.Node
	n.get(nodePath, &read)
	return read
}

// available is what the zone has left of the resource; "" when it is not there.
func available(topology topologyv1alpha2.NodeResourceTopology, zone int, resource string) string {
	if zone >= len(topology.Zones) {
		return ""
	}
	for _, info := range topology.Zones[zone].Resources {
		if info.Name == resource {
			return info.Available.String()
		}
	}
	return ""
}

func attribute(topology topologyv1alpha2.NodeResourceTopology, name string) string {
	for _, attribute := range topology.Attributes {
		if attribute.Name == name {
			return attribute.Value
		}
	}
	return ""
}

func fingerprintOf(t *testing.T, pods ...string) string {
	t.Helper()
	print := podfingerprint.NewFingerprint(len(pods))
	for _, pod := range pods {
		if err := print.Add("default", pod); err != nil {
			t.Fatal(err)
		}
	}
	return print.Sign()
}

// offers says whether Node status has the resource as it should, in both lists.
func (n *publishedNode) offers() bool {
	status := n.node().Status
	capacity, allocatable := status.Capacity[classResource], status.Allocatable[classResource]
	return capacity.Value() == 1000 && allocatable.Value() == 1000
}

// mustRepair undoes what was published, and waits until it is back.
func (n *publishedNode) mustRepair(what string, undo func(), whole func() bool) {
	n.t.Helper()
	undo()
	begin := time.Now()
	n.await(what, whole)
	if took := time.Since(begin); took > repairTime {
		n.t.Errorf("%s took %v, more than %v", what, took, repairTime)
	}
}

func (n *publishedNode) patchStatus(status object) {
	n.t.Helper()
	if code, message := n.patch(nodePath+"/status", object{"status": status}); code != http.StatusOK {
		n.t.Fatalf("patching the Node's status: %d %s", code, message)
	}
}

func (n *publishedNode) versions() [2]string {
	return [2]string{n.node().ResourceVersion, n.topology().ResourceVersion}
}

func restTime() time.Duration {
	if seconds, err := strconv.Atoi(os.Getenv("QRM_REST_SECONDS")); err == nil {
		return time.Duration(seconds) * time.Second
	}
	return 5 * time.Second
}

func TestPublish(t *testing.T) {
	n := startPublishedNode(t)
	n.await("the topology of an empty node", func() bool { return available(n.topology(), 0, "cpu") == "8" })
	empty := n.topology()
	if owner := empty.OwnerReferences; len(owner) != 1 || owner[0].UID != n.node().UID {
		t.Errorf("the topology's owner is not the Node: %v", owner)
	}
	if got := attribute(empty, "topologyManagerPolicy"); got != "single-numa-node" {
		t.Errorf("policy %q", got)
	}
	if zone := empty.Zones[1]; zone.Name != "node-1" || zone.Type != "Node" || len(zone.Costs) != 2 || zone.Costs[1].Value != 10 {
		t.Errorf("zone %+v", zone)
	}
	n.await("the class in Node status", n.offers)
	if text := n.node().Annotations["qrm.io/class-resources"]; !strings.Contains(text, `"first"`) {
		t.Errorf("classes of the Node: %s", text)
	}
	n.await("what schedulers place by", n.describes)

	// What else the token might be good for.
	n.mustBeForbidden("/api/v1/nodes/n2/status", object{"status": object{"capacity": object{classResource: "1"}}})
	n.mustBeForbidden(nodePath+"/status", object{"metadata": object{"labels": object{"role": "control-plane"}}})
	n.mustBeForbidden(nodePath, object{"spec": object{"unschedulable": true}})

	// Pods that come and go.
	if refused := n.run("web", 4); refused != "" {
		t.Fatal(refused)
	}
	n.await("fewer CPUs and the pod's fingerprint", func() bool {
		topology := n.topology()
		return available(topology, 0, "cpu") == "4" && attribute(topology, podfingerprint.Attribute) == fingerprintOf(t, "web")
	})
	n.mustBeRefused("large")
	n.order(object{"command": "remove", "pod": "web"})
	n.await("all CPUs again", func() bool {
		topology := n.topology()
		return available(topology, 0, "cpu") == "8" && attribute(topology, podfingerprint.Attribute) == fingerprintOf(t)
	})

	n.mustShowClasses()
	n.mustEndRejectedPods()

	// What kubelet and others do to it.
	n.mustRepair("a zeroed resource to be put back", func() {
		n.patchStatus(object{"capacity": object{classResource: "0"}, "allocatable": object{classResource: "0"}})
	}, n.offers)
	n.mustRepair("a deleted resource to be put back", func() {
		n.patchStatus(object{"capacity": object{classResource: nil}, "allocatable": object{classResource: nil}})
	}, n.offers)
	n.mustRepair("another allocatable to be put back", func() { n.patchStatus(object{"allocatable": object{classResource: "7"}}) }, n.offers)
	n.mustRepair("another configuration to be put back", func() {
		if code, message := n.patch(nodePath, object{"metadata": object{"annotations": object{"qrm.io/node-config": "{}"}}}); code != http.StatusOK {
			n.t.Errorf("patching the Node: %d %s", code, message)
		}
	}, n.describes)
	n.mustRepair("a deleted topology to be made anew", func() {
		n.call(http.MethodDelete, topologyPath, "application/json", object{})
	}, func() bool { return available(n.topology(), 0, "cpu") == "8" })

	n.restart()
	before := n.versions()
	time.Sleep(restTime())
	if after := n.versions(); after != before {
		t.Errorf("something was written while nothing changed: versions %v became %v", before, after)
	}
}

// mustShowClasses runs a pod with a class, which its annotation says; nobody else may write it, and qrmd may write nothing else.
func (n *publishedNode) mustShowClasses() {
	n.t.Helper()
	const key, shown, pods = "qrm.io/class-status", `{"containers":{"c":{"oom":"shown"}}}`, "/api/v1/namespaces/default/pods"
	asks := map[string]string{"oom.resources.alpha.kubernetes.io/default": "shown"}
	pod := podWith("classy", nil, asks)
	pod["spec"].(object)["nodeName"] = "n1"
	var made corev1.Pod
	n.post(pods, pod, &made)
	if refused := n.order(object{"command": "run", "pod": object{"name": "classy", "uid": made.UID, "namespace": "default", "annotations": asks,
		"containers": []object{{"name": "c", "milli_cpus": 100, "memory_bytes": 4096}}}}); refused != "" {
		n.t.Fatal(refused)
	}
	n.await("the class on the pod", func() bool {
		var read corev1.Pod
		n.get(pods+"/classy", &read)
		return read.Annotations[key] == shown
	})
	n.mustBeForbidden(pods+"/classy/status", annotate("example.com/other", "1"))
	n.mustBeForbidden(pods+"/classy/status", object{"status": object{"phase": "Failed"}})
	n.mustBeForbidden(pods+"/classy/status", object{"metadata": object{"labels": object{"app": "web"}}})
	n.mustBeForbidden(pods+"/classy", annotate(key, "forged"))
	n.mustCreate(pods, podWith("elsewhere", nil, nil))
	n.mustBeForbidden(pods+"/elsewhere/status", annotate(key, "forged"))
	for _, part := range []string{"", "/status"} {
		if code, message := n.patch(pods+"/classy"+part, annotate(key, "forged")); code != http.StatusForbidden || !strings.Contains(message, key) {
			n.t.Errorf("another client writes the annotation at pods%s: %d %s", part, code, message)
		}
	}
	if code, message := n.create(pods, podWith("forged", nil, map[string]string{key: shown})); code != http.StatusForbidden || !strings.Contains(message, key) {
		n.t.Errorf("a new pod with the annotation: %d %s", code, message)
	}
	n.order(object{"command": "remove", "pod": "classy"})
}

// mustEndRejectedPods runs a pod that is too large, which ends with the reason; the token ends no other pods.
func (n *publishedNode) mustEndRejectedPods() {
	n.t.Helper()
	const pods = "/api/v1/namespaces/default/pods"
	onNode := func(name, node string) corev1.Pod {
		pod := podWith(name, nil, nil)
		pod["spec"].(object)["nodeName"] = node
		var made corev1.Pod
		n.post(pods, pod, &made)
		return made
	}
	made := onNode("refused", "n1")
	why := n.order(object{"command": "run", "pod": object{"name": "refused", "uid": made.UID, "namespace": "default",
		"containers": []object{{"name": "c", "milli_cpus": 12000, "memory_bytes": 4096}}}})
	if why == "" {
		n.t.Fatal("a pod of more CPUs than a NUMA node has was admitted")
	}
	n.await("the end of the pod", func() bool {
		var read corev1.Pod
		n.get(pods+"/refused", &read)
		return read.Status.Phase == corev1.PodFailed && read.Status.Reason == "PlacementRefused" && strings.Contains(why, read.Status.Message)
	})

	ends := func(more object) object {
		status := object{"phase": "Failed", "reason": "PlacementRefused", "message": "no"}
		for key, value := range more {
			status[key] = value
		}
		return object{"status": status}
	}
	onNode("waits", "n1")
	n.mustBeForbidden(pods+"/waits/status", ends(object{"reason": "Evicted"}))
	n.mustBeForbidden(pods+"/waits/status", ends(object{"phase": "Succeeded"}))
	n.mustBeForbidden(pods+"/waits/status", ends(object{"podIP": "10.0.0.1", "podIPs": []object{{"ip": "10.0.0.1"}}}))
	n.mustBeForbidden(pods+"/waits/status", ends(object{"conditions": []object{{"type": "Ready", "status": "True"}}}))
	onNode("far", "n2")
	n.mustBeForbidden(pods+"/far/status", ends(nil))
	onNode("runs", "n1")
	if code, message := n.patch(pods+"/runs/status", object{"status": object{"phase": "Running"}}); code != http.StatusOK {
		n.t.Fatalf("letting a pod run: %d %s", code, message)
	}
	n.mustBeForbidden(pods+"/runs/status", ends(nil))
}

// describes says whether the Node has the machine and the policy that qrmd places by.
func (n *publishedNode) describes() bool {
	text := n.node().Annotations["qrm.io/node-config"]
	return strings.HasPrefix(text, `{machine: "described:cpus=0-15 `) && strings.Contains(text, `topology-policy: single-numa-node`)
}

// mustBeRefused runs a pod that is too large, whose event says why.
func (n *publishedNode) mustBeRefused(name string) {
	n.t.Helper()
	why := n.run(name, 12)
	if why == "" {
		n.t.Fatal("a pod of more CPUs than a NUMA node has was admitted")
	}
	n.await("the event of a refused pod", func() bool {
		var events corev1.EventList
		n.get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name="+name, &events)
		return len(events.Items) == 1 && events.Items[0].Type == "Warning" && events.Items[0].Reason == "PlacementRefused" &&
			strings.Contains(why, events.Items[0].Message)
	})
}

// restart kills qrmd, and checks that what it published stays as it is.
func (n *publishedNode) restart() {
	n.t.Helper()
	before := n.said()
	n.qrmd.Process.Kill()
	n.qrmd.Wait()
	n.startDaemon()
	if refused := n.runSoon("after"); refused != "" {
		n.t.Fatal(refused)
	}
	n.await("the new qrmd to publish", func() bool { return available(n.topology(), 0, "cpu") == "6" })
	n.await("the new qrmd's sign of life", func() bool { return n.node().Annotations[publishedAt] != before.Annotations[publishedAt] })
	after := n.said()
	delete(before.Annotations, publishedAt)
	delete(after.Annotations, publishedAt)
	if !reflect.DeepEqual(before, after) {
		n.t.Errorf("a restart changed the Node: %+v became %+v", before, after)
	}
}

// said is the Node without what each write of it changes.
func (n *publishedNode) said() corev1.Node {
	node := n.node()
	node.ResourceVersion, node.ManagedFields = "", nil
	return node
}

// runSoon runs a pod of two CPUs as soon as qrmd is connected to the runtime.
func (n *publishedNode) runSoon(name string) string {
	n.t.Helper()
	socket := filepath.Join(n.dir, "control.sock")
	n.await("qrmd to be ready", func() bool {
		out, _ := exec.Command(filepath.Join(os.Getenv("QRM_BIN_DIR"), "qrmctl"), "status", "--control-socket="+socket).CombinedOutput()
		return strings.Contains(string(out), "connected, 1 connect") && !strings.Contains(string(out), "not connected")
	})
	return n.run(name, 2)
}

// asGuaranteed makes a pod of one container of whole CPUs.
func asGuaranteed(name string, cpus int) object {
	amounts := object{"cpu": strconv.Itoa(cpus), "memory": "4Ki"}
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name}, "spec": object{
		"containers":  []object{{"name": "c", "image": "localhost/none", "resources": object{"requests": amounts, "limits": amounts}}},
		"tolerations": []object{{"operator": "Exists"}}}}
}

// qrm-scheduler knows of the node what qrmd wrote, and nothing else: where it says that there is room, qrmd agrees, and where
// it says that there is none, too.
func TestPublishedNodeIsScheduledAsItAdmits(t *testing.T) {
	n := startPublishedNode(t)
	n.await("what schedulers place by", n.describes)
	amounts := object{"cpu": "16", "memory": "64Gi", "pods": "110"}
	n.patchStatus(object{"capacity": amounts, "allocatable": amounts, "conditions": []object{{"type": "Ready", "status": "True"}}})
	c := startSchedulingBy(n.apiServer, "numa,classes")
	isOn := func(name string) func() bool {
		return func() bool { return slices.Contains(c.bound()["n1"], name) }
	}
	for _, name := range []string{"a", "b"} {
		c.mustCreate(defaultPods, asGuaranteed(name, 6))
		c.await(name+" to be bound", isOn(name))
		if refused := n.run(name, 6); refused != "" {
			t.Errorf("the node does not admit %s: %s", name, refused)
		}
	}

	// The node has four CPUs left, and none of its NUMA nodes has.
	c.mustCreate(defaultPods, asGuaranteed("c", 4))
	c.mustWaitFor("c", "1 the node has too little cpu left where it is needed")
	if n.run("c", 4) == "" {
		t.Error("the node admits what qrm-scheduler refuses")
	}

	c.deletePod("a")
	n.order(object{"command": "remove", "pod": "a"})
	c.await("c to be bound where a was", isOn("c"))
	if refused := n.run("c", 4); refused != "" {
		t.Errorf("the node does not admit c: %s", refused)
	}

	// No pod may ask for its class, and another class does not exist.
	for class, why := range map[string]string{"first": "1 its namespace may not ask for that class of oom there", "last": "1 the node has no such class of oom"} {
		pod := asGuaranteed(class, 1)
		pod["metadata"].(object)["annotations"] = object{"oom.resources.alpha.kubernetes.io/default": class}
		c.mustCreate(defaultPods, pod)
		c.mustWaitFor(class, why)
	}
	if text := c.dump("/dump?compare"); !strings.Contains(text, `"equal": true`) {
		t.Errorf("the cache is not what a new one is: %s", text)
	}
}

// mustWaitFor waits until the pod says why it waits for a node.
func (c *schedulingCluster) mustWaitFor(name, why string) {
	c.t.Helper()
	c.await(why+" on pod "+name, func() bool {
		var pod corev1.Pod
		c.get(defaultPods+"/"+name, &pod)
		return len(pod.Status.Conditions) > 0 && strings.Contains(pod.Status.Conditions[0].Message, why)
	})
}
