package chart

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	corev1 "k8s.io/api/core/v1"
)

func TestLintHasNothingToSay(t *testing.T) {
	for _, message := range lint.All(directory, nil, namespace, true).Messages {
		if message.Severity > support.InfoSev {
			t.Error(message)
		}
	}
}

// leaves are the paths of all values but mappings, such as image.tag; an empty mapping is one, too.
func leaves(prefix string, of values) []string {
	var found []string
	for key, value := range of {
		if inner, is := value.(values); is && len(inner) > 0 {
			found = append(found, leaves(prefix+key+".", inner)...)
		} else {
			found = append(found, prefix+key)
		}
	}
	return found
}

// at is a value at a path such as image.tag.
func at(path string, value any) values {
	for _, key := range slices.Backward(strings.Split(path, ".")) {
		value = values{key: value}
	}
	return value.(values)
}

func TestEveryValueIsUsed(t *testing.T) {
	others := values{
		"config":                 "log-level: debug\n",
		"image.repository":       "registry.example/qrm",
		"image.tag":              "1.2.3",
		"image.pullPolicy":       "Always",
		"imagePullSecrets":       []any{values{"name": "registry"}},
		"resources.requests.cpu": "100m", "resources.requests.memory": "1Gi",
		"nodeSelector":        values{"qrm": "true"},
		"tolerations":         []any{values{"key": "qrm", "operator": "Exists"}},
		"maxUnavailable":      "10%",
		"podMonitor.enabled":  true,
		"podMonitor.interval": "1m",
		"podMonitor.labels":   values{"team": "node"},
	}
	defaults, err := chartutil.ReadValuesFile(filepath.Join(directory, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range leaves("", defaults) {
		other, known := others[path]
		if !known {
			t.Errorf("%s is not tested", path)
			continue
		}
		before, after := values{}, at(path, other)
		if strings.HasPrefix(path, "podMonitor.") && path != "podMonitor.enabled" {
			before = at("podMonitor.enabled", true)
			after["podMonitor"].(values)["enabled"] = true
		}
		if reflect.DeepEqual(render(t, before), render(t, after)) {
			t.Errorf("%s changes nothing", path)
		}
	}
}

func TestWrongValuesAreErrors(t *testing.T) {
	for name, test := range map[string]struct {
		values values
		says   string
	}{
		"Typo":            {at("image.repo", "x"), "additional properties 'repo' not allowed"},
		"UnknownKey":      {at("replicas", 3), "additional properties 'replicas' not allowed"},
		"ConfigAsMapping": {at("config", values{"log-level": "debug"}), "got object, want string"},
		"ConfigIsNoYaml":  {at("config", "[1"), "cannot read config: error converting YAML"},
		"NoneAtOnce":      {at("maxUnavailable", 0), "maxUnavailable"},
		"PullPolicy":      {at("image.pullPolicy", "Sometimes"), "must be one of"},
		"MonitorOfNothing": {values{"config": `metrics-address: ""`, "podMonitor": values{"enabled": true}},
			"metrics-address in config is empty"},
	} {
		if _, err := tryRender(test.values, 36); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v instead of %q", name, err, test.says)
		}
	}
}

func TestConfigReachesQrmdAsItIsWritten(t *testing.T) {
	text := "# Lines keep their numbers.\nnuma-memory: {0: 237706936320}\nnri-plugin-index: \"05\"\n"
	made := render(t, at("config", text))
	if got := made.config.Data["config.yaml"]; got != text {
		t.Errorf("config.yaml is %q", got)
	}
	mount := made.container().VolumeMounts[0]
	if volume := made.pod().Volumes[0]; volume.ConfigMap.Name != made.config.Name || volume.Name != mount.Name ||
		!slices.Equal(made.container().Args, []string{"--config=" + mount.MountPath + "/config.yaml"}) {
		t.Errorf("%v and %v do not give %v the file", volume, mount, made.container().Args)
	}
	if before := render(t, nil).daemonSet.Spec.Template.Annotations; before["checksum/config"] ==
		made.daemonSet.Spec.Template.Annotations["checksum/config"] {
		t.Error("a changed configuration does not restart the pods")
	}
}

func TestQrmdAcceptsTheDefaultConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(render(t, nil).config.Data["config.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := qrmd(t, "--config", file, "--check-config"); got != "the configuration is good\n" {
		t.Error(got)
	}
}

func TestDefaultImageIsThatOfTheBuiltPrograms(t *testing.T) {
	version := strings.TrimSpace(strings.TrimPrefix(qrmd(t, "--version"), "qrmd "))
	if got := render(t, nil).container().Image; got != "localhost/qrm:"+version {
		t.Errorf("the default image is %s, and the built version %s", got, version)
	}
}

// mounted is the path's mount from the node; nil if there is none.
func mounted(t *testing.T, made *release, path string) *corev1.VolumeMount {
	t.Helper()
	for _, mount := range made.container().VolumeMounts {
		if strings.HasPrefix(path, mount.MountPath+"/") || path == mount.MountPath {
			index := slices.IndexFunc(made.pod().Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
			if index < 0 || made.pod().Volumes[index].HostPath == nil || made.pod().Volumes[index].HostPath.Path != mount.MountPath {
				t.Errorf("%s is not mounted from the same path of the node", mount.MountPath)
			}
			return &mount
		}
	}
	return nil
}

func TestEveryPathOfQrmdIsMounted(t *testing.T) {
	readOnly := []string{"kubelet-pod-resources-socket", "kubelet-pods-socket", "kubelet-state-dir", "cgroup-root"}
	made := render(t, nil)
	rows := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| `(/[^`]+)` \\| absolute path").
		FindAllStringSubmatch(qrmd(t, "--print-config-reference"), -1)
	if len(rows) < 10 {
		t.Fatalf("the reference has changed its form: %v", rows)
	}
	for _, row := range rows {
		key, path := row[1], row[2]
		mount := mounted(t, made, path)
		if mount == nil || strings.HasSuffix(mount.MountPath, ".sock") || mount.ReadOnly != slices.Contains(readOnly, key) {
			t.Errorf("%s at %s is mounted as %v", key, path, mount)
		}
	}
}

func TestPathsOfTheConfigAreMounted(t *testing.T) {
	made := render(t, at("config", `{cri-socket: /run/crio/crio.sock, nri-socket: /run/crio/nri.sock, kubelet-state-dir: "",
		kubelet-pods-socket: /data/kubelet/pods-api/pods-api.sock, kubelet-pod-resources-socket: "", state-dir: /data/qrm/state}`))
	for path, want := range map[string]string{
		"/run/crio/crio.sock":                   "/run/crio",
		"/run/crio/nri.sock":                    "/run/crio",
		"/data/kubelet/pods-api/pods-api.sock":  "/data/kubelet/pods-api",
		"/data/qrm/state":                       "/data/qrm",
		"/var/lib/kubelet/pod-resources":        "",
		"/run/containerd/containerd.sock":       "",
		"/var/lib/qrm/pod-resources/kubelet.sk": "/var/lib/qrm",
	} {
		got := ""
		if mount := mounted(t, made, path); mount != nil {
			got = mount.MountPath
		}
		if got != want {
			t.Errorf("%s is mounted by %q instead of %q", path, got, want)
		}
	}
}

func TestOnlyDirectoriesAreMountedFromTheNode(t *testing.T) {
	for _, volume := range render(t, nil).pod().Volumes[1:] {
		if kind := *volume.HostPath.Type; kind != corev1.HostPathDirectory && kind != corev1.HostPathDirectoryOrCreate {
			t.Errorf("%s is a %s", volume.HostPath.Path, kind)
		}
	}
}

func TestQrmdLeavesItsOwnPodAlone(t *testing.T) {
	key := regexp.MustCompile("`skip-annotation` \\| `([^`]+)`").FindStringSubmatch(qrmd(t, "--print-config-reference"))[1]
	for config, want := range map[string]string{"": key, "skip-annotation: example.com/skip": "example.com/skip"} {
		if got := render(t, at("config", config)).daemonSet.Spec.Template.Annotations[want]; got != "true" {
			t.Errorf("with %q, annotation %s is %q", config, want, got)
		}
	}
}

func TestProbesFollowTheMetricsAddress(t *testing.T) {
	for address, want := range map[string]struct {
		host string
		port int32
	}{":9753": {"", 9753}, "127.0.0.1:80": {"127.0.0.1", 80}, "[::1]:80": {"::1", 80}} {
		made := render(t, at("config", `metrics-address: "`+address+`"`)).container()
		live, ready := made.LivenessProbe.HTTPGet, made.ReadinessProbe.HTTPGet
		if live.Host != want.host || live.Path != "/healthz" || live.Port.StrVal != made.Ports[0].Name ||
			ready.Host != want.host || ready.Path != "/readyz" || ready.Port.StrVal != made.Ports[0].Name ||
			made.Ports[0].ContainerPort != want.port {
			t.Errorf("%s is probed at %v, %v of %v", address, live, ready, made.Ports)
		}
	}
	if made := render(t, at("config", `metrics-address: ""`)).container(); made.LivenessProbe != nil || made.ReadinessProbe != nil {
		t.Error("it is probed though nothing listens")
	}
}

func TestKubeletIsAskedWithAnAccountThatMayReadPodsOnly(t *testing.T) {
	if made := render(t, nil); made.account != nil || made.role != nil || *made.pod().AutomountServiceAccountToken {
		t.Error("there is an account that nothing needs")
	}
	for minor, want := range map[int]string{32: "nodes/proxy", 33: "nodes/pods"} {
		made, err := tryRender(at("config", "kubelet-url: https://127.0.0.1:10250/pods"), minor)
		if err != nil {
			t.Fatal(err)
		}
		if rules := made.role.Rules; len(rules) != 1 || !slices.Equal(rules[0].Resources, []string{want}) ||
			!slices.Equal(rules[0].Verbs, []string{"get"}) {
			t.Errorf("in 1.%d it may %v", minor, rules)
		}
		if subject := made.binding.Subjects[0]; subject.Name != made.account.Name || subject.Namespace != namespace ||
			made.binding.RoleRef.Name != made.role.Name || made.pod().ServiceAccountName != made.account.Name {
			t.Errorf("the role is not the pod's: %v", made.binding)
		}
	}
}

func TestMonitorSelectsThePods(t *testing.T) {
	made := render(t, at("podMonitor.enabled", true))
	for key, value := range made.monitor.Spec.Selector.MatchLabels {
		if made.daemonSet.Spec.Template.Labels[key] != value {
			t.Errorf("the pods have no label %s=%s", key, value)
		}
	}
	if made.monitor.Spec.PodMetricsEndpoints[0].Port != made.container().Ports[0].Name {
		t.Errorf("it reads port %v", made.monitor.Spec.PodMetricsEndpoints)
	}
}
