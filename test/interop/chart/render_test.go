// Package chart renders the Helm chart as `helm install` does, decodes what comes out as the API server would, and runs
// its pod on a container runtime as kubelet would.
package chart

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	directory = "../../../charts/qrm"
	namespace = "kube-system"
	// Not a namespace that qrmd skips by default; ownRule lets its pods opt out.
	otherNamespace = "qrm-system"
	ownRule        = "permissions: [{namespaces: [qrm-system], allow: [opt-out]}]\n"
)

type values = map[string]any

// podMonitor has the fields that the chart sets of what Prometheus's operator defines.
type podMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector            metav1.LabelSelector `json:"selector"`
		PodMetricsEndpoints []struct {
			Port     string `json:"port"`
			Interval string `json:"interval"`
			Scheme   string `json:"scheme"`
			// As the operator has it.
			TLSConfig map[string]any `json:"tlsConfig"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

type anyUser struct {
	Type string `json:"type"`
}

// securityContextConstraints has the fields that the chart sets of what OpenShift defines.
type securityContextConstraints struct {
	metav1.TypeMeta          `json:",inline"`
	metav1.ObjectMeta        `json:"metadata"`
	AllowHostDirVolumePlugin bool     `json:"allowHostDirVolumePlugin"`
	AllowHostIPC             bool     `json:"allowHostIPC"`
	AllowHostNetwork         bool     `json:"allowHostNetwork"`
	AllowHostPID             bool     `json:"allowHostPID"`
	AllowHostPorts           bool     `json:"allowHostPorts"`
	AllowPrivilegedContainer bool     `json:"allowPrivilegedContainer"`
	AllowPrivilegeEscalation bool     `json:"allowPrivilegeEscalation"`
	AllowedCapabilities      []string `json:"allowedCapabilities"`
	RequiredDropCapabilities []string `json:"requiredDropCapabilities"`
	ReadOnlyRootFilesystem   bool     `json:"readOnlyRootFilesystem"`
	RunAsUser                anyUser  `json:"runAsUser"`
	SeLinuxContext           anyUser  `json:"seLinuxContext"`
	FSGroup                  anyUser  `json:"fsGroup"`
	SupplementalGroups       anyUser  `json:"supplementalGroups"`
	SeccompProfiles          []string `json:"seccompProfiles"`
	Volumes                  []string `json:"volumes"`
	Users                    []string `json:"users"`
}

type prometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

// release is what the chart makes; what it makes on demand only is nil otherwise.
type release struct {
	config    corev1.ConfigMap
	daemonSet appsv1.DaemonSet
	account   corev1.ServiceAccount
	role      *rbacv1.ClusterRole
	binding   *rbacv1.ClusterRoleBinding
	monitor   *podMonitor
	alerts    *prometheusRule
	dashboard *corev1.ConfigMap
	network   *networkingv1.NetworkPolicy
	budget    *policyv1.PodDisruptionBudget
	openshift *securityContextConstraints
	driver    *appsv1.DaemonSet
	policy    *corev1.ConfigMap // of the driver
	policies  []admissionv1.ValidatingAdmissionPolicy
	bindings  []admissionv1.ValidatingAdmissionPolicyBinding
}

func (r *release) pod() corev1.PodSpec         { return r.daemonSet.Spec.Template.Spec }
func (r *release) container() corev1.Container { return r.pod().Containers[0] }

// tryRender is `helm template qrm charts/qrm -n kube-system --kube-version 1.MINOR` with the values in place of the default ones.
func tryRender(overrides values, minor int) (*release, error) {
	return tryRenderIn(namespace, overrides, minor)
}

func tryRenderIn(namespace string, overrides values, minor int) (*release, error) {
	made := &release{}
	options := chartutil.ReleaseOptions{Name: "qrm", Namespace: namespace, IsInstall: true}
	if err := renderInto(made, directory, overrides, options, capabilitiesOf(minor)); err != nil {
		return nil, err
	}
	return made, nil
}

// capabilitiesOf is a cluster of Kubernetes 1.MINOR.
func capabilitiesOf(minor int) *chartutil.Capabilities {
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: fmt.Sprintf("v1.%d.0", minor), Major: "1", Minor: fmt.Sprint(minor)}
	return capabilities
}

// notesOf is what helm prints after the installation.
func notesOf(overrides values, minor int) (string, error) {
	files, err := renderFiles(directory, overrides, chartutil.ReleaseOptions{Name: "qrm", Namespace: namespace, IsInstall: true}, capabilitiesOf(minor))
	return files["qrm/templates/NOTES.txt"], err
}

// objects takes what a chart makes, one after another.
type objects interface{ decode(document string) error }

func renderFiles(directory string, overrides values, options chartutil.ReleaseOptions, capabilities *chartutil.Capabilities) (map[string]string, error) {
	chart, err := loader.Load(directory)
	if err != nil {
		return nil, err
	}
	merged, err := chartutil.ToRenderValues(chart, overrides, options, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, merged)
}

func renderInto(made objects, directory string, overrides values, options chartutil.ReleaseOptions, capabilities *chartutil.Capabilities) error {
	files, err := renderFiles(directory, overrides, options, capabilities)
	if err != nil {
		return err
	}
	for name, text := range files {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		for _, document := range strings.Split(text, "\n---\n") {
			if err := made.decode(document); err != nil {
				return fmt.Errorf("%s: %w in\n%s", name, err, document)
			}
		}
	}
	return nil
}

// decode takes one object; a field that its kind does not have is an error.
func (r *release) decode(document string) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(document), &kind); err != nil || kind.Kind == "" {
		return err
	}
	var object any
	switch kind.APIVersion + " " + kind.Kind {
	case "v1 ConfigMap":
		object = &r.config
		if strings.Contains(document, "\n  qrm.json:") {
			r.dashboard = &corev1.ConfigMap{}
			object = r.dashboard
		} else if strings.Contains(document, "\n  cci.yaml:") {
			r.policy = &corev1.ConfigMap{}
			object = r.policy
		}
	case "apps/v1 DaemonSet":
		object = &r.daemonSet
		if strings.Contains(document, "\n  name: qrm-cci-driver\n") {
			r.driver = &appsv1.DaemonSet{}
			object = r.driver
		}
	case "v1 ServiceAccount":
		object = &r.account
	case "rbac.authorization.k8s.io/v1 ClusterRole":
		r.role = &rbacv1.ClusterRole{}
		object = r.role
	case "rbac.authorization.k8s.io/v1 ClusterRoleBinding":
		r.binding = &rbacv1.ClusterRoleBinding{}
		object = r.binding
	case "monitoring.coreos.com/v1 PodMonitor":
		r.monitor = &podMonitor{}
		object = r.monitor
	case "monitoring.coreos.com/v1 PrometheusRule":
		r.alerts = &prometheusRule{}
		object = r.alerts
	case "networking.k8s.io/v1 NetworkPolicy":
		r.network = &networkingv1.NetworkPolicy{}
		object = r.network
	case "policy/v1 PodDisruptionBudget":
		r.budget = &policyv1.PodDisruptionBudget{}
		object = r.budget
	case "security.openshift.io/v1 SecurityContextConstraints":
		r.openshift = &securityContextConstraints{}
		object = r.openshift
	case "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy":
		r.policies = append(r.policies, admissionv1.ValidatingAdmissionPolicy{})
		object = &r.policies[len(r.policies)-1]
	case "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding":
		r.bindings = append(r.bindings, admissionv1.ValidatingAdmissionPolicyBinding{})
		object = &r.bindings[len(r.bindings)-1]
	default:
		return fmt.Errorf("unexpected %s %s", kind.APIVersion, kind.Kind)
	}
	return yaml.UnmarshalStrict([]byte(document), object)
}

func render(t *testing.T, overrides values) *release {
	t.Helper()
	return renderIn(t, namespace, overrides)
}

func renderIn(t *testing.T, namespace string, overrides values) *release {
	t.Helper()
	made, err := tryRenderIn(namespace, overrides, 36)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// qrmd is what it prints.
func qrmd(t *testing.T, arguments ...string) string {
	t.Helper()
	return program(t, "qrmd", arguments...)
}

// program is what one of the built programs prints.
func program(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	bin := os.Getenv("QRM_BIN_DIR")
	if bin == "" {
		t.Fatal("QRM_BIN_DIR names no directory; run scripts/interop.sh")
	}
	output, err := exec.Command(filepath.Join(bin, name), arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", name, arguments, err, output)
	}
	return string(output)
}
