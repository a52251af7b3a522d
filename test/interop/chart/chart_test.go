package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestLintHasNothingToSay(t *testing.T) {
	for _, message := range lint.All(directory, nil, namespace, true).Messages {
		if message.Severity > support.InfoSev {
			t.Error(message)
		}
	}
}

// Those in templates would be an unexpected kind for render.
func TestChartInstallsNoNewApiTypes(t *testing.T) {
	chart, err := loader.Load(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range chart.CRDObjects() {
		t.Errorf("it installs %s", definition.Filename)
	}
	render(t, nil)
}

// leaves are the paths of all values but mappings, such as image.tag; an empty mapping is one, too, and one of whole.
func leaves(prefix string, of, whole values) []string {
	var found []string
	for key, value := range of {
		_, isWhole := whole[prefix+key]
		if inner, is := value.(values); is && len(inner) > 0 && !isWhole {
			found = append(found, leaves(prefix+key+".", inner, whole)...)
		} else {
			found = append(found, prefix+key)
		}
	}
	return found
}

// at is a value at a path such as image.tag.
func at(path string, value any) values { return with(nil, path, value) }

// with is a copy of the values with one more at a path.
func with(base values, path string, value any) values {
	copied := maps.Clone(base)
	if copied == nil {
		copied = values{}
	}
	key, rest, nested := strings.Cut(path, ".")
	if nested {
		inner, _ := copied[key].(values)
		value = with(inner, rest, value)
	}
	copied[key] = value
	return copied
}

// ownNetwork is needed for what makes no sense on the node's.
var ownNetwork = values{"hostNetwork": false, "config": "builtin-plugins: [cpu, memory]"}

func TestEveryValueIsUsed(t *testing.T) {
	others := values{
		"config":                               "log-level: debug\n",
		"configFiles":                          values{"blockio.yaml": "Classes: {}\n"},
		"image.repository":                     "registry.example/qrm",
		"image.tag":                            "1.2.3",
		"image.pullPolicy":                     "Always",
		"imagePullSecrets":                     []any{values{"name": "registry"}},
		"privileged":                           true,
		"capabilities.add":                     []any{"DAC_OVERRIDE"},
		"seccompProfile.type":                  "Unconfined",
		"appArmorProfile":                      values{"type": "Localhost", "localhostProfile": "qrm"},
		"seLinuxOptions":                       values{"type": "spc_t"},
		"openshift.securityContextConstraints": true,
		"hostNetwork":                          false,
		"resources.requests.cpu":               "100m",
		"resources.requests.memory":            "1Gi",
		"resources.limits.memory":              "2Gi",
		"priorityClassName":                    "system-cluster-critical",
		"nodeSelector":                         values{"qrm": "true"},
		"affinity":                             values{"nodeAffinity": values{}},
		"tolerations":                          []any{values{"key": "qrm", "operator": "Exists"}},
		"maxUnavailable":                       "10%",
		"podDisruptionBudget.minAvailable":     3,
		"extraArgs":                            []any{"--log-level=debug"},
		"extraEnv":                             []any{values{"name": "TZ", "value": "UTC"}},
		"extraVolumes":                         []any{values{"name": "more", "emptyDir": values{}}},
		"extraVolumeMounts":                    []any{values{"name": "more", "mountPath": "/more"}},
		"podAnnotations":                       values{"example.com/a": "b"},
		"podLabels":                            values{"example.com/c": "d"},
		"computeDriver.enabled":                true,
		"computeDriver.config":                 "policies: {one: {cores: '*'}}\n",
		"computeDriver.privileged":             false,
		"computeDriver.resources":              values{"limits": values{"memory": "1Gi"}},
		"admissionPolicy.enabled":              false,
		"admissionPolicy.validationActions":    []any{"Audit", "Warn"},
		"networkPolicy.enabled":                true,
		"networkPolicy.from":                   []any{values{"podSelector": values{}}},
		"page.enabled":                         true,
		"page.port":                            9000,
		"podMonitor.enabled":                   true,
		"podMonitor.interval":                  "1m",
		"podMonitor.labels":                    values{"team": "node"},
		"podMonitor.endpoint":                  values{"tlsConfig": values{"serverName": "qrm"}},
		"prometheusRule.enabled":               true,
		"prometheusRule.labels":                values{"team": "node"},
		"dashboard.enabled":                    true,
		"dashboard.labels":                     values{"grafana_dashboard": "1"},
	}
	needed := map[string]values{
		"hostNetwork":              at("config", ownNetwork["config"]),
		"networkPolicy.enabled":    ownNetwork,
		"networkPolicy.from":       with(ownNetwork, "networkPolicy.enabled", true),
		"computeDriver.config":     at("computeDriver.enabled", true),
		"computeDriver.resources":  at("computeDriver.enabled", true),
		"computeDriver.privileged": at("computeDriver.enabled", true),
		"page.port":                at("page.enabled", true),
		"podMonitor.interval":      at("podMonitor.enabled", true),
		"podMonitor.labels":        at("podMonitor.enabled", true),
		"podMonitor.endpoint":      at("podMonitor.enabled", true),
		"prometheusRule.labels":    at("prometheusRule.enabled", true),
		"dashboard.labels":         at("dashboard.enabled", true),
	}
	defaults, err := chartutil.ReadValuesFile(filepath.Join(directory, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range leaves("", defaults, others) {
		other, known := others[path]
		if !known {
			t.Errorf("%s is not tested", path)
			continue
		}
		if reflect.DeepEqual(render(t, needed[path]), render(t, with(needed[path], path, other))) {
			t.Errorf("%s changes nothing", path)
		}
	}
}

func TestWrongValuesAreErrors(t *testing.T) {
	for name, test := range map[string]struct {
		values values
		says   string
	}{
		"Typo":              {at("image.repo", "x"), "additional properties 'repo' not allowed"},
		"UnknownKey":        {at("replicas", 3), "additional properties 'replicas' not allowed"},
		"ConfigAsMapping":   {at("config", values{"log-level": "debug"}), "got object, want string"},
		"ConfigAsOtherFile": {at("configFiles", values{"config.yaml": "x"}), "config.yaml"},
		"FileThatIsNotGiven": {at("config", "{qos-classes: true, class-types: {blockio: {config-file: /etc/qrm/blockio.yaml}}}"),
			"add --set-file 'configFiles.blockio\\.yaml=FILE'"},
		"ConfigIsNoYaml":        {at("config", "[1"), "cannot read config: error converting YAML"},
		"DriversConfigIsNoYaml": {with(at("computeDriver.enabled", true), "computeDriver.config", "[1"), "cannot read computeDriver.config"},
		"NoneAtOnce":            {at("maxUnavailable", 0), "maxUnavailable"},
		"PullPolicy":            {at("image.pullPolicy", "Sometimes"), "must be one of"},
		"PolicyWithoutAction":   {at("admissionPolicy.validationActions", []any{}), "minItems"},
		"RootlessCapability":    {at("capabilities.add", []any{"cap_sys_admin"}), "does not match pattern"},
		"NamelessProfile":       {at("appArmorProfile", values{"type": "Localhost"}), "missing property 'localhostProfile'"},
		"ArgumentIsNoFlag":      {at("extraArgs", []any{"debug"}), "does not match pattern"},
		"PolicyOnHostNetwork":   {at("networkPolicy.enabled", true), "set hostNetwork to false"},
		"NicsOfNoNode":          {at("hostNetwork", false), "take nic out of builtin-plugins"},
		"KubeletOfNoNode": {with(ownNetwork, "config", "{builtin-plugins: [cpu], kubelet-url: 'https://127.0.0.1:10250/pods'}"),
			"take kubelet-url out of config"},
		"ClassesUnprivileged": {at("config", tunedConfig), "set privileged to true, or take the classes out"},
		"MonitorOfNothing": {values{"config": `metrics-address: ""`, "podMonitor": values{"enabled": true}},
			"metrics-address in config is empty"},
	} {
		if _, err := tryRender(test.values, 36); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v instead of %q", name, err, test.says)
		}
	}
}

const tunedConfig = "plugins: {cpu: {classes: {slow: {governor: powersave}}, reserved-class: slow, reserved-cpus: 0-1}}"

func TestClassesOfCpusMakeAPrivilegedPod(t *testing.T) {
	made := render(t, values{"config": tunedConfig, "privileged": true})
	if privileged := made.container().SecurityContext.Privileged; privileged == nil || !*privileged {
		t.Error("classes of CPUs are configured and the pod may not set them")
	}
}

func TestClassesThatOnlyNameQosClassesNeedNoPrivilege(t *testing.T) {
	render(t, at("config", "plugins: {cpu: {classes: {batch: {qos: {cpu-scheduling: idle}}}, reserved-class: batch, reserved-cpus: 0-1}}"))
}

func TestConfigReachesQrmdAsItIsWritten(t *testing.T) {
	text := "# Lines keep their numbers.\nnuma-memory: {0: 237706936320}\nnri-plugin-index: \"05\"\nkubelet-url: \"\"\n"
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
	var nearest *corev1.VolumeMount
	for _, mount := range made.container().VolumeMounts {
		if (strings.HasPrefix(path, mount.MountPath+"/") || path == mount.MountPath) &&
			(nearest == nil || len(mount.MountPath) > len(nearest.MountPath)) {
			index := slices.IndexFunc(made.pod().Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
			if index < 0 || made.pod().Volumes[index].HostPath == nil || made.pod().Volumes[index].HostPath.Path != mount.MountPath {
				t.Errorf("%s is not mounted from the same path of the node", mount.MountPath)
			}
			nearest = &mount
		}
	}
	return nearest
}

func TestEveryPathOfQrmdIsMounted(t *testing.T) {
	written := []string{"state-dir", "registration-dir", "plugins-registry-dir", "pod-resources-socket", "control-socket", "cgroup-root"}
	made := render(t, nil)
	rows := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| `(/[^`]+)` \\| absolute path").
		FindAllStringSubmatch(qrmd(t, "--print-config-reference"), -1)
	if len(rows) < 10 {
		t.Fatalf("the reference has changed its form: %v", rows)
	}
	for _, row := range rows {
		key, path := row[1], row[2]
		if key == "kubelet-state-dir" {
			continue
		}
		mount := mounted(t, made, path)
		if mount == nil || strings.HasSuffix(mount.MountPath, ".sock") || mount.ReadOnly == slices.Contains(written, key) {
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
		"/var/lib/kubelet/cpu_manager_state":    "",
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

func TestOfKubeletsDirectoryOnlyStateAndSocketsAreMounted(t *testing.T) {
	for _, made := range []*release{render(t, nil), render(t, at("privileged", true))} {
		got := map[string]corev1.HostPathType{}
		for _, volume := range made.pod().Volumes[1:] {
			if strings.HasPrefix("/var/lib/kubelet/", volume.HostPath.Path) || strings.HasPrefix(volume.HostPath.Path, "/var/lib/kubelet") {
				got[volume.HostPath.Path] = *volume.HostPath.Type
			}
		}
		want := map[string]corev1.HostPathType{
			"/var/lib/kubelet/cpu_manager_state":    corev1.HostPathFile,
			"/var/lib/kubelet/memory_manager_state": corev1.HostPathFile,
			"/var/lib/kubelet/pod-resources":        corev1.HostPathDirectoryOrCreate,
			"/var/lib/kubelet/pods-api":             corev1.HostPathDirectoryOrCreate,
		}
		if !maps.Equal(got, want) {
			t.Errorf("of kubelet's directory, %v are mounted", got)
		}
	}
}

func TestClassesGetWhatTheirTypesWriteAndRead(t *testing.T) {
	const config = `{write-cpusets: false, qos-classes: %s, class-types: {blockio: {config-file: /etc/qrm/blockio.yaml}, rdt: {config-file: /srv/rdt.yaml}}}`
	given := at("configFiles", values{"blockio.yaml": "Classes: {}\n"})
	on := render(t, with(given, "config", fmt.Sprintf(config, "true")))
	off := render(t, with(given, "config", fmt.Sprintf(config, "false")))
	if on.config.Data["blockio.yaml"] != "Classes: {}\n" {
		t.Errorf("beside the configuration are %v", on.config.Data)
	}
	for path, want := range map[string]string{"/dev/sda": "/dev read-only", "/sys/fs/resctrl/tasks": "/sys/fs writable",
		"/sys/fs/cgroup/blkio": "/sys/fs/cgroup writable", "/srv/rdt.yaml": "/srv/rdt.yaml read-only",
		"/etc/containerd/config.toml": "/etc/containerd read-only"} {
		mount := mounted(t, on, path)
		if mount == nil || mount.MountPath+map[bool]string{true: " read-only", false: " writable"}[mount.ReadOnly] != want {
			t.Errorf("%s is mounted as %v instead of %s", path, mount, want)
		}
		if mount := mounted(t, off, path); mount != nil && !mount.ReadOnly {
			t.Errorf("without classes, %s is mounted as %v", path, mount)
		}
	}
}

func TestRdtIsNotConfinedByTheDefaultProfileOfAppArmor(t *testing.T) {
	const config = `{qos-classes: %s, class-types: {rdt: {config-file: /srv/rdt.yaml}}}`
	on := at("config", fmt.Sprintf(config, "true"))
	if profile := render(t, on).container().SecurityContext.AppArmorProfile; profile == nil || profile.Type != "Unconfined" {
		t.Errorf("with rdt, the profile is %v", profile)
	}
	if profile := render(t, at("config", fmt.Sprintf(config, "false"))).container().SecurityContext.AppArmorProfile; profile != nil {
		t.Errorf("without classes, the profile is %v", profile)
	}
	if _, err := tryRender(with(on, "appArmorProfile", values{"type": "RuntimeDefault"}), 36); err == nil || !strings.Contains(err.Error(), "denies writes to resctrl") {
		t.Errorf("with the default profile: %v", err)
	}
	shipped := values{"type": "Localhost", "localhostProfile": "qrm"}
	if profile := render(t, with(on, "appArmorProfile", shipped)).container().SecurityContext.AppArmorProfile; profile == nil || *profile.LocalhostProfile != "qrm" {
		t.Errorf("with the chart's own profile, it is %v", profile)
	}
	// vm_apparmor runs qrmd under it.
	text, err := os.ReadFile(filepath.Join(directory, "files", "qrm.apparmor"))
	if err != nil || !strings.Contains(string(text), "\nprofile qrm ") {
		t.Errorf("the chart has no profile qrm: %v", err)
	}
}

func TestCgroupsAreWrittenOnlyWhereCpusetsAre(t *testing.T) {
	for given, readOnly := range map[string]bool{"": false, "write-cpusets: true": false, "write-cpusets: false": true} {
		if mount := mounted(t, render(t, at("config", given)), "/sys/fs/cgroup"); mount == nil || mount.ReadOnly != readOnly {
			t.Errorf("with %q, cgroups are mounted as %v", given, mount)
		}
	}
}

func TestNamespacesThatAreFollowedAreMountedAsTheyComeAndGo(t *testing.T) {
	mount := mounted(t, render(t, at("config", "plugins: {nic: {follow: all, nics: [{interface: eth1, netns: /run/netns/ns1}]}}")), "/run/netns/ns1")
	if mount == nil || mount.MountPath != "/run/netns" || !mount.ReadOnly || *mount.MountPropagation != corev1.MountPropagationHostToContainer {
		t.Errorf("they are mounted as %v", mount)
	}
	if mount := mounted(t, render(t, at("config", "plugins: {nic: {nics: [{interface: eth1, netns: /run/netns/ns1}]}}")), "/run/netns/ns1"); mount != nil {
		t.Errorf("those that are not followed are mounted as %v", mount)
	}
}

func TestVolumesOfLongPathsHaveUniqueNames(t *testing.T) {
	names := map[string]bool{}
	volumes := render(t, at("config", "kubelet-state-dir: /"+strings.Repeat("data/", 30)+"kubelet")).pod().Volumes
	for _, volume := range volumes {
		names[volume.Name] = true
		if len(volume.Name) > 63 {
			t.Errorf("%s is too long", volume.Name)
		}
	}
	if len(names) != len(volumes) {
		t.Errorf("%d volumes have the names %v", len(volumes), names)
	}
}

func TestOtherMountsAreDirectories(t *testing.T) {
	for _, volume := range render(t, at("config", `kubelet-state-dir: ""`)).pod().Volumes[1:] {
		if kind := *volume.HostPath.Type; kind != corev1.HostPathDirectory && kind != corev1.HostPathDirectoryOrCreate {
			t.Errorf("%s is a %s", volume.HostPath.Path, kind)
		}
	}
}

func TestContainerHasFewCapabilitiesByDefault(t *testing.T) {
	for config, want := range map[string][]corev1.Capability{
		"":                                {"SYS_NICE", "DAC_OVERRIDE"},
		"nice: 0":                         {"DAC_OVERRIDE"},
		"{nice: 0, realtime-priority: 1}": {"SYS_NICE", "DAC_OVERRIDE"},
		"pod-resources-group: \"1000\"":   {"SYS_NICE", "CHOWN", "DAC_OVERRIDE"},
		"{nice: 0, qos-classes: true, class-types: {cpu-scheduling: {config-file: /srv/cpu.yaml}}}":                          {"SYS_NICE", "DAC_OVERRIDE"},
		"{nice: 0, qos-classes: true, class-types: {oom: {config-file: /srv/oom.yaml}}}":                                     {"DAC_OVERRIDE", "SYS_RESOURCE"},
		"{nice: 0, plugins: {nic: {follow: all, nics: [{interface: eth1, netns: /run/netns/ns1}]}}}":                         {"SYS_ADMIN", "DAC_OVERRIDE"},
		"{nice: 0, plugins: {nic: {follow: host, nics: [{interface: eth1, netns: /run/netns/ns1}]}}}":                        {"DAC_OVERRIDE"},
		"{nice: 0, plugins: {nic: {follow: all, nics: [{interface: eth1}]}}}":                                                {"DAC_OVERRIDE"},
		"{nice: 0, builtin-plugins: [cpu], plugins: {nic: {follow: all, nics: [{interface: eth1, netns: /run/netns/ns1}]}}}": {"DAC_OVERRIDE"},
		"{nice: 0, qos-classes: false, class-types: {oom: {config-file: /srv/oom.yaml}}}":                                    {"DAC_OVERRIDE"},
	} {
		security := render(t, with(at("config", config), "capabilities.add", []any{"DAC_OVERRIDE"})).container().SecurityContext
		if *security.Privileged || *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem ||
			!slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) || !slices.Equal(security.Capabilities.Add, want) ||
			security.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("with %q, it may %v", config, security)
		}
	}
}

func TestContainerIsPrivilegedByOneValue(t *testing.T) {
	security := render(t, at("privileged", true)).container().SecurityContext
	if !*security.Privileged || !*security.ReadOnlyRootFilesystem || security.AllowPrivilegeEscalation != nil ||
		security.Capabilities != nil || security.SeccompProfile != nil {
		t.Errorf("it may %v", security)
	}
}

func TestAppArmorIsAskedForAsTheClusterReadsIt(t *testing.T) {
	const annotation = "container.apparmor.security.beta.kubernetes.io/qrmd"
	local := values{"type": "Localhost", "localhostProfile": "qrm"}
	if profile := render(t, at("appArmorProfile", local)).container().SecurityContext.AppArmorProfile; *profile.LocalhostProfile != "qrm" {
		t.Errorf("the profile is %v", profile)
	}
	for want, profile := range map[string]values{
		"runtime/default": {"type": "RuntimeDefault"}, "unconfined": {"type": "Unconfined"}, "localhost/qrm": local} {
		made, err := tryRender(at("appArmorProfile", profile), 29)
		if err != nil {
			t.Fatal(err)
		}
		if got := made.daemonSet.Spec.Template.Annotations[annotation]; got != want || made.container().SecurityContext.AppArmorProfile != nil {
			t.Errorf("in 1.29 the profile is %q instead of %q", got, want)
		}
	}
}

func TestOpenShiftAllowsWhatThePodAsksFor(t *testing.T) {
	base := values{"openshift": values{"securityContextConstraints": true}, "config": `pod-resources-group: "1000"`}
	made := render(t, base)
	if got := made.openshift; got.AllowPrivilegedContainer || !got.AllowHostNetwork || !got.AllowHostPID || !got.AllowHostDirVolumePlugin ||
		!slices.Equal(got.AllowedCapabilities, []string{"SYS_NICE", "CHOWN"}) ||
		!slices.Equal(got.Users, []string{"system:serviceaccount:" + namespace + ":" + made.account.Name}) {
		t.Errorf("it allows %v", got)
	}
	if label := made.container().SecurityContext.SELinuxOptions; label.Type != "spc_t" {
		t.Errorf("SELinux keeps it from the node's sockets: %v", label)
	}
	if got := render(t, with(base, "privileged", true)).openshift; !got.AllowPrivilegedContainer || !slices.Equal(got.AllowedCapabilities, []string{"*"}) {
		t.Errorf("it allows %v", got)
	}
}

func TestComputeDriverHasItsFileAndTheNodesDirectories(t *testing.T) {
	if made := render(t, nil); made.driver != nil || made.policy != nil {
		t.Error("it runs unasked")
	}
	text := "policies: {one: {cores: '*'}}\n"
	made := render(t, values{"config": "state-dir: /srv/qrm", "computeDriver": values{"enabled": true, "config": text}})
	pod := made.driver.Spec.Template.Spec
	if got := made.policy.Data["cci.yaml"]; strings.TrimSpace(got) != strings.TrimSpace(text) || pod.Volumes[0].ConfigMap.Name != made.policy.Name {
		t.Errorf("its file is %q of %s", got, made.policy.Name)
	}
	mounts := map[string]string{}
	for _, mount := range pod.Containers[0].VolumeMounts {
		mounts[mount.MountPath] = mount.Name
	}
	for _, volume := range pod.Volumes[1:] {
		if mounts[volume.HostPath.Path] != volume.Name {
			t.Errorf("%s is not mounted where it is on the node", volume.HostPath.Path)
		}
	}
	for _, argument := range []string{"--config=/etc/qrm-cci-driver/cci.yaml", "--plugins-registry-dir=/var/lib/qrm/plugins_registry", "--state-dir=/srv/qrm"} {
		path := argument[strings.Index(argument, "=")+1:]
		if !slices.Contains(pod.Containers[0].Args, argument) || mounts[path]+mounts[filepath.Dir(path)] == "" {
			t.Errorf("%v with %v lacks %s", pod.Containers[0].Args, mounts, argument)
		}
	}
	if security := pod.Containers[0].SecurityContext; !*security.Privileged || !pod.HostPID || !*security.ReadOnlyRootFilesystem {
		t.Errorf("it may %v", security)
	}
	if *pod.AutomountServiceAccountToken {
		t.Error("it can write to the API server")
	}
	if mounts["/sys/fs/cgroup"] == "" {
		t.Error("it sees no cgroup of the node's containers")
	}
	unprivileged := render(t, at("computeDriver", values{"enabled": true, "privileged": false})).driver.Spec.Template.Spec
	if slices.ContainsFunc(unprivileged.Containers[0].VolumeMounts, func(mount corev1.VolumeMount) bool { return mount.MountPath == "/sys/fs/cgroup" }) {
		t.Error("unprivileged, it reaches the node's cgroups")
	}
	if security := unprivileged.Containers[0].SecurityContext; *security.Privileged || *security.AllowPrivilegeEscalation || unprivileged.HostPID ||
		!slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("unprivileged, it may %v", security)
	}
	for label, value := range made.driver.Spec.Selector.MatchLabels {
		if made.driver.Spec.Template.Labels[label] != value {
			t.Errorf("its pods have no label %s=%s", label, value)
		}
	}
	if reflect.DeepEqual(made.driver.Spec.Selector, made.daemonSet.Spec.Selector) {
		t.Error("two DaemonSets select the same pods")
	}
}

func TestComputeDriverAcceptsItsArgumentsAndItsFile(t *testing.T) {
	made := render(t, at("computeDriver.enabled", true))
	file := filepath.Join(t.TempDir(), "cci.yaml")
	if err := os.WriteFile(file, []byte(made.policy.Data["cci.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := slices.Clone(made.driver.Spec.Template.Spec.Containers[0].Args)
	arguments[slices.Index(arguments, "--config=/etc/qrm-cci-driver/cci.yaml")] = "--config=" + file
	program(t, "qrm-cci-driver", append([]string{"--check-config"}, arguments...)...)
}

func TestNetworkPolicyGuardsTheMetrics(t *testing.T) {
	closed := render(t, with(ownNetwork, "networkPolicy.enabled", true))
	if made := closed.network.Spec; len(made.Ingress) != 0 || len(made.PolicyTypes) != 2 {
		t.Errorf("it lets through %v", made)
	}
	from := []any{values{"podSelector": values{"matchLabels": values{"app": "prometheus"}}}}
	made := render(t, with(with(ownNetwork, "networkPolicy.enabled", true), "networkPolicy.from", from))
	rule := made.network.Spec.Ingress[0]
	if rule.From[0].PodSelector.MatchLabels["app"] != "prometheus" || rule.Ports[0].Port.StrVal != made.container().Ports[0].Name ||
		!maps.Equal(made.network.Spec.PodSelector.MatchLabels, made.daemonSet.Spec.Selector.MatchLabels) {
		t.Errorf("it lets %v through", rule)
	}
}

func TestPageIsShownToTheNodeOnlyAndWhereAsked(t *testing.T) {
	for _, arg := range render(t, nil).container().Args {
		if strings.Contains(arg, "page-address") {
			t.Errorf("the page is served by default: %s", arg)
		}
	}
	container := render(t, at("page.enabled", true)).container()
	if !slices.Contains(container.Args, "--page-address=127.0.0.1:9757") ||
		!slices.Contains(container.Args, "--node-name=$(QRM_NODE_NAME)") {
		t.Errorf("got %v", container.Args)
	}
}

func TestDisruptionBudgetCountsThePods(t *testing.T) {
	if render(t, nil).budget != nil {
		t.Error("there is a budget that nobody asked for")
	}
	made := render(t, at("podDisruptionBudget.minAvailable", 3))
	if spec := made.budget.Spec; spec.MinAvailable.IntValue() != 3 || !maps.Equal(spec.Selector.MatchLabels, made.daemonSet.Spec.Selector.MatchLabels) {
		t.Errorf("the budget is %v", spec)
	}
}

func TestPodRunsOnLinuxOfItsImagesArchitecture(t *testing.T) {
	want := map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/arch": runtime.GOARCH}
	if got := render(t, nil).pod().NodeSelector; !maps.Equal(got, want) {
		t.Errorf("it runs on nodes with %v", got)
	}
}

func TestQrmdKnowsItsOwnPod(t *testing.T) {
	key := regexp.MustCompile("`skip-annotation` \\| `([^`]+)`").FindStringSubmatch(qrmd(t, "--print-config-reference"))[1]
	const reserved = "plugins: {cpu: {reserved-cpus: '0'}}\n"
	for name, test := range map[string]struct{ namespace, config, key, value string }{
		"System":         {namespace, "", key, "true"},
		"OtherKey":       {namespace, "skip-annotation: example.com/skip", "example.com/skip", "true"},
		"NoKey":          {namespace, `skip-annotation: ""`, key, ""},
		"ByRule":         {otherNamespace, ownRule, key, "true"},
		"ByGlob":         {otherNamespace, `permissions: [{namespaces: [a, "qrm-*"], allow: [everything]}]`, key, "true"},
		"BySkipping":     {otherNamespace, "skip-namespaces: [qrm-system]", key, ""},
		"FirstRuleWins":  {otherNamespace, "skip-namespaces: [qrm-system]\npermissions: [{namespaces: ['*']}, {namespaces: [qrm-system], allow: [opt-out]}]", key, ""},
		"Reserved":       {namespace, reserved, levelKey, "system_cores"},
		"ReservedOnly":   {namespace, reserved, key, ""},
		"ReservedCount":  {namespace, "plugins: {cpu: {static: {reserved-cpu-count: 1}}}", levelKey, "system_cores"},
		"StaticOnly":     {namespace, "plugins: {cpu: {static: true}}", levelKey, ""},
		"ReservedByRule": {otherNamespace, reserved + "permissions: [{namespaces: [qrm-system], allow: [reserved-cpus]}]", levelKey, "system_cores"},
	} {
		if got := renderIn(t, test.namespace, at("config", test.config)).daemonSet.Spec.Template.Annotations[test.key]; got != test.value {
			t.Errorf("%s: annotation %s is %q", name, test.key, got)
		}
	}
	for _, config := range []string{"", "permissions: [{namespaces: [qrm-systems], allow: [everything]}]", ownRule + `skip-annotation: ""`,
		reserved + ownRule, reserved + "skip-namespaces: [qrm-system]"} {
		if _, err := tryRenderIn(otherNamespace, at("config", config), 36); err == nil || !strings.Contains(err.Error(), "allow: [opt-out, reserved-cpus]") {
			t.Errorf("with %q, it is not told that the pod's namespace needs a rule: %v", config, err)
		}
	}
}

func TestWhatOnlyPoliciesCheckNeedsThem(t *testing.T) {
	const byAccount = "qos-classes: true\nclass-types: {oom: {classes: {first: {service-accounts: [a/b]}}}}"
	const byLabel = "qos-classes: true\nclass-types: {oom: {classes: {first: {namespace-labels: [a=b]}}}}"
	for _, test := range []struct {
		config  string
		minor   int
		enabled bool
		actions []any
		fits    bool
	}{
		{byAccount, 30, true, []any{"Deny"}, true}, {byAccount, 29, true, []any{"Deny"}, false}, {byAccount, 36, false, []any{"Deny"}, false},
		{byLabel, 36, true, []any{"Warn"}, false}, {byLabel, 36, true, []any{"Deny", "Audit"}, true},
		{"publish: [pod-classes]", 32, true, []any{"Deny"}, true}, {"publish: [pod-classes]", 31, true, []any{"Deny"}, false},
		{"publish: [pod-failures]", 32, true, []any{"Deny"}, true}, {"publish: [pod-failures]", 32, false, []any{"Deny"}, false},
	} {
		_, err := tryRenderIn(namespace, values{"config": test.config, "admissionPolicy": values{"enabled": test.enabled, "validationActions": test.actions}}, test.minor)
		if (err == nil) != test.fits || (err != nil && !strings.Contains(err.Error(), "only the chart's admission policies check this")) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

func TestProbesReachAPodWithoutHostNetwork(t *testing.T) {
	made := render(t, ownNetwork).container()
	live := made.LivenessProbe.HTTPGet
	if !slices.Contains(made.Args, "--probe-address=:9754") || live.Host != "" || live.Port.IntVal != 9754 {
		t.Errorf("%v is probed at %v", made.Args, live)
	}
}

func TestProbesFollowTheProbeAddress(t *testing.T) {
	for address, want := range map[string]struct {
		host string
		port int32
	}{":80": {"", 80}, "127.0.0.1:9754": {"127.0.0.1", 9754}, "[::1]:80": {"::1", 80}} {
		made := render(t, at("config", `probe-address: "`+address+`"`)).container()
		live, ready := made.LivenessProbe.HTTPGet, made.ReadinessProbe.HTTPGet
		if started := made.StartupProbe.HTTPGet; !reflect.DeepEqual(started, live) {
			t.Errorf("%s is probed at %v when it starts", address, started)
		}
		if live.Host != want.host || live.Path != "/healthz" || live.Port.IntVal != want.port ||
			ready.Host != want.host || ready.Path != "/readyz" || ready.Port.IntVal != want.port {
			t.Errorf("%s is probed at %v, %v", address, live, ready)
		}
	}
	if made := render(t, at("config", `probe-address: ""`)).container(); made.LivenessProbe != nil || made.ReadinessProbe != nil || made.StartupProbe != nil {
		t.Error("it is probed though nothing listens")
	}
}

func TestKubeletIsAskedWithAnAccountThatMayReadPodsOnly(t *testing.T) {
	made := render(t, at("config", "kubelet-url: ''"))
	if made.role != nil || *made.pod().AutomountServiceAccountToken || *made.account.AutomountServiceAccountToken {
		t.Error("there is a role or token that nothing needs")
	}
	for minor, want := range map[int]string{32: "nodes/proxy", 33: "nodes/pods"} {
		config := "{kubelet-url: 'https://127.0.0.1:10250/pods', kubelet-allow-nodes-proxy: " + fmt.Sprint(minor < 33) + "}"
		made, err := tryRender(at("config", config), minor)
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

func TestKubeletIsAskedByDefaultWhereAnAccountThatMayReadPodsSuffices(t *testing.T) {
	const url, pin = "--kubelet-url=https://127.0.0.1:10250/pods", "--kubelet-pin-first-use=true"
	for name, test := range map[string]struct {
		values      values
		minor       int
		asks, trust bool
	}{
		"Default":          {nil, 33, true, true},
		"Older":            {nil, 32, false, false},
		"OwnNetwork":       {ownNetwork, 36, false, false},
		"SwitchedOff":      {at("config", "kubelet-url: ''"), 36, false, false},
		"EstimatesWanted":  {at("config", "kubelet-pods-socket: ''"), 36, false, false},
		"OtherCertificate": {at("config", "kubelet-ca-file: /ca.crt"), 36, true, false},
	} {
		made, err := tryRender(test.values, test.minor)
		if err != nil {
			t.Fatal(err)
		}
		args := made.container().Args
		if slices.Contains(args, url) != test.asks || slices.Contains(args, pin) != test.trust {
			t.Errorf("%s: it has %v", name, args)
		}
		if (made.role != nil) != test.asks || *made.pod().AutomountServiceAccountToken != test.asks {
			t.Errorf("%s: it has the role %v", name, made.role)
		}
		if test.asks && !slices.Equal(made.role.Rules[0].Resources, []string{"nodes/pods"}) {
			t.Errorf("%s: it may get %v", name, made.role.Rules[0].Resources)
		}
	}
}

func TestNotesNameWhatEstimatesLoseAndTheTwoWaysOut(t *testing.T) {
	for minor, want := range map[int]bool{32: true, 33: false} {
		notes, err := notesOf(nil, minor)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"extended resources", "PodsAPI", "set kubelet-url"} {
			if strings.Contains(notes, text) != want {
				t.Errorf("in 1.%d the notes are\n%s", minor, notes)
			}
		}
	}
}

func TestPublishingNeedsRightsForWhatIsPublishedOnly(t *testing.T) {
	for what, want := range map[string][]string{
		"topology":           {"nodes [list watch]", "noderesourcetopologies [list watch create patch]"},
		"extended-resources": {"nodes [list watch]", "nodes/status [patch]"},
		"classes":            {"nodes [list watch]", "nodes/status [patch]"},
		"class-resources":    {"nodes [list watch]", "nodes/status [patch]"},
		"pod-classes":        {"pods/status [patch]"},
		"pod-failures":       {"pods/status [patch]"},
		"node-config":        {"nodes [list watch]", "nodes/status [patch]"},
		"drivers":            {"nodes [list watch]", "nodes/status [patch]"},
		"events":             {"events [create patch]"},
	} {
		made := render(t, at("config", "{kubelet-url: '', publish: ["+what+"]}"))
		var may []string
		for _, rule := range made.role.Rules {
			may = append(may, fmt.Sprint(rule.Resources[0], " ", rule.Verbs))
		}
		if !slices.Equal(may, want) {
			t.Errorf("to publish %s it may %v", what, may)
		}
		if !*made.pod().AutomountServiceAccountToken || !slices.Contains(made.container().Args, "--node-name=$(QRM_NODE_NAME)") {
			t.Errorf("to publish %s it lacks its token or its node's name", what)
		}
		isBounded := slices.ContainsFunc(made.policies, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == "qrm-publish" })
		if isBounded != (what != "events") {
			t.Errorf("what it may publish of %s is bounded to its node: %v", what, isBounded)
		}
	}
	outside := render(t, at("config", "{kubelet-url: '', publish: [topology], kubeconfig: /etc/kubernetes/qrm.conf, node-name: me}"))
	if *outside.pod().AutomountServiceAccountToken || outside.role != nil || slices.Contains(outside.container().Args, "--node-name=$(QRM_NODE_NAME)") {
		t.Error("it has an account beside its kubeconfig")
	}
	if !slices.ContainsFunc(outside.container().VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/kubernetes/qrm.conf" }) {
		t.Error("its kubeconfig is not mounted")
	}
}

const reviewed = "{builtin-plugins: [cpu], kubelet-url: '', metrics-certificate-file: /tls/tls.crt, metrics-key-file: /tls/tls.key, metrics-review-url: 'https://10.96.0.1'}"

func TestMetricsAreReviewedByAnAccountThatMayReviewOnly(t *testing.T) {
	made := render(t, at("config", reviewed))
	if !*made.pod().AutomountServiceAccountToken || made.binding.RoleRef.Name != made.role.Name {
		t.Error("it has no token to ask with")
	}
	var may []string
	for _, rule := range made.role.Rules {
		may = append(may, rule.Verbs[0]+" "+rule.Resources[0])
	}
	if want := []string{"create tokenreviews", "create subjectaccessreviews"}; !slices.Equal(may, want) {
		t.Errorf("it may %v", may)
	}
	closed := render(t, with(with(ownNetwork, "config", reviewed), "networkPolicy.enabled", true))
	if len(closed.network.Spec.Egress) != 1 {
		t.Error("its policy keeps it from the API server")
	}
}

func TestTokenThatMayRunCommandsIsNotGivenUnasked(t *testing.T) {
	_, err := tryRender(at("config", "kubelet-url: https://127.0.0.1:10250/pods"), 32)
	if err == nil || !strings.Contains(err.Error(), "set kubelet-allow-nodes-proxy") {
		t.Errorf("it is given: %v", err)
	}
}

func TestAlertsSayWhatToDo(t *testing.T) {
	made := render(t, at("prometheusRule.enabled", true))
	if made.alerts == nil || len(made.alerts.Spec.Groups) != 1 || len(made.alerts.Spec.Groups[0].Rules) < 20 {
		t.Fatalf("it has rules %v", made.alerts)
	}
	for _, rule := range made.alerts.Spec.Groups[0].Rules {
		if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("%s has labels %v and annotations %v", rule.Alert, rule.Labels, rule.Annotations)
		}
	}
}

func TestDashboardIsJson(t *testing.T) {
	made := render(t, at("dashboard.enabled", true))
	var dashboard struct {
		Title  string           `json:"title"`
		Panels []map[string]any `json:"panels"`
	}
	if made.dashboard == nil {
		t.Fatal("there is none")
	}
	if err := json.Unmarshal([]byte(made.dashboard.Data["qrm.json"]), &dashboard); err != nil || len(dashboard.Panels) == 0 {
		t.Errorf("it has %d panels: %v", len(dashboard.Panels), err)
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
	overTls := render(t, with(at("config", reviewed), "podMonitor.enabled", true))
	if made.monitor.Spec.PodMetricsEndpoints[0].Scheme != "" || overTls.monitor.Spec.PodMetricsEndpoints[0].Scheme != "https" {
		t.Errorf("it reads over %v", overTls.monitor.Spec.PodMetricsEndpoints)
	}
}
