package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	fakeGroup   = "/apis/fake.qrm.io/v1/nodefakeresourcestatuses"
	requestKey  = "fake.qrm.io/request"
	defaultPods = "/api/v1/namespaces/default/pods"
)

// schedulingCluster is an unmodified kube-apiserver and kube-scheduler, whose extender is qrm-scheduler.
type schedulingCluster struct {
	*apiServer
	dir      string
	extender string
	mutex    sync.Mutex
	asked    map[string][]byte // the first body of each verb
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

// recorder passes calls on and keeps the first body of each verb.
func (c *schedulingCluster) recorder() *http.Server {
	target, err := url.Parse(c.extender)
	if err != nil {
		c.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	return &http.Server{Addr: fmt.Sprintf("127.0.0.1:%d", freePort(c.t)), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		verb := strings.TrimPrefix(r.URL.Path, "/")
		c.mutex.Lock()
		if c.asked[verb] == nil {
			c.asked[verb] = body
		}
		c.mutex.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	})}
}

func startSchedulingCluster(t *testing.T) *schedulingCluster {
	t.Helper()
	programs := os.Getenv("QRM_APISERVER_DIR")
	if programs == "" {
		t.Skip("runs within test/e2e/scheduler.sh")
	}
	dir := t.TempDir()
	cluster := &schedulingCluster{apiServer: startApiServer(t, programs), dir: dir, asked: map[string][]byte{}}
	cluster.mustCreate("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": "nodefakeresourcestatuses.fake.qrm.io"},
		"spec": object{"group": "fake.qrm.io", "scope": "Cluster",
			"names": object{"kind": "NodeFakeResourceStatus", "plural": "nodefakeresourcestatuses", "singular": "nodefakeresourcestatus"},
			"versions": []object{{"name": "v1", "served": true, "storage": true,
				"schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}})
	kubeconfig := cluster.write("kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "%s", certificate-authority: "%s"}}], users: [{name: u, user: {token: admin}}]}`, cluster.url, cluster.authority))
	port := freePort(t)
	cluster.extender = fmt.Sprintf("http://127.0.0.1:%d", port)
	run(t, filepath.Join(dir, "qrm-scheduler.log"), filepath.Join(os.Getenv("QRM_BIN_DIR"), "qrm-scheduler"), "serve", "--kubeconfig="+kubeconfig,
		"--resources=fake", fmt.Sprintf("--address=127.0.0.1:%d", port), "--monitor-address=127.0.0.1:0", "--lease-namespace=default")
	recorder := cluster.recorder()
	go recorder.ListenAndServe()
	t.Cleanup(func() { recorder.Close() })
	config := cluster.write("scheduler.yaml", fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %s}
extenders:
- {urlPrefix: "http://%s", filterVerb: filter, prioritizeVerb: prioritize, preemptVerb: preempt, bindVerb: bind, weight: 1, nodeCacheCapable: true,
   httpTimeout: 5s}
`, kubeconfig, recorder.Addr))
	run(t, filepath.Join(dir, "kube-scheduler.log"), filepath.Join(programs, "kube-scheduler"), "--config="+config, fmt.Sprint("--secure-port=", freePort(t)),
		"--authentication-skip-lookup", "--authorization-always-allow-paths=/*", "--cert-dir="+filepath.Join(dir, "scheduler"))
	return cluster
}

func (c *schedulingCluster) addNode(name string, capacity int) {
	c.t.Helper()
	allocatable := object{"cpu": "64", "memory": "64Gi", "pods": "110"}
	c.mustCreate("/api/v1/nodes", object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": name},
		"status": object{"capacity": allocatable, "allocatable": allocatable, "conditions": []object{{"type": "Ready", "status": "True"}}}})
	c.mustCreate(fakeGroup, object{"apiVersion": "fake.qrm.io/v1", "kind": "NodeFakeResourceStatus", "metadata": object{"name": name},
		"spec": object{"nodeName": name, "fakeResource": capacity}})
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

func (c *schedulingCluster) dump(path string) string {
	c.t.Helper()
	answer, err := http.Get(c.extender + path)
	if err != nil {
		c.t.Fatal(err)
	}
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

	// One that goes makes room for one that waits.
	gone := cluster.bound()["n1"][0]
	cluster.call(http.MethodDelete, defaultPods+"/"+gone+"?gracePeriodSeconds=0", "application/json", object{})
	cluster.await("the place that became free to be taken", full)

	cluster.mutex.Lock()
	defer cluster.mutex.Unlock()
	for _, verb := range []string{"filter", "prioritize", "bind"} {
		if cluster.asked[verb] == nil {
			t.Errorf("kube-scheduler never asked to %s", verb)
		}
	}
	if folder := os.Getenv("QRM_RECORD_DIR"); folder != "" {
		for verb, body := range cluster.asked {
			if err := os.WriteFile(filepath.Join(folder, verb+".json"), body, 0o644); err != nil {
				t.Error(err)
			}
		}
	}
}
