package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	fakeGroup   = "/apis/fake.qrm.io/v1/nodefakeresourcestatuses"
	requestKey  = "fake.qrm.io/request"
	defaultPods = "/api/v1/namespaces/default/pods"
	wakeTime    = 2 * time.Second // half of it on a machine that does nothing else
)

// schedulingCluster is an unmodified kube-apiserver and kube-scheduler, whose extender is qrm-scheduler.
type schedulingCluster struct {
	*apiServer
	dir      string
	extender string
	monitor  string    // where it serves metrics
	command  []string  // qrm-scheduler, or a program with an author's resources, and its flags
	program  *exec.Cmd // qrm-scheduler
	asking   *exec.Cmd // kube-scheduler
	config   string    // of kube-scheduler
	mutex    sync.Mutex
	asked    map[string][]byte // the first body of each verb
	before   map[string]func() // called once, before the first call of the verb is passed on
}

// get reads an object.
func (s *apiServer) get(path string, into any) {
	s.t.Helper()
	request, err := http.NewRequest(http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer admin")
	answer, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(read, into); err != nil {
		s.t.Fatal(path, err)
	}
}

func (c *schedulingCluster) write(name, text string) string {
	c.t.Helper()
	file := filepath.Join(c.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return file
}

// recorder passes calls on to the extender as it is now, and keeps the first body of each verb.
func (c *schedulingCluster) recorder() *http.Server {
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		target, _ := url.Parse(c.extender)
		r.SetURL(target)
	}}
	return &http.Server{Addr: fmt.Sprintf("127.0.0.1:%d", freePort(c.t)), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		verb := strings.TrimPrefix(r.URL.Path, "/")
		c.mutex.Lock()
		if c.asked[verb] == nil {
			c.asked[verb] = body
		}
		before := c.before[verb]
		delete(c.before, verb)
		c.mutex.Unlock()
		if before != nil {
			before()
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	})}
}

// installSchedulerAccount makes the account and the rights that charts/qrm-scheduler made, and returns a token.
func (c *schedulingCluster) installSchedulerAccount(made *schedulerRelease) string {
	c.t.Helper()
	const group = "/apis/rbac.authorization.k8s.io/v1/"
	c.mustCreate("/api/v1/namespaces/default/serviceaccounts", made.account)
	c.mustCreate(group+"clusterroles", made.clusterRole)
	for _, binding := range made.clusterBindings {
		c.mustCreate(group+"clusterrolebindings", binding)
	}
	c.mustCreate(group+"namespaces/default/roles", made.role)
	for _, binding := range made.bindings {
		c.mustCreate(group+"namespaces/"+binding.Namespace+"/rolebindings", binding)
	}
	return c.tokenOf("default", made.account.Name, object{})
}

// kubeconfig writes a file with the token.
func (c *schedulingCluster) kubeconfig(name, token string) string {
	return c.kubeconfigAt(name, token, c.url, c.authority)
}

func (c *schedulingCluster) kubeconfigAt(name, token, url, authority string) string {
	return c.write(name, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "%s", certificate-authority: "%s"}}], users: [{name: u, user: {token: "%s"}}]}`, url, authority, token))
}

// startExtender runs qrm-scheduler until the test ends, or until it is killed.
func (c *schedulingCluster) startExtender() {
	c.t.Helper()
	log, err := os.OpenFile(filepath.Join(c.dir, "qrm-scheduler.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	command := exec.Command(c.command[0], c.command[1:]...)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.program = command
	c.t.Cleanup(func() { c.killExtender(command) })
	log.Close()
}

func (c *schedulingCluster) killExtender(command *exec.Cmd) {
	command.Process.Kill()
	command.Wait()
}

func startSchedulingCluster(t *testing.T, flags ...string) *schedulingCluster {
	t.Helper()
	programs := os.Getenv("QRM_APISERVER_DIR")
	if programs == "" {
		t.Skip("runs within test/e2e/scheduler.sh")
	}
	server := startApiServer(t, programs)
	server.createFakeKind()
	return startSchedulingBy(server, "fake", flags...)
}

// createFakeKind makes known to the API server the custom resources of the examples, as their author ships them.
func (s *apiServer) createFakeKind() {
	s.t.Helper()
	text, err := os.ReadFile("../../../scheduler/examples/crds.yaml")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var definition object
		if err := yaml.Unmarshal([]byte(document), &definition); err != nil {
			s.t.Fatal(err)
		}
		s.mustCreate("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
	}
}

// startSchedulingBy runs kube-scheduler and qrm-scheduler, which judges by the resources.
func startSchedulingBy(server *apiServer, resources string, flags ...string) *schedulingCluster {
	server.t.Helper()
	name := map[bool]string{true: "example-scheduler", false: "qrm-scheduler"}[strings.Contains(resources, "fake")]
	rule := values{"apiGroups": []any{"fake.qrm.io"}, "resources": []any{"nodefakeresourcestatuses"}, "verbs": []any{"get", "list", "watch"}}
	command := []string{filepath.Join(os.Getenv("QRM_BIN_DIR"), name), "serve", "--resources=" + resources}
	return startSchedulingWith(server, renderScheduler(server.t, at("rules", []any{rule})), append(command, flags...))
}

// startSchedulingWith runs kube-scheduler and an extender by its command, with the rights that the chart made.
func startSchedulingWith(server *apiServer, made *schedulerRelease, command []string) *schedulingCluster {
	t := server.t
	t.Helper()
	dir := t.TempDir()
	cluster := &schedulingCluster{apiServer: server, dir: dir, asked: map[string][]byte{}, before: map[string]func(){}}
	port, monitor := freePort(t), freePort(t)
	cluster.extender, cluster.monitor = fmt.Sprintf("http://127.0.0.1:%d", port), fmt.Sprintf("http://127.0.0.1:%d", monitor)
	token := cluster.installSchedulerAccount(made)
	cluster.write("extender.token", token)
	cluster.command = append(command, "--kubeconfig="+cluster.kubeconfig("extender.kubeconfig", token),
		fmt.Sprintf("--address=127.0.0.1:%d", port), fmt.Sprintf("--monitor-address=127.0.0.1:%d", monitor), "--lease-namespace=default")
	cluster.startExtender()
	t.Cleanup(func() {
		if text, _ := os.ReadFile(filepath.Join(dir, "qrm-scheduler.log")); t.Failed() {
			t.Logf("qrm-scheduler ended with:\n%s", text[max(0, len(text)-4000):])
		}
	})
	recorder := cluster.recorder()
	go recorder.ListenAndServe()
	t.Cleanup(func() { recorder.Close() })
	cluster.config = cluster.write("scheduler.yaml", fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %s}
extenders:
- {urlPrefix: "http://%s", filterVerb: filter, prioritizeVerb: prioritize, preemptVerb: preempt, bindVerb: bind, weight: 1, nodeCacheCapable: true,
   httpTimeout: 5s}
`, cluster.kubeconfig("kubeconfig", "admin"), recorder.Addr))
	cluster.startKubeScheduler()
	return cluster
}

func (c *schedulingCluster) startKubeScheduler() {
	c.t.Helper()
	c.asking = run(c.t, filepath.Join(c.dir, "kube-scheduler.log"), filepath.Join(os.Getenv("QRM_APISERVER_DIR"), "kube-scheduler"),
		"--config="+c.config, fmt.Sprint("--secure-port=", freePort(c.t)),
		"--authentication-skip-lookup", "--authorization-always-allow-paths=/*", "--cert-dir="+filepath.Join(c.dir, "scheduler"))
}

func (c *schedulingCluster) addNode(name string, capacity int) {
	c.t.Helper()
	c.addBareNode(name)
	c.mustCreate(fakeGroup, object{"apiVersion": "fake.qrm.io/v1", "kind": "NodeFakeResourceStatus", "metadata": object{"name": name},
		"spec": object{"nodeName": name, "fakeResource": capacity}})
}

// addBareNode adds a node without the resource, so that qrm-scheduler places no pod there.
func (c *schedulingCluster) addBareNode(name string) {
	c.t.Helper()
	allocatable := object{"cpu": "64", "memory": "64Gi", "pods": "110"}
	c.mustCreate("/api/v1/nodes", object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": name},
		"status": object{"capacity": allocatable, "allocatable": allocatable, "conditions": []object{{"type": "Ready", "status": "True"}}}})
}

type podList struct {
	Items []struct {
		Metadata struct{ Name string }
		Spec     struct{ NodeName string }
		Status   struct {
			Conditions []struct{ Reason, Message string }
		}
	}
}

// bound counts the pods of each node; those without one are under "".
func (c *schedulingCluster) bound() map[string][]string {
	c.t.Helper()
	var list podList
	c.get(defaultPods, &list)
	nodes := map[string][]string{}
	for _, pod := range list.Items {
		nodes[pod.Spec.NodeName] = append(nodes[pod.Spec.NodeName], pod.Metadata.Name)
	}
	return nodes
}

// dump asks the extender, and waits for an extender that was started a moment ago.
func (c *schedulingCluster) dump(path string) string {
	c.t.Helper()
	var answer *http.Response
	c.await("the extender to answer", func() bool {
		var err error
		answer, err = http.Get(c.extender + path)
		return err == nil
	})
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

func TestScheduler(t *testing.T) {
	cluster := startSchedulingCluster(t)
	const capacity, pods = 5, 16
	cluster.addNode("n1", capacity-1)
	cluster.addNode("n2", 1)
	var creators sync.WaitGroup
	for i := range pods {
		creators.Add(1)
		go func() {
			defer creators.Done()
			pod := podWith(fmt.Sprint("p", i), nil, map[string]string{requestKey: "1"})
			// A new node has a taint until a controller, which there is none of, has seen that it is ready.
			pod["spec"].(object)["tolerations"] = []object{{"operator": "Exists"}}
			if code, message := cluster.create(defaultPods, pod); code != http.StatusCreated {
				t.Errorf("pod %d: %d %s", i, code, message)
			}
		}()
	}
	creators.Wait()
	full := func() bool {
		nodes := cluster.bound()
		return len(nodes["n1"]) == capacity-1 && len(nodes["n2"]) == 1
	}
	cluster.await("as many pods as there is room for", full)

	// Each waiting pod was judged after the last one was bound, and says why it waits.
	cluster.await("a reason on each pod that waits", func() bool {
		var list podList
		cluster.get(defaultPods, &list)
		reasons := 0
		for _, pod := range list.Items {
			if pod.Spec.NodeName == "" && len(pod.Status.Conditions) > 0 && strings.Contains(pod.Status.Conditions[0].Message, "2 not enough fake") {
				reasons++
			}
		}
		return reasons == pods-capacity
	})
	if !full() {
		t.Errorf("more pods are bound than there is room for: %v", cluster.bound())
	}
	if text := cluster.dump("/dump?compare"); !strings.Contains(text, `"equal": true`) {
		t.Errorf("the cache is not what a new one is: %s", text)
	}

	// A pod that goes makes room for a waiting pod.
	gone := cluster.bound()["n1"][0]
	cluster.deletePod(gone)
	cluster.await("the place that became free to be taken", func() bool { return full() && !slices.Contains(cluster.bound()["n1"], gone) })

	cluster.mustHaveAsked("filter", "prioritize", "bind")
}

// mustHaveAsked writes what kube-scheduler asked where QRM_RECORD_DIR is set.
func (c *schedulingCluster) mustHaveAsked(verbs ...string) {
	c.t.Helper()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, verb := range verbs {
		body, folder := c.asked[verb], os.Getenv("QRM_RECORD_DIR")
		if body == nil {
			c.t.Errorf("kube-scheduler never asked to %s", verb)
		} else if folder != "" {
			if err := os.WriteFile(filepath.Join(folder, verb+".json"), body, 0o644); err != nil {
				c.t.Error(err)
			}
		}
	}
}

// Two nodes are full of pods of less priority. Where one of them ends there is room for the CPUs of the pod that waits; on one
// of the nodes only there is then what qrm-scheduler counts, too. Before, the other one has all CPUs, and rejects the pod
// whatever ends.
func TestSchedulerPreemptsWhereItHelps(t *testing.T) {
	c := startSchedulingCluster(t, "--lease-name=")
	c.addNode("n2", 0)
	c.runPod("never", "1")
	c.awaitFailedScheduling("never", "Preemption is not helpful for scheduling")
	c.deletePod("never")
	c.addNode("n1", 1)
	c.mustCreate("/apis/scheduling.k8s.io/v1/priorityclasses", object{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
		"metadata": object{"name": "high"}, "value": 1000})
	large := func(name, request string, more object) {
		pod := podWith(name, nil, map[string]string{requestKey: request})
		spec := pod["spec"].(object)
		spec["tolerations"] = []object{{"operator": "Exists"}}
		spec["containers"].([]object)[0]["resources"] = object{"requests": object{"cpu": "40"}}
		maps.Copy(spec, more)
		c.mustCreate(defaultPods, pod)
	}
	large("on-n1", "1", object{"nodeName": "n1"})
	large("on-n2", "0", object{"nodeName": "n2"})
	large("urgent", "1", object{"priorityClassName": "high"})

	c.await("kube-scheduler to end a pod", func() bool { return c.isEnding("on-n1") || c.isEnding("on-n2") })
	if c.isEnding("on-n2") {
		t.Error("a pod was ended where that does not help")
	}
	c.deletePod("on-n1")
	c.await("the pod of more priority to be bound", func() bool { return slices.Contains(c.bound()["n1"], "urgent") })
	c.mustHaveAsked("preempt")
}

// awaitFailedScheduling waits for an event of the pod with that reason.
func (c *schedulingCluster) awaitFailedScheduling(pod, reason string) {
	c.t.Helper()
	c.await("the reason on the pod "+pod, func() bool {
		var events struct {
			Items []struct{ Reason, Message string }
		}
		c.get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name="+pod, &events)
		for _, event := range events.Items {
			if event.Reason == "FailedScheduling" && strings.Contains(event.Message, reason) {
				return true
			}
		}
		return false
	})
}

func (c *schedulingCluster) isEnding(name string) bool {
	var pod struct {
		Metadata struct{ DeletionTimestamp string }
	}
	c.get(defaultPods+"/"+name, &pod)
	return pod.Metadata.DeletionTimestamp != ""
}

// Another scheduler binds a pod between kube-scheduler's decision and its binding: kubelet would reject one of the pods.
func TestSchedulerRequeuesAPodThatWasPlacedByAnOlderView(t *testing.T) {
	c := startSchedulingCluster(t, "--lease-name=")
	c.addNode("n1", 5)
	large := func(name string) object {
		pod := podWith(name, nil, map[string]string{requestKey: "1"})
		spec := pod["spec"].(object)
		spec["tolerations"] = []object{{"operator": "Exists"}}
		spec["containers"].([]object)[0]["resources"] = object{"requests": object{"cpu": "40"}}
		return pod
	}
	c.mutex.Lock()
	c.before["bind"] = func() {
		thief := large("thief")
		thief["spec"].(object)["nodeName"] = "n1"
		c.mustCreate(defaultPods, thief)
		c.await("the other scheduler's pod to be seen", func() bool { return strings.Contains(c.dump("/dump"), "default/thief") })
	}
	c.mutex.Unlock()
	c.mustCreate(defaultPods, large("late"))
	c.awaitFailedScheduling("late", "by which the node has too little cpu")
	c.addNode("n2", 5)
	c.mustBind("late", 2*wakeTime)
}

// The node has CPUs for both pods, and the resource for one of them.
func TestSchedulerPreemptsForAnExtendedResourceAlone(t *testing.T) {
	c := startSchedulingCluster(t, "--lease-name=", "--preemption=true")
	c.addNode("n1", 1)
	c.mustCreate("/apis/scheduling.k8s.io/v1/priorityclasses", object{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
		"metadata": object{"name": "high"}, "value": 1000})
	c.runPod("ordinary", "1")
	c.mustBind("ordinary", apiServerPatience)
	urgent := podWith("urgent", nil, map[string]string{requestKey: "1"})
	urgent["spec"].(object)["tolerations"] = []object{{"operator": "Exists"}}
	urgent["spec"].(object)["priorityClassName"] = "high"
	c.mustCreate(defaultPods, urgent)
	c.await("the pod of less priority to end", func() bool { return c.isEnding("ordinary") })
	c.runPod("thief", "1")
	c.mustWait("thief")
	c.deletePod("ordinary")
	c.mustBind("urgent", wakeTime)
	if c.isBound("thief") {
		t.Error("a pod of less priority took the room")
	}
}

// A pod has its CPUs until kubelet has taken them away, although its specification has less already. kube-scheduler itself
// sees more CPUs than the node has for exclusive use.
func TestSchedulerCountsWhatAShrinkingPodStillHas(t *testing.T) {
	if os.Getenv("QRM_APISERVER_DIR") == "" {
		t.Skip("runs within test/e2e/scheduler.sh")
	}
	c := startSchedulingBy(startApiServer(t, os.Getenv("QRM_APISERVER_DIR")), "numa", "--lease-name=")
	amounts := object{"cpu": "64", "memory": "64Gi", "pods": "110"}
	c.mustCreate("/api/v1/nodes", object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": "n1", "annotations": object{
		"qrm.io/node-config": `{machine: "synthetic:package:1 [numa(memory=64GiB)] core:8 pu:1", topology-policy: single-numa-node,
plugins: {cpu: {static: true, reserved-cpus: "0"}, memory: {static: true}}}`}},
		"status": object{"capacity": amounts, "allocatable": amounts, "conditions": []object{{"type": "Ready", "status": "True"}}}})
	shrinking := asGuaranteed("shrinking", 3)
	shrinking["spec"].(object)["nodeName"] = "n1"
	c.mustCreate(defaultPods, shrinking)
	has := func(cpus string) {
		t.Helper()
		amounts := object{"cpu": cpus, "memory": "4Ki"}
		if code, message := c.patch(defaultPods+"/shrinking/status", object{"status": object{"containerStatuses": []object{{"name": "c",
			"image": "localhost/none", "imageID": "", "ready": true, "restartCount": 0, "allocatedResources": amounts,
			"resources": object{"requests": amounts, "limits": amounts}}}}}); code != http.StatusOK {
			t.Fatal(code, message)
		}
	}
	has("3")
	resize := object{"spec": object{"containers": []object{{"name": "c",
		"resources": object{"requests": object{"cpu": "1"}, "limits": object{"cpu": "1"}}}}}}
	if code, message := c.call(http.MethodPatch, defaultPods+"/shrinking/resize", "application/strategic-merge-patch+json", resize); code != http.StatusOK {
		t.Fatal(code, message)
	}
	c.mustCreate(defaultPods, asGuaranteed("next", 5))
	c.awaitFailedScheduling("next", "the node has too little cpu left where it is needed")
	has("1")
	c.mustBind("next", apiServerPatience)
}

// available is what the cache has of the node's resource.
func (c *schedulingCluster) available(node string) float64 {
	answer, err := http.Get(c.extender + "/dump")
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	var dump struct {
		Nodes map[string]struct{ Resources map[string]float64 }
	}
	if err := json.NewDecoder(answer.Body).Decode(&dump); err != nil {
		c.t.Fatal(err)
	}
	return dump.Nodes[node].Resources["fake"]
}

// mustHave waits until so much is available on n1, and then with a qrm-scheduler that knows nothing of the one before.
func (c *schedulingCluster) mustHave(amount float64, step string) {
	c.t.Helper()
	c.await(fmt.Sprintf("%v to be available %s", amount, step), func() bool { return c.available("n1") == amount })
	c.killExtender(c.program)
	c.startExtender()
	c.await(fmt.Sprintf("%v to be available again %s", amount, step), func() bool { return c.available("n1") == amount })
}

func (c *schedulingCluster) runPod(name, request string) {
	c.t.Helper()
	pod := podWith(name, nil, map[string]string{requestKey: request})
	pod["spec"].(object)["tolerations"] = []object{{"operator": "Exists"}}
	c.mustCreate(defaultPods, pod)
}

// deletePod does so at once: there is no kubelet that would end it.
func (c *schedulingCluster) deletePod(name string) {
	c.t.Helper()
	if code, message := c.call(http.MethodDelete, defaultPods+"/"+name, "application/json", object{"gracePeriodSeconds": 0}); code != http.StatusOK {
		c.t.Errorf("deleting %s: %d %s", name, code, message)
	}
}

func (c *schedulingCluster) setCapacity(amount int) {
	c.t.Helper()
	if code, message := c.patch(fakeGroup+"/n1", object{"spec": object{"fakeResource": amount}}); code != http.StatusOK {
		c.t.Fatal(code, message)
	}
}

func (c *schedulingCluster) mustBind(name string, within time.Duration) {
	c.t.Helper()
	begin := time.Now()
	for !c.isBound(name) {
		if time.Since(begin) > apiServerPatience {
			c.t.Fatalf("pod %s is not bound", name)
		}
		time.Sleep(10 * time.Millisecond)
	}
	took := time.Since(begin)
	c.t.Logf("pod %s was bound after %v", name, took)
	if took > within {
		c.t.Errorf("pod %s was bound after %v", name, took)
	}
}

func (c *schedulingCluster) isBound(name string) bool {
	var pod struct{ Spec struct{ NodeName string } }
	c.get(defaultPods+"/"+name, &pod)
	return pod.Spec.NodeName != ""
}

func (c *schedulingCluster) mustWait(name string) {
	c.t.Helper()
	c.await("the reason why "+name+" waits", func() bool {
		var list podList
		c.get(defaultPods+"?fieldSelector=metadata.name="+name, &list)
		return len(list.Items) == 1 && list.Items[0].Spec.NodeName == "" && len(list.Items[0].Status.Conditions) > 0 &&
			strings.Contains(list.Items[0].Status.Conditions[0].Message, "1 not enough fake")
	})
}

// The scenario of KEP-4187: a custom resource reports what a node has of a resource.
func TestSchedulerFollowsTheProposalsExample(t *testing.T) {
	// No lease: a holder that is killed keeps it for 15 s.
	c := startSchedulingCluster(t, "--lease-name=")
	c.addNode("n1", 10)
	c.mustHave(10, "at first")
	c.runPod("a", "4")
	c.mustBind("a", apiServerPatience)
	c.mustHave(6, "beside a")
	c.runPod("b", "7")
	c.mustWait("b")
	c.mustHave(6, "while b waits")
	c.setCapacity(12)
	c.mustBind("b", wakeTime)
	c.mustHave(1, "beside a and b")
	c.setCapacity(5)
	c.mustHave(-6, "when the capacity shrank")
	c.runPod("nothing", "0")
	c.mustBind("nothing", apiServerPatience)
	c.runPod("c", "1")
	c.mustWait("c")
	c.deletePod("a")
	c.mustHave(-2, "without a")
	if c.isBound("c") {
		t.Error("c is bound where there is no room")
	}
	if code, message := c.patch(defaultPods+"/b/status", object{"status": object{"phase": "Succeeded"}}); code != http.StatusOK {
		t.Fatal(code, message)
	}
	c.mustBind("c", apiServerPatience)
	c.mustHave(4, "when b has ended and c is bound")
}
