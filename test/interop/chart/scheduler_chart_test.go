package chart

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const schedulerChart = "../../../charts/qrm-scheduler"

// schedulerRelease is what the chart makes.
type schedulerRelease struct {
	config          corev1.ConfigMap
	account         corev1.ServiceAccount
	deployment      appsv1.Deployment
	clusterRole     rbacv1.ClusterRole
	clusterBindings []rbacv1.ClusterRoleBinding
	role            rbacv1.Role
	bindings        []rbacv1.RoleBinding
	secrets         []corev1.Secret // of the server and of its client
}

// decode takes one object; a field that its kind does not have is an error.
func (r *schedulerRelease) decode(document string) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(document), &kind); err != nil || kind.Kind == "" {
		return err
	}
	var into any
	switch kind.Kind {
	case "ConfigMap":
		into = &r.config
	case "ServiceAccount":
		into = &r.account
	case "Secret":
		r.secrets = append(r.secrets, corev1.Secret{})
		into = &r.secrets[len(r.secrets)-1]
	case "Deployment":
		into = &r.deployment
	case "ClusterRole":
		into = &r.clusterRole
	case "ClusterRoleBinding":
		r.clusterBindings = append(r.clusterBindings, rbacv1.ClusterRoleBinding{})
		into = &r.clusterBindings[len(r.clusterBindings)-1]
	case "Role":
		into = &r.role
	case "RoleBinding":
		r.bindings = append(r.bindings, rbacv1.RoleBinding{})
		into = &r.bindings[len(r.bindings)-1]
	default:
		return fmt.Errorf("unexpected %s %s", kind.APIVersion, kind.Kind)
	}
	return yaml.UnmarshalStrict([]byte(document), into)
}

// tryRenderScheduler is `helm template qrm-scheduler charts/qrm-scheduler -n default` with the values in place of the default ones.
func tryRenderScheduler(overrides values) (*schedulerRelease, error) {
	made := &schedulerRelease{}
	options := chartutil.ReleaseOptions{Name: "qrm-scheduler", Namespace: "default", IsInstall: true}
	if err := renderInto(made, schedulerChart, overrides, options, chartutil.DefaultCapabilities); err != nil {
		return nil, err
	}
	return made, nil
}

func renderScheduler(t *testing.T, overrides values) *schedulerRelease {
	t.Helper()
	made, err := tryRenderScheduler(overrides)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestSchedulerChartLintHasNothingToSay(t *testing.T) {
	for _, message := range lint.All(schedulerChart, nil, "default", true).Messages {
		if message.Severity > support.InfoSev {
			t.Error(message)
		}
	}
}

func TestSchedulerChartsConfigurationIsGood(t *testing.T) {
	bin := os.Getenv("QRM_BIN_DIR")
	program := filepath.Join(bin, "qrm-scheduler")
	if _, err := os.Stat(program); err != nil {
		t.Skip("qrm-scheduler is not built")
	}
	for _, config := range []string{"", "resources: [numa, numa-match, classes]\nunknown: pass\nstale-after: 5s"} {
		made := renderScheduler(t, at("config", config))
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(made.config.Data["config.yaml"]), 0o600); err != nil {
			t.Fatal(err)
		}
		if output, err := exec.Command(program, "serve", "--config="+file, "--check-config").CombinedOutput(); err != nil {
			t.Errorf("%v: %s in\n%s", err, output, made.config.Data["config.yaml"])
		}
	}
}

func TestSchedulerChartAsksItsExtender(t *testing.T) {
	made := renderScheduler(t, with(at("schedulerName", "numa"), "percentageOfNodesToScore", 30))
	var config struct {
		LeaderElection           struct{ LeaderElect *bool }
		PercentageOfNodesToScore int
		Profiles                 []struct{ SchedulerName string }
		Extenders                []struct {
			URLPrefix, FilterVerb, PrioritizeVerb, PreemptVerb, BindVerb string
			NodeCacheCapable                                             bool
			TLSConfig                                                    struct{ CAFile, CertFile, KeyFile string }
		}
	}
	if err := yaml.Unmarshal([]byte(made.config.Data["scheduler.yaml"]), &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Extenders) != 1 || config.Extenders[0].URLPrefix != "https://127.0.0.1:9755" || config.Extenders[0].BindVerb != "bind" ||
		!config.Extenders[0].NodeCacheCapable {
		t.Errorf("extenders %+v", config.Extenders)
	}
	if files := config.Extenders[0].TLSConfig; files.CAFile != "/etc/qrm-tls/ca.crt" || files.CertFile != "/etc/qrm-tls/tls.crt" || files.KeyFile != "/etc/qrm-tls/tls.key" {
		t.Errorf("the extender's client has %+v", files)
	}
	if config.Profiles[0].SchedulerName != "numa" || config.PercentageOfNodesToScore != 30 || *config.LeaderElection.LeaderElect {
		t.Errorf("configuration %+v", config)
	}
	if replicas := made.deployment.Spec.Replicas; *replicas != 1 || made.deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Error("two schedulers may place the same pods")
	}
}

func TestSchedulerChartsExtenderKnowsItsClientByCertificate(t *testing.T) {
	made := renderScheduler(t, nil)
	if len(made.secrets) != 2 {
		t.Fatalf("there are %d Secrets", len(made.secrets))
	}
	certificates := map[string]*x509.Certificate{}
	authorities := x509.NewCertPool()
	for _, secret := range made.secrets {
		pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
		if err != nil {
			t.Fatal(secret.Name, err)
		}
		if certificates[secret.Name], err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			t.Fatal(secret.Name, err)
		}
		if !authorities.AppendCertsFromPEM(secret.Data["ca.crt"]) || string(secret.Data["ca.crt"]) != string(made.secrets[0].Data["ca.crt"]) {
			t.Errorf("%s has another authority", secret.Name)
		}
	}
	options := x509.VerifyOptions{Roots: authorities, DNSName: "127.0.0.1"}
	if _, err := certificates["qrm-scheduler-server"].Verify(options); err != nil {
		t.Error(err)
	}
	options = x509.VerifyOptions{Roots: authorities, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := certificates["qrm-scheduler-client"].Verify(options); err != nil {
		t.Error(err)
	}
	pod := made.deployment.Spec.Template.Spec
	for container, want := range map[string]string{"kube-scheduler": "qrm-scheduler-client", "qrm-scheduler": "qrm-scheduler-server"} {
		if got := secretAt(pod, container, "/etc/qrm-tls"); got != want {
			t.Errorf("%s has %q", container, got)
		}
	}
	for _, key := range []string{"certificate-file: /etc/qrm-tls/tls.crt", "key-file: /etc/qrm-tls/tls.key", "client-ca-file: /etc/qrm-tls/ca.crt"} {
		if !strings.Contains(made.config.Data["config.yaml"], key) {
			t.Errorf("the configuration lacks %s", key)
		}
	}
}

func TestSchedulerChartTakesCertificatesOfOthers(t *testing.T) {
	made := renderScheduler(t, at("tls", values{"serverSecret": "mine", "clientSecret": "its"}))
	pod := made.deployment.Spec.Template.Spec
	if len(made.secrets) != 0 || secretAt(pod, "qrm-scheduler", "/etc/qrm-tls") != "mine" || secretAt(pod, "kube-scheduler", "/etc/qrm-tls") != "its" {
		t.Errorf("volumes %+v beside %d Secrets", pod.Volumes, len(made.secrets))
	}
	if _, err := tryRenderScheduler(at("tls", values{"serverSecret": "mine", "clientSecret": ""})); err == nil {
		t.Error("one of two is taken")
	}
}

// secretAt is the Secret that the container has at the path.
func secretAt(pod corev1.PodSpec, container, path string) string {
	for _, one := range pod.Containers {
		for _, mount := range one.VolumeMounts {
			for _, volume := range pod.Volumes {
				if one.Name == container && mount.MountPath == path && volume.Name == mount.Name && volume.Secret != nil {
					return volume.Secret.SecretName
				}
			}
		}
	}
	return ""
}

func TestSchedulerChartsRightsFollowItsResources(t *testing.T) {
	followed := func(config string) []string {
		made := renderScheduler(t, at("config", config))
		var resources []string
		for _, rule := range made.clusterRole.Rules[4:] {
			resources = append(resources, rule.Resources[0]+"."+rule.APIGroups[0])
		}
		return resources
	}
	if got := followed("resources: [numa]"); len(got) != 0 {
		t.Errorf("for NUMA nodes it reads %v", got)
	}
	want := []string{"noderesourcetopologies.topology.node.k8s.io"}
	if got := followed("resources: [numa-match]"); !slices.Equal(got, want) {
		t.Errorf("it reads %v", got)
	}
	if _, err := tryRenderScheduler(at("config", "address: ':9755'")); err == nil || !strings.Contains(err.Error(), "cannot take address") {
		t.Errorf("an address in config: %v", err)
	}
}

// strangersValues are those of docs/scheduler.md for an author's program.
func strangersValues(t *testing.T) values {
	t.Helper()
	page, err := os.ReadFile("../../../docs/scheduler.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		var given values
		if err := yaml.Unmarshal([]byte(text), &given); err == nil && given["command"] != nil {
			return given
		}
	}
	t.Fatal("the page has no values with a command")
	return nil
}

func TestSchedulerChartTakesAnyProgramAndWhatItNeeds(t *testing.T) {
	made := renderScheduler(t, strangersValues(t))
	pod := made.deployment.Spec.Template.Spec
	for _, container := range pod.Containers {
		if container.Name != "qrm-scheduler" {
			continue
		}
		if !slices.Equal(container.Command, []string{"/usr/local/bin/power-scheduler"}) || !strings.HasPrefix(container.Image, "registry.example.com/power-scheduler:") {
			t.Errorf("it runs %v of %s", container.Command, container.Image)
		}
		last := container.VolumeMounts[len(container.VolumeMounts)-1]
		if last.MountPath != "/run/power" || pod.Volumes[len(pod.Volumes)-1].HostPath.Path != "/run/power" {
			t.Errorf("it has %v of %v", container.VolumeMounts, pod.Volumes)
		}
	}
	rules := made.clusterRole.Rules
	if last := rules[len(rules)-1]; last.Resources[0] != "configmaps" || !slices.Equal(last.Verbs, []string{"get", "list", "watch"}) {
		t.Errorf("it may %v", rules)
	}
	if !strings.Contains(made.config.Data["config.yaml"], "measurements: /run/power/watts") {
		t.Error(made.config.Data["config.yaml"])
	}
}
