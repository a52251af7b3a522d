package chart

import (
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
	for _, config := range []string{"", "resources: [numa, numa-match, classes, fake, disk-io]\nstale-after: 5s"} {
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
		}
	}
	if err := yaml.Unmarshal([]byte(made.config.Data["scheduler.yaml"]), &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Extenders) != 1 || config.Extenders[0].URLPrefix != "http://127.0.0.1:9755" || config.Extenders[0].BindVerb != "bind" ||
		!config.Extenders[0].NodeCacheCapable {
		t.Errorf("extenders %+v", config.Extenders)
	}
	if config.Profiles[0].SchedulerName != "numa" || config.PercentageOfNodesToScore != 30 || *config.LeaderElection.LeaderElect {
		t.Errorf("configuration %+v", config)
	}
	if replicas := made.deployment.Spec.Replicas; *replicas != 1 || made.deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Error("two schedulers may place the same pods")
	}
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
	want := []string{"noderesourcetopologies.topology.node.k8s.io", "nodefakeresourcestatuses.fake.qrm.io", "nodediskiostatuses.disk-io.qrm.io"}
	if got := followed("resources: [numa-match, fake, disk-io]"); !slices.Equal(got, want) {
		t.Errorf("it reads %v", got)
	}
	if _, err := tryRenderScheduler(at("config", "address: ':9755'")); err == nil || !strings.Contains(err.Error(), "cannot take address") {
		t.Errorf("an address in config: %v", err)
	}
}
