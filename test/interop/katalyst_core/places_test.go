package katalystcore

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"qrm.local/test/interop/node"
)

// cpusOfNode is how many CPUs a NUMA node of the machine has.
const cpusOfNode = 40

// place says a list such as "0-3,8" in words: "5 CPUs of node 0"; "rejected" of an empty list.
func place(cpus string) string {
	count, nodes := 0, map[int]bool{}
	for _, part := range strings.FieldsFunc(cpus, func(r rune) bool { return r == ',' }) {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, _ := strconv.Atoi(from)
		last, _ := strconv.Atoi(to)
		count += last - first + 1
		nodes[first/cpusOfNode], nodes[last/cpusOfNode] = true, true
	}
	switch {
	case count == 0:
		return "rejected"
	case len(nodes) == 2:
		return fmt.Sprintf("%d CPUs of both nodes", count)
	case nodes[1]:
		return fmt.Sprintf("%d CPUs of node 1", count)
	}
	return fmt.Sprintf("%d CPUs of node 0", count)
}

// The page's keys and its table, on qrmd's own plugins and on Katalyst's.
func TestThePageOfQosLevelsSaysWhereBothPutTheSamePods(t *testing.T) {
	text, err := os.ReadFile("../../../docs/policies/qos-levels.md")
	if err != nil {
		t.Fatal(err)
	}
	_, keys, _ := strings.Cut(string(text), "# as-in-katalyst.yaml\n")
	keys, _, _ = strings.Cut(keys, "```")
	ours, theirs := node.Start(t, node.Machine+everythingAllowed+"plugins:\n  cpu:\n"+keys), besideORM(t)
	pods := []node.Pod{
		pod("web", 4, 8, qosLevel, "shared_cores"),
		pod("web2", 8, 8, qosLevel, "shared_cores"),
		pod("db", 8, 20, qosLevel, "dedicated_cores", memory, bound),
		pod("bound", 4, 8, qosLevel, "shared_cores", memory, bound),
		pod("batch", 2, 4, qosLevel, "reclaimed_cores"),
		pod("big", 60, 20, qosLevel, "shared_cores"),
		pod("huge", 60, 20, qosLevel, "dedicated_cores", memory, bound),
		pod("plain", 2, 2),
		pod("agent", 1, 1, qosLevel, "system_cores"),
	}
	rejectedHere, rejectedThere := map[string]bool{}, map[string]bool{}
	for _, pod := range pods {
		_, err := ours.TryRun(pod)
		rejectedHere[pod.Name], rejectedThere[pod.Name] = err != nil, theirs.run(pod) != nil
	}
	given := theirs.given("cpu")
	for _, pod := range pods {
		row := regexp.MustCompile("(?m)^\\| `" + pod.Name + "` .*$").FindString(string(text))
		cells := strings.Split(row, " | ")
		if len(cells) < 3 {
			t.Errorf("the page has no row of pod %s", pod.Name)
			continue
		}
		there := place(given[pod.Name+"/app"])
		if rejectedThere[pod.Name] {
			there = place("")
		}
		if there != cells[2] {
			t.Errorf("with Katalyst, pod %s: %s; the page says: %s", pod.Name, there, cells[2])
		}
		if rejectedHere[pod.Name] {
			if cells[1] != place("") {
				t.Errorf("here, pod %s is rejected; the page says: %s", pod.Name, cells[1])
			}
			continue
		}
		here := ""
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("here, pod %s: %s; the page says: %s", pod.Name, here, cells[1])
			}
		})
		ours.Await("pod "+pod.Name+" to be where the page says", func() bool {
			here = place(ours.Options(pod.Name).Linux.CpusetCpus)
			return here == cells[1]
		})
	}
}
