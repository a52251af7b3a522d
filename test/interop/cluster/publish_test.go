package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	classResource = "cpu-scheduling.qrm.io/batch"
	classCapacity = "1k"
	repairTime    = 2 * time.Second
	qrmdsAccount  = "system:serviceaccount:kube-system:qrm"
	kubeletsName  = "system:node:node"
)

// installPublisher has qrmd publish the node, with a class that is an extended resource of it.
func installPublisher(t *testing.T) {
	t.Helper()
	classes := filepath.Join(t.TempDir(), "classes.yaml")
	if err := os.WriteFile(classes, []byte("classes: {batch: {nice: 10}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := configurationWith(t, "publish: [extended-resources, class-resources, classes, node-config, events]\nqos-classes: true\n"+
		"class-types: {cpu-scheduling: {config-file: /etc/qrm/classes.yaml, classes: {batch: {capacity: 1000}}}}\n")
	t.Cleanup(func() { upgrade(t, configurationWith(t, "")) })
	upgrade(t, config, "--set-file", `configFiles.classes\.yaml=`+classes)
}

// nodeStatus is what Node status has of the class; "" where it does not have it.
type nodeStatus struct{ Capacity, Allocatable map[string]string }

func (s nodeStatus) offers() bool {
	return s.Capacity[classResource] == classCapacity && s.Allocatable[classResource] == classCapacity
}

func awaitOffer(t *testing.T) {
	t.Helper()
	await(t, "Node status to have the class", func() error {
		var node struct{ Status nodeStatus }
		err := read(&node, "kubectl", "get", "node", "node", "-o", "json")
		if err == nil && !node.Status.offers() {
			err = fmt.Errorf("it has %v", node.Status)
		}
		return err
	})
}

// write is a write that succeeded, as the API server's audit log has it.
type write struct {
	Verb           string
	User           struct{ Username string }
	ObjectRef      struct{ Resource, Subresource string }
	ResponseStatus struct{ Code int }
	Ended          time.Time       `json:"stageTimestamp"`
	ResponseObject json.RawMessage // of Node status only
}

// status is what Node status has after it.
func (w write) status(t *testing.T) nodeStatus {
	t.Helper()
	var node struct{ Status nodeStatus }
	if err := json.Unmarshal(w.ResponseObject, &node); err != nil {
		t.Fatal(err)
	}
	return node.Status
}

// isOfNodeStatus also says so of the registration of a Node that was not there.
func (w write) isOfNodeStatus() bool {
	return w.ObjectRef.Resource == "nodes" && (w.ObjectRef.Subresource == "status" || w.Verb == "create")
}

// writesSince are those of the audit log in their order.
func writesSince(t *testing.T, since time.Time) []write {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(os.Getenv("QRM_CLUSTER_DIR"), "logs/audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	var writes []write
	complete := text[:bytes.LastIndexByte(text, '\n')+1]
	lines := bufio.NewScanner(bytes.NewReader(complete))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		var each write
		if err := json.Unmarshal(lines.Bytes(), &each); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		if !each.Ended.Before(since) && each.ResponseStatus.Code < 300 {
			writes = append(writes, each)
		}
	}
	return writes
}

// mustHaveBeenRepaired checks for how long Node status in the API server was without the class, which `user` took away.
func mustHaveBeenRepaired(t *testing.T, since time.Time, user string) {
	t.Helper()
	var begin *write
	var outage time.Duration
	for _, each := range writesSince(t, since) {
		if !each.isOfNodeStatus() {
			continue
		}
		switch whole := each.status(t).offers(); {
		case !whole && begin == nil && each.User.Username == user:
			begin = &each
		case whole && begin != nil:
			outage = max(outage, each.Ended.Sub(begin.Ended))
			begin = nil
		}
	}
	if outage == 0 || outage > repairTime {
		t.Errorf("Node status was without the class for %v, not for up to %v", outage, repairTime)
	}
	t.Logf("repaired within %v", outage)
}

func TestNodeStatusThatKubeletRewritesIsRepaired(t *testing.T) {
	installPublisher(t)
	awaitOffer(t)
	gone := object{classResource: nil}
	zero := object{classResource: "0"}
	for name, status := range map[string]object{
		"Zeroed":      {"capacity": zero, "allocatable": zero},
		"Deleted":     {"capacity": gone, "allocatable": gone},
		"Allocatable": {"allocatable": object{classResource: "7"}},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			kubectl(t, "patch", "node", "node", "--subresource=status", "--type=merge", "--patch", toJson(t, object{"status": status}))
			awaitOffer(t)
			mustHaveBeenRepaired(t, begin, "admin")
		})
	}
	t.Run("KubeletThatRegistersItsNodeAgain", func(t *testing.T) {
		begin := time.Now()
		call(t, "stop", "kubelet")
		kubectl(t, "delete", "node", "node")
		call(t, "start", "kubelet")
		awaitOffer(t)
		mustHaveBeenRepaired(t, begin, kubeletsName)
		kubectl(t, "wait", "--for=condition=Ready", "node/node", timeout())
		awaitQrmd(t)
	})
	t.Run("AtRestNothingIsWritten", restsWithoutWrites)
}

// restTime is how long the node rests: QRM_REST_SECONDS.
func restTime() time.Duration {
	if seconds, err := strconv.Atoi(os.Getenv("QRM_REST_SECONDS")); err == nil {
		return time.Duration(seconds) * time.Second
	}
	return 20 * time.Second
}

func restsWithoutWrites(t *testing.T) {
	begin := time.Now()
	time.Sleep(restTime())
	counts := map[string]int{}
	kubelets := 0
	for _, each := range writesSince(t, begin) {
		counts[strings.Join([]string{each.User.Username, each.Verb, each.ObjectRef.Resource, each.ObjectRef.Subresource}, " ")]++
		if each.User.Username == qrmdsAccount {
			t.Errorf("qrmd wrote at rest: %+v", each)
		}
		if each.User.Username == kubeletsName && each.isOfNodeStatus() {
			kubelets++
		}
	}
	if kubelets == 0 {
		t.Error("kubelet wrote no Node status meanwhile: the log does not count")
	}
	t.Logf("writes within %v: %v", restTime(), counts)
}
