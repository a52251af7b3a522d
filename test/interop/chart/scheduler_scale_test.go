package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	scaleConfig = `{machine: "synthetic:package:2 [numa(memory=128GiB)] core:32 pu:2", topology-policy: single-numa-node,
plugins: {cpu: {static: true, reserved-cpus: "0,1"}, memory: {static: true}}}`
	scaleWriters  = 16
	scaleCalls    = 21
	scaleFake     = 100 // of each node, of the author's resource
	scaleMegabyte = 1e6
	scaleClock    = 100 // ticks of a second in /proc/PID/stat
	scalePatience = 10 * time.Minute
)

func sizeOf(t *testing.T, variable string, usual int) int {
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	size, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s is %q, no number", variable, text)
	}
	return size
}

func scaleNode(index int) string {
	return fmt.Sprintf("ip-10-%d-%d.eu-central-1.compute.internal", index/250, index%250)
}

// inParallel calls `work` with 0 to `count` - 1.
func inParallel(count int, work func(int)) {
	var writers sync.WaitGroup
	next := make(chan int)
	for range scaleWriters {
		writers.Add(1)
		go func() {
			defer writers.Done()
			for index := range next {
				work(index)
			}
		}()
	}
	for index := range count {
		next <- index
	}
	close(next)
	writers.Wait()
}

// mustWrite is create, tried again while the server has too much to do.
func (s *apiServer) mustWrite(path string, body any) {
	for end := time.Now().Add(apiServerPatience); ; time.Sleep(100 * time.Millisecond) {
		code, message := s.create(path, body)
		if code == http.StatusCreated || code == http.StatusConflict {
			return
		}
		if time.Now().After(end) {
			s.t.Errorf("%s: %d %s", path, code, message)
			return
		}
	}
}

func (s *apiServer) fill(nodes, pods int) {
	amounts := object{"cpu": "128", "memory": "256Gi", "pods": "110"}
	inParallel(nodes, func(index int) {
		s.mustWrite("/api/v1/nodes", object{"apiVersion": "v1", "kind": "Node",
			"metadata": object{"name": scaleNode(index), "annotations": object{"qrm.io/node-config": scaleConfig}},
			"status":   object{"capacity": amounts, "allocatable": amounts}})
		s.mustWrite(fakeGroup, object{"apiVersion": "fake.qrm.io/v1", "kind": "NodeFakeResourceStatus", "metadata": object{"name": scaleNode(index)},
			"spec": object{"nodeName": scaleNode(index), "fakeResource": scaleFake}})
	})
	inParallel(pods, func(index int) {
		pod := asGuaranteed(fmt.Sprintf("checkout-service-%d-7d9c5b8f6d-%05x", index/20, index), 2)
		if index/nodes%5 != 0 { // a fifth of them own CPUs
			pod["spec"].(object)["containers"].([]object)[0]["resources"] = object{"requests": object{"cpu": "500m", "memory": "256Mi"}}
		}
		pod["spec"].(object)["nodeName"] = scaleNode(index % nodes)
		pod["metadata"].(object)["annotations"] = object{requestKey: "1"}
		s.mustWrite(defaultPods, pod)
	})
}

// used returns the resident memory of a process in MB and the CPU time that it took.
func used(t *testing.T, pid int) (float64, time.Duration) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, _ := strconv.Atoi(strings.Fields(string(status))[1])
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):]))
	user, _ := strconv.Atoi(fields[12])
	system, _ := strconv.Atoi(fields[13])
	return float64(pages*os.Getpagesize()) / scaleMegabyte, time.Duration(user+system) * time.Second / scaleClock
}

// acceptAll is an extender that does nothing.
func acceptAll(w http.ResponseWriter, r *http.Request) {
	var question struct{ NodeNames []string }
	if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	json.NewEncoder(w).Encode(object{"NodeNames": question.NodeNames, "FailedNodes": object{}})
}

// filterTime is the median of what calls about a pod take; each is about all of the nodes.
func filterTime(t *testing.T, url string, body []byte) time.Duration {
	t.Helper()
	var times []time.Duration
	for range scaleCalls {
		begin := time.Now()
		answer, err := http.Post(url+"/filter", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		times = append(times, time.Since(begin))
		var judged struct{ Error string }
		if err != nil || json.Unmarshal(text, &judged) != nil || judged.Error != "" {
			t.Fatalf("%v %.300s", err, text)
		}
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// binds returns how many bind calls had each result, by the extender's metrics.
func (c *schedulingCluster) binds() map[string]int {
	c.t.Helper()
	answer, err := http.Get(c.monitor + "/metrics")
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	counts := map[string]int{}
	for _, found := range regexp.MustCompile(`(?m)^qrm_scheduler_calls_total\{call="bind",result="(\w+)"\} (\d+)`).FindAllSubmatch(text, -1) {
		counts[string(found[1])], _ = strconv.Atoi(string(found[2]))
	}
	return counts
}

// requeueing has kube-scheduler place pods of half a NUMA node while another client binds as many of them itself, and reports
// how often its view of a node was older than the extender's.
func (c *schedulingCluster) requeueing(nodes, pods int) {
	large := func(name string) object {
		pod := asGuaranteed(name, 30)
		pod["metadata"].(object)["annotations"] = object{requestKey: "1"}
		return pod
	}
	c.startKubeScheduler()
	begin := time.Now()
	inParallel(pods, func(index int) {
		other := large(fmt.Sprint("bound-by-others-", index))
		other["spec"].(object)["nodeName"] = scaleNode(index * 7919 % nodes)
		c.mustWrite(defaultPods, large(fmt.Sprint("late-", index)))
		c.mustWrite(defaultPods, other)
	})
	for c.binds()["ok"] < pods {
		if time.Since(begin) > scalePatience {
			c.t.Fatalf("of %d pods, so many are bound after %v: %v", pods, scalePatience, c.binds())
		}
		time.Sleep(time.Second)
	}
	counts := c.binds()
	total := counts["ok"] + counts["refused"] + counts["failed"]
	c.t.Logf("%d pods were bound in %v, while other clients bound %d: %d of %d bind calls were rejected by a newer view (%.2f %%), %d failed",
		pods, time.Since(begin).Round(time.Second), pods, counts["refused"], total, 100*float64(counts["refused"])/float64(total), counts["failed"])
	if counts["refused"]*20 > total {
		c.t.Errorf("more than a twentieth of the pods were tried again")
	}
}

// A cluster of the largest size that Kubernetes supports, whose nodes and pods are objects only, judged by NUMA nodes and by
// an author's resource. QRM_SCALE_NODES and QRM_SCALE_PODS make it smaller.
func TestSchedulerAtScale(t *testing.T) {
	if os.Getenv("QRM_APISERVER_DIR") == "" {
		t.Skip("runs within test/e2e/scheduler_scale.sh")
	}
	nodes, pods := sizeOf(t, "QRM_SCALE_NODES", 5000), sizeOf(t, "QRM_SCALE_PODS", 100_000)
	server := startApiServer(t, os.Getenv("QRM_APISERVER_DIR"))
	server.createFakeKind()
	begin := time.Now()
	server.fill(nodes, pods)
	t.Logf("%d nodes and %d pods were written in %v", nodes, pods, time.Since(begin).Round(time.Second))

	waiting := asGuaranteed("waiting", 4)
	waiting["spec"].(object)["schedulerName"] = "nobody"
	waiting["metadata"].(object)["annotations"] = object{requestKey: "1"}
	server.mustCreate(defaultPods, waiting)
	var pod object
	server.get(defaultPods+"/waiting", &pod)
	c := startSchedulingBy(server, "numa,fake", "--lease-name=")
	c.killExtender(c.asking) // its own lists would be measured, too
	ask := func(count int) []byte {
		names := make([]string, count)
		for index := range names {
			names[index] = scaleNode(index)
		}
		body, err := json.Marshal(object{"Pod": pod, "Nodes": nil, "NodeNames": names})
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	c.await("the lists to be read", func() bool {
		answer, err := http.Post(c.extender+"/filter", "application/json", bytes.NewReader(ask(1)))
		if err != nil {
			return false
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		return bytes.Contains(text, []byte(`"Error":""`))
	})
	megabytes, cpu := used(t, c.program.Process.Pid)
	t.Logf("qrm-scheduler: %.0f MB resident, %v of CPU time until it judged", megabytes, cpu)
	if megabytes > 150 || cpu > 30*time.Second {
		t.Errorf("more than 150 MB, or than 30 s")
	}
	none := httptest.NewServer(http.HandlerFunc(acceptAll))
	defer none.Close()
	for count, most := range map[int]time.Duration{500: time.Millisecond, 5000: 10 * time.Millisecond} {
		body := ask(min(count, nodes))
		nothing, ours := filterTime(t, none.URL, body), filterTime(t, c.extender, body)
		t.Logf("a filter call about %d nodes: %v, an extender that accepts all: %v", min(count, nodes), ours, nothing)
		if ours-nothing > most {
			t.Errorf("%v more than an extender that accepts all, and %v is the most", ours-nothing, most)
		}
	}
	c.requeueing(nodes, nodes/5)
}
