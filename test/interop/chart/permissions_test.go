package chart

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// permissionCases is what qrm-permission-cases prints: configurations and pods, with what qrmd decides.
type permissionCases struct {
	Namespaces     []string
	RuntimeClasses []string
	Pods           []object
	Policies       []struct {
		Config    string
		Decisions []struct {
			Admitted  bool
			Forbidden string // the pool, role, class or driver that the pod names and may not have
			Error     string
		}
	}
}

func drawPermissionCases(t *testing.T, policies, pods int) permissionCases {
	t.Helper()
	output, err := exec.Command(filepath.Join(os.Getenv("QRM_BIN_DIR"), "qrm-permission-cases"), fmt.Sprint(policies), fmt.Sprint(pods)).Output()
	if err != nil {
		t.Fatal(err)
	}
	var cases permissionCases
	if err := json.Unmarshal(output, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// enforce puts the policy that the chart makes of the configuration in the place of the one before.
func enforce(t *testing.T, server *apiServer, config string, number int) {
	t.Helper()
	made := renderIn(t, otherNamespace, at("config", config))
	policy, binding := made.policies[1], made.bindings[1]
	// Tells this policy from the one before it: the first validation is about a key that no case has.
	mark := fmt.Sprintf("policy %d: ", number)
	policy.Spec.Validations[0].Message = mark + policy.Spec.Validations[0].Message
	const group = "/apis/admissionregistration.k8s.io/v1/"
	if number == 0 {
		server.mustCreate(group+"validatingadmissionpolicies", policy)
		server.mustCreate(group+"validatingadmissionpolicybindings", binding)
	} else if code, message := server.patch(group+"validatingadmissionpolicies/"+policy.Name, object{"spec": policy.Spec}); code != http.StatusOK {
		t.Fatalf("policy %d: %d %s", number, code, message)
	}
	server.await(mark+"to be in force", func() bool {
		_, message := server.create(podsOf("team-a")+"?dryRun=All", podWith("probe", nil, map[string]string{placementKey: "0"}))
		return strings.Contains(message, mark)
	})
}

func TestApiServerAndQrmdRejectTheSamePods(t *testing.T) {
	programs := os.Getenv("QRM_APISERVER_DIR")
	if programs == "" {
		t.Skip("runs within test/e2e/admission_policy.sh")
	}
	cases := drawPermissionCases(t, 100, 100)
	server := startApiServer(t, programs)
	for _, name := range cases.Namespaces {
		if name != namespace {
			server.mustCreate("/api/v1/namespaces", object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name}})
		}
	}
	for _, name := range cases.RuntimeClasses {
		server.mustCreate("/apis/node.k8s.io/v1/runtimeclasses",
			object{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": object{"name": name}, "handler": "runc"})
	}
	server.await("the system's priority classes", func() bool {
		code, _ := server.call(http.MethodGet, "/apis/scheduling.k8s.io/v1/priorityclasses/system-cluster-critical", "", nil)
		return code == http.StatusOK
	})
	var refused, forbidden int
	for number, policy := range cases.Policies {
		enforce(t, server, policy.Config, number)
		messages := make([]string, len(cases.Pods)) // empty for pods that are accepted
		var work sync.WaitGroup
		for worker := range 8 {
			work.Go(func() {
				for i := worker; i < len(cases.Pods); i += 8 {
					pod := cases.Pods[i]
					code, message := server.create(podsOf(pod["metadata"].(object)["namespace"].(string))+"?dryRun=All", pod)
					if code != http.StatusCreated {
						messages[i] = fmt.Sprint(code, " ", message)
					}
				}
			})
		}
		work.Wait()
		for i, message := range messages {
			decision := policy.Decisions[i]
			says := func(what string) {
				pod, _ := json.Marshal(cases.Pods[i])
				t.Errorf("%s\npolicy %d: %s\npod: %s\nAPI server: %s\nqrmd: %s", what, number, policy.Config, pod, message, decision.Error)
			}
			switch {
			case message != "" && !strings.Contains(message, "ValidatingAdmissionPolicy"):
				says("the API server does not take the pod for another reason")
			case message != "" && decision.Admitted:
				says("the API server rejects what qrmd admits")
			case message == "" && decision.Forbidden != "":
				says("the API server admits a pod with " + decision.Forbidden)
			}
			if message != "" {
				refused++
			}
			if decision.Forbidden != "" {
				forbidden++
			}
		}
		if t.Failed() {
			return
		}
	}
	if refused < 1000 || forbidden < 1000 {
		t.Errorf("only %d pods were rejected, and %d had a forbidden name", refused, forbidden)
	}
}
