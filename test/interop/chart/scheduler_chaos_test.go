package chart

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// faultyProxy is between qrm-scheduler and the API server: answers to bindings get lost or come
// late, watches are cut, and some get an error that their version is too old.
type faultyProxy struct {
	server *httptest.Server
	target *url.URL
	client *http.Client
	mutex  sync.Mutex
	cuts   map[int]context.CancelFunc // of the watches that are open
	opened int
}

func startFaultyProxy(t *testing.T, server *apiServer) *faultyProxy {
	t.Helper()
	target, err := url.Parse(server.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &faultyProxy{target: target, client: server.client, cuts: map[int]context.CancelFunc{}}
	proxy.server = httptest.NewTLSServer(proxy)
	t.Cleanup(func() {
		proxy.cutWatches()
		proxy.server.Close()
	})
	return proxy
}

func (p *faultyProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	forward := httputil.NewSingleHostReverseProxy(p.target)
	forward.Transport, forward.FlushInterval = p.client.Transport, -1
	forward.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	luck := rand.Float64()
	switch {
	case strings.HasSuffix(r.URL.Path, "/binding"):
		// Carried out at once, even if the client has gone meanwhile; the answer gets lost, or is late,
		// or neither.
		answer := httptest.NewRecorder()
		forward.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
		if luck < 0.15 {
			panic(http.ErrAbortHandler)
		}
		if luck < 0.3 {
			time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
		}
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		w.WriteHeader(answer.Code)
		w.Write(answer.Body.Bytes())
	case r.URL.Query().Has("watch") && luck < 0.2:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusGone)
		io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}`)
	case r.URL.Query().Has("watch"):
		ctx, cancel := context.WithCancel(r.Context())
		defer p.remember(cancel)()
		forward.ServeHTTP(w, r.WithContext(ctx))
	default:
		forward.ServeHTTP(w, r)
	}
}

// remember returns what forgets it again.
func (p *faultyProxy) remember(cancel context.CancelFunc) func() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.opened++
	number := p.opened
	p.cuts[number] = cancel
	return func() {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		delete(p.cuts, number)
		cancel()
	}
}

func (p *faultyProxy) cutWatches() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, cancel := range p.cuts {
		cancel()
	}
}

const (
	chaosCapacity = 12 // of each of the nodes n1 and n2
	chaosPods     = 40 // that exist at a time
	chaosKills    = 50
)

// overcommitted reports a node that has more pods than it may.
func (c *schedulingCluster) overcommitted() string {
	for node, pods := range c.bound() {
		if (node == "n1" || node == "n2") && len(pods) > chaosCapacity {
			return fmt.Sprintf("%d pods are on %s, which has room for %d", len(pods), node, chaosCapacity)
		}
	}
	return ""
}

// steal binds a pod that waits to n3, as another scheduler would.
func (c *schedulingCluster) steal(name string) {
	c.create(defaultPods+"/"+name+"/binding", object{"apiVersion": "v1", "kind": "Binding", "metadata": object{"name": name},
		"target": object{"apiVersion": "v1", "kind": "Node", "name": "n3"}})
}

// churn has one pod come, one go, and takes three of ten that come from under kube-scheduler's nose.
func (c *schedulingCluster) churn(turn int) {
	name := fmt.Sprint("p", turn)
	c.runPod(name, "1")
	if turn%10 < 3 {
		go c.steal(name)
	}
	if turn >= chaosPods {
		c.deletePod(fmt.Sprint("p", turn-chaosPods))
	}
}

func (c *schedulingCluster) startChaos(proxy *faultyProxy) {
	authority := c.write("proxy.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.server.Certificate().Raw})))
	token, err := os.ReadFile(c.dir + "/extender.token")
	if err != nil {
		c.t.Fatal(err)
	}
	c.killExtender(c.program)
	c.command = append(c.command, "--kubeconfig="+c.kubeconfigAt("proxy.kubeconfig", string(token), proxy.server.URL, authority))
	c.startExtender()
	c.addNode("n1", chaosCapacity)
	c.addNode("n2", chaosCapacity)
	c.addBareNode("n3")
}

// mustSettle waits until both nodes are full, and compares the cache with a new one.
func (c *schedulingCluster) mustSettle() {
	c.t.Helper()
	c.await("both nodes to be full", func() bool {
		nodes := c.bound()
		return len(nodes["n1"]) == chaosCapacity && len(nodes["n2"]) == chaosCapacity
	})
	if text := c.dump("/dump?compare"); !strings.Contains(text, `"equal": true`) {
		c.t.Errorf("the cache is not what a new one is: %s", text)
	}
	if full := c.overcommitted(); full != "" {
		c.t.Error(full)
	}
}

// kube-scheduler backs off for ten seconds at most, and the extender's faults make it do so.
func TestSchedulerNeverOvercommits(t *testing.T) {
	// No lease: a holder that is killed keeps it for 15 s.
	c := startSchedulingCluster(t, "--lease-name=")
	proxy := startFaultyProxy(t, c.apiServer)
	c.startChaos(proxy)
	turn := 0
	for kill := range chaosKills {
		for end := time.Now().Add(time.Duration(rand.IntN(1500)) * time.Millisecond); time.Now().Before(end); turn++ {
			c.churn(turn)
			time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
		}
		if full := c.overcommitted(); full != "" {
			t.Fatalf("after %d kills: %s", kill, full)
		}
		c.killExtender(c.program)
		c.startExtender()
		if kill%3 == 0 {
			proxy.cutWatches()
		}
		if kill == chaosKills/2 {
			c.apiServer.restart()
		}
	}
	t.Logf("%d pods came", turn)
	c.mustSettle()
}

// The holder of the lease is killed in the middle of a burst; kube-scheduler then asks the other one.
func TestSchedulerHandsItsLeaseOver(t *testing.T) {
	c := startSchedulingCluster(t)
	first := c.program
	c.await("the first to hold the lease", func() bool { return c.leaseHolder() != "" })
	holder := c.leaseHolder()
	second := freePort(t)
	c.command = append(c.command, fmt.Sprintf("--address=127.0.0.1:%d", second), fmt.Sprintf("--monitor-address=127.0.0.1:%d", freePort(t)))
	c.startExtender()
	c.addNode("n1", chaosCapacity)
	c.addNode("n2", chaosCapacity)
	for pod := range chaosPods {
		if pod == chaosPods/4 {
			c.killExtender(first)
			c.mutex.Lock()
			c.extender = fmt.Sprintf("http://127.0.0.1:%d", second)
			c.mutex.Unlock()
		}
		c.runPod(fmt.Sprint("p", pod), "1")
	}
	c.await("the second to hold the lease", func() bool { return c.leaseHolder() != holder })
	c.mustSettle()
}

// etcd gets back the data that it had before pods came and went, as after a disaster. An operator
// who repairs a cluster restarts Kubernetes' own programs; qrm-scheduler is not restarted.
func TestSchedulerFollowsARestoredEtcd(t *testing.T) {
	c := startSchedulingCluster(t)
	backup := filepath.Join(c.dir, "backup")
	c.addNode("n1", chaosCapacity)
	c.addNode("n2", chaosCapacity)
	const kept, lost = 8, 2*chaosCapacity - 8
	for pod := range kept {
		c.runPod(fmt.Sprint("kept", pod), "1")
	}
	placed := func() int { nodes := c.bound(); return len(nodes["n1"]) + len(nodes["n2"]) }
	c.await("the pods before the backup to be bound", func() bool { return placed() == kept })
	c.pause(func(data string) { c.copy(data, backup) })

	for pod := range lost {
		c.runPod(fmt.Sprint("lost", pod), "1")
	}
	c.await("the pods after the backup to be bound", func() bool { return placed() == kept+lost })
	for pod := range kept / 2 {
		c.deletePod(fmt.Sprint("kept", pod))
	}
	c.pause(func(data string) {
		if err := os.RemoveAll(data); err != nil {
			t.Fatal(err)
		}
		c.copy(backup, data)
	})
	c.killExtender(c.asking)
	c.startKubeScheduler()

	if count := placed(); count != kept {
		t.Fatalf("%d pods are bound after the restore, not %d", count, kept)
	}
	c.await("the room of pods that never were to be seen", func() bool { return c.available("n1")+c.available("n2") == 2*chaosCapacity-kept })
	for pod := range lost + 4 {
		c.runPod(fmt.Sprint("later", pod), "1")
	}
	c.mustSettle()
}

func (c *schedulingCluster) copy(from, to string) {
	c.t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *schedulingCluster) leaseHolder() string {
	var lease struct {
		Spec struct{ HolderIdentity string }
	}
	c.get("/apis/coordination.k8s.io/v1/namespaces/default/leases/qrm-scheduler", &lease)
	return lease.Spec.HolderIdentity
}
