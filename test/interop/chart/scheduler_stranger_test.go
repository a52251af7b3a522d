package chart

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

const wattsKey = "power.example.com/watts"

// An author's program, built elsewhere, with the rights and the configuration that the chart makes of the page's values. It
// decides by a ConfigMap, and by a file that one of its threads reads.
func TestStrangersSchedulerDecides(t *testing.T) {
	program, measured := os.Getenv("QRM_STRANGERS_SCHEDULER"), os.Getenv("QRM_STRANGERS_FILE")
	if program == "" {
		t.Skip("runs within test/e2e/scheduler_stranger.sh")
	}
	measure := func(watts string) {
		if err := os.WriteFile(measured, []byte("n1 "+watts+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	measure("50")
	budgetOf := func(watts string) object {
		return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "power-budgets"}, "data": object{"n1": watts}}
	}
	const configMaps = "/api/v1/namespaces/kube-system/configmaps"
	server := startApiServer(t, os.Getenv("QRM_APISERVER_DIR"))
	server.await("the namespace kube-system", func() bool {
		code, _ := server.create(configMaps, budgetOf("400"))
		return code == http.StatusCreated
	})
	made := renderScheduler(t, strangersValues(t))
	config := measured + ".yaml"
	text := strings.ReplaceAll(made.config.Data["config.yaml"], "/run/power/watts", measured)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	// Without the files of the pod, and without its lease.
	c := startSchedulingWith(server, made, []string{program, "serve", "--config=" + config, "--certificate-file=", "--key-file=",
		"--client-ca-file=", "--lease-name="})
	c.addBareNode("n1")
	c.addBareNode("n2") // without a budget
	ask := func(name, watts string) {
		pod := podWith(name, nil, map[string]string{wattsKey: watts})
		pod["spec"].(object)["tolerations"] = []object{{"operator": "Exists"}}
		c.mustCreate(defaultPods, pod)
	}
	ask("first", "300")
	c.mustBind("first", apiServerPatience)
	ask("second", "300")
	c.awaitFailedScheduling("second", "1 not enough power")

	if code, message := c.patch(configMaps+"/power-budgets", budgetOf("700")); code != http.StatusOK {
		t.Fatal(code, message)
	}
	c.mustBind("second", apiServerPatience)

	measure("690")
	c.await("the thread to have seen the file", func() bool { return strings.Contains(c.dump("/dump"), "690") })
	ask("third", "50")
	c.awaitFailedScheduling("third", "1 not enough power")
	measure("50")
	c.mustBind("third", apiServerPatience)
	if nodes := c.bound(); len(nodes["n1"]) != 3 {
		t.Errorf("pods are bound as %v", nodes)
	}
}
