package cluster

import (
	"strings"
	"testing"
)

func TestPodIsPlacedByThePriorityOfItsClassAndNoOther(t *testing.T) {
	upgrade(t, configurationOfCpu(t, `    rules: [{select: {priority: ">=9000"}, pool: urgent}]
    pools: {urgent: {size: {max: 1}}}
`))
	defer func() { upgrade(t, configurationWith(t, "")) }()
	class := object{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
		"metadata": object{"name": "urgent"}, "value": 9000}
	urgent := pod("urgent", podSpec(container("c", sleep, someCpu)))
	urgent["spec"].(object)["priorityClassName"] = "urgent"
	forged := pod("forged", podSpec(container("c", sleep, someCpu)))
	forged["metadata"].(object)["annotations"] = object{"qrm.io/pod-priority": "9000"}
	create(t, class, urgent, forged)
	awaitRunning(t, "urgent", "forged")
	if text := call(t, "qrmctl", "explain", "urgent"); !strings.Contains(text, "by rules[0]") {
		t.Errorf("it is placed by something else: %s", text)
	}
	if text := call(t, "qrmctl", "explain", "forged"); strings.Contains(text, "by rules[0]") {
		t.Errorf("its own word counts: %s", text)
	}
	killQrmd(t)
	awaitQrmd(t)
	awaitAgreement(t)
}
