package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// configurationWith is qrmd's usual configuration with other keys before its own.
func configurationWith(t *testing.T, keys string) string {
	t.Helper()
	usual, err := os.ReadFile("../../../scripts/cluster/qrmd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "qrmd.yaml")
	if err := os.WriteFile(file, []byte(keys+string(usual)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// helm runs a command in the release's namespace.
func helm(t *testing.T, words ...string) {
	t.Helper()
	call(t, append([]string{"helm", "--namespace", "kube-system"}, words...)...)
}

func awaitRollout(t *testing.T) {
	t.Helper()
	kubectl(t, "--namespace", "kube-system", "rollout", "status", "daemonset/qrm", timeout())
	awaitQrmd(t)
}

func chart(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../../charts/qrm")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// upgrade installs qrmd with a configuration, and with more words for helm.
func upgrade(t *testing.T, config string, words ...string) {
	t.Helper()
	helm(t, append([]string{"upgrade", "--install", "qrm", chart(t), "--set-file", "config=" + config}, words...)...)
	awaitRollout(t)
}

func TestChartComesAndGoesUnderRunningPods(t *testing.T) {
	create(t, threeClasses()...)
	awaitRunning(t, "guaranteed", "burstable", "best-effort")
	awaitAgreement(t)
	before := placesOf(records(t))
	asBefore := func(t *testing.T) {
		t.Helper()
		awaitAgreement(t)
		if after := placesOf(records(t)); after != before {
			t.Errorf("places were\n%s\nand are\n%s", before, after)
		}
	}
	t.Run("Upgrade", func(t *testing.T) {
		upgrade(t, configurationWith(t, "reconcile-period: 1s\n"))
		if text := call(t, "qrmctl", "status"); !strings.Contains(text, "every 1s") {
			t.Errorf("it has not the new configuration: %s", text)
		}
		asBefore(t)
	})
	t.Run("Rollback", func(t *testing.T) {
		helm(t, "rollback", "qrm", "--wait", timeout())
		awaitRollout(t)
		if text := call(t, "qrmctl", "status"); !strings.Contains(text, "every 3s") {
			t.Errorf("it has not the former configuration: %s", text)
		}
		asBefore(t)
	})
	t.Run("Uninstall", func(t *testing.T) {
		ids := map[string]string{}
		for name, each := range records(t) {
			ids[name], _ = each.cpus()
			ids[name] += " " + each.RuntimeId
		}
		helm(t, "uninstall", "qrm", "--wait", timeout())
		for name, each := range ids {
			cpus, id, _ := strings.Cut(each, " ")
			if got, err := kernelValue(id, "cpuset.cpus"); err != nil || got != cpus {
				t.Errorf("%s had %s and has %s without qrmd: %v", name, cpus, got, err)
			}
		}
		upgrade(t, configurationWith(t, ""))
		asBefore(t)
	})
}

func TestAllSourcesOfRequestsGiveTheSameRecords(t *testing.T) {
	places := map[string]string{}
	for source, keys := range map[string]string{
		"pods-api": "",
		"kubelet":  "kubelet-pods-socket: \"\"\nkubelet-url: https://127.0.0.1:10250/pods\nkubelet-pin-first-use: true\n",
		"estimate": "kubelet-pods-socket: \"\"\n",
	} {
		t.Run(source, func(t *testing.T) {
			upgrade(t, configurationWith(t, keys))
			defer func() { upgrade(t, configurationWith(t, "")) }()
			create(t, threeClasses()...)
			awaitRunning(t, "guaranteed", "burstable", "best-effort")
			awaitAgreement(t)
			found := records(t)
			for name, each := range found {
				if each.RequestSource != source {
					t.Errorf("the requests of %s are from %s", name, each.RequestSource)
				}
			}
			places[source] = placesOf(found)
		})
	}
	for source, each := range places {
		if each != places["pods-api"] {
			t.Errorf("by %s, places are\n%s\nby the Pods API\n%s", source, each, places["pods-api"])
		}
	}
}
