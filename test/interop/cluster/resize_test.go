package cluster

import (
	"fmt"
	"testing"
)

// resize asks for other CPUs through the pod's subresource, and waits until the kernel has the quota of its limit.
func resize(t *testing.T, name string, milliCpus int) {
	t.Helper()
	patch := toJson(t, object{"spec": object{"containers": []object{{"name": "c", "resources": requests{milliCpus, true}.resources()}}}})
	kubectl(t, "patch", "pod", name, "--subresource", "resize", "--patch", patch)
	await(t, fmt.Sprintf("%s to have a limit of %d milli CPUs", name, milliCpus), func() error {
		found, err := recordsOf("default")
		if err != nil {
			return err
		}
		got, err := quotaOf(found[name+"/c"].RuntimeId)
		if err == nil && got != fmt.Sprint(milliCpus*100) {
			err = fmt.Errorf("its quota is %s us; %s", got, kubectl(t, "get", "pod", name, "-o", "jsonpath={.status.conditions}"))
		}
		return err
	})
	awaitAgreement(t)
	if status, err := statusOf(name); err != nil || status.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("it was restarted: %+v: %v", status, err)
	}
}

func TestResizeInPlace(t *testing.T) {
	create(t, pod("shared", podSpec(container("c", sleep, requests{100, true}))), pod("whole", podSpec(container("c", sleep, requests{500, true}))))
	awaitRunning(t, "shared", "whole")
	awaitAgreement(t)
	both := placesOf(records(t))
	t.Run("SharedCpusStayWhenItGrowsAndShrinks", func(t *testing.T) {
		resize(t, "shared", 200)
		resize(t, "shared", 50)
		if now := placesOf(records(t)); now != both {
			t.Errorf("places were\n%s\nand are\n%s", both, now)
		}
	})
	t.Run("AContainerThatGrowsToWholeCpusGetsThemExclusively", func(t *testing.T) {
		resize(t, "whole", 1000)
		await(t, "a CPU of its own", func() error {
			if found := records(t); !found["whole/c"].ownsCpus() {
				return fmt.Errorf("there are %v", found)
			}
			return nil
		})
		awaitAgreement(t)
	})
	t.Run("AContainerThatStartedSharedSharesAgainWhenItShrinks", func(t *testing.T) {
		resize(t, "whole", 600)
		await(t, "a shared CPU", func() error {
			if found := records(t); found["whole/c"].ownsCpus() {
				return fmt.Errorf("there are %v", found)
			}
			return nil
		})
		awaitAgreement(t)
	})
}
