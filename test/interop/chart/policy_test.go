package chart

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	skipKey      = "katalyst.kubewharf.io/skip_qrm_admit"
	levelKey     = "katalyst.kubewharf.io/qos_level"
	cpuKey       = "katalyst.kubewharf.io/cpu_enhancement"
	memoryKey    = "katalyst.kubewharf.io/memory_enhancement"
	nicKey       = "example.com/nic"
	placementKey = "qrm.io/placement"
	// Of the types of classes in permissionRules.
	blockioKey = "blockio.resources.alpha.kubernetes.io/default"
	rdtKey     = "rdt.resources.beta.kubernetes.io/container.main"
	// The default rules come after these.
	permissionRules = `
permissions:
  - {namespaces: [infra, "team-*"], allow: [opt-out, reserved-cpus], pools: [batch, "b.*"], roles: [web],
     classes: ["rdt/*", blockio/fast]}
  - {namespaces: [all, qrm-system], allow: [everything]}
  - {namespaces: ["plain*"]}
implicit-resources: [{resource: NIC, annotation: example.com/nic}]
qos-classes: true
class-types:
  blockio: {config-file: /srv/blockio.yaml, classes: {slow: {namespaces: ["*"]}, batch: {namespaces: ["team-*", plain-1]}, fast: {capacity: 2}}}
  rdt: {config-file: /srv/rdt.yaml}
`
)

// podWith is a pod of one container.
func podWith(name string, labels, annotations map[string]string) object {
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name, "labels": labels, "annotations": annotations},
		"spec": object{"containers": []object{{"name": "main", "image": "localhost/none"}}}}
}

// bindingOf puts a pod on a node.
func bindingOf(pod string, annotations map[string]string) object {
	return object{"apiVersion": "v1", "kind": "Binding", "metadata": object{"name": pod, "annotations": annotations},
		"target": object{"kind": "Node", "name": "node1"}}
}

func annotate(key string, value any) object {
	return object{"metadata": object{"annotations": object{key: value}}}
}

func podsOf(namespace string) string { return "/api/v1/namespaces/" + namespace + "/pods" }

// startGuardedServer has the chart's policies in force.
func startGuardedServer(t *testing.T) *apiServer {
	t.Helper()
	return startServerWith(t, permissionRules)
}

// startServerWith has the chart's policies for a configuration in force.
func startServerWith(t *testing.T, config string) *apiServer {
	t.Helper()
	programs := os.Getenv("QRM_APISERVER_DIR")
	if programs == "" {
		t.Skip("runs within test/e2e/admission_policy.sh")
	}
	server := startApiServer(t, programs)
	for _, name := range []string{"infra", "team-a", "all", "plain-1", "tenant", otherNamespace} {
		server.mustCreate("/api/v1/namespaces", object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name}})
	}
	made := render(t, at("config", config))
	const group = "/apis/admissionregistration.k8s.io/v1/"
	for _, policy := range made.policies {
		server.mustCreate(group+"validatingadmissionpolicies", policy)
	}
	for _, binding := range made.bindings {
		server.mustCreate(group+"validatingadmissionpolicybindings", binding)
	}
	server.await("the policies to be in force", func() bool {
		code, _ := server.create(podsOf("tenant")+"?dryRun=All", podWith("probe", nil, map[string]string{skipKey: "true"}))
		return code == http.StatusForbidden
	})
	server.mustCreate(podsOf("tenant"), podWith("early", nil, nil))
	server.await("changes to be refused", func() bool {
		code, _ := server.patch(podsOf("tenant")+"/early?dryRun=All", annotate(levelKey, "shared_cores"))
		return code == http.StatusForbidden
	})
	return server
}

func TestApiServerRejectsWhatPermissionsDoNotAllow(t *testing.T) {
	server := startGuardedServer(t)
	for name, test := range map[string]struct {
		labels, annotations map[string]string
		allowed             string // namespaces
	}{
		"Nothing":         {nil, nil, "kube-system infra team-a all plain-1 tenant"},
		"OtherKeys":       {map[string]string{"app": "web"}, map[string]string{"example.com/note": "pool"}, "kube-system infra team-a all plain-1 tenant"},
		"OptOut":          {nil, map[string]string{skipKey: "true"}, "kube-system infra team-a all"},
		"NoOptOut":        {nil, map[string]string{skipKey: "false"}, "kube-system infra team-a all plain-1 tenant"},
		"ReservedCpus":    {nil, map[string]string{levelKey: "system_cores"}, "kube-system infra team-a all"},
		"OwnCpus":         {nil, map[string]string{levelKey: "dedicated_cores"}, "kube-system all tenant"},
		"SharedCpus":      {nil, map[string]string{levelKey: "shared_cores"}, "kube-system infra team-a all plain-1 tenant"},
		"NumaNodes":       {nil, map[string]string{memoryKey: `{"numa_exclusive": "true"}`}, "kube-system all tenant"},
		"EscapedNuma":     {nil, map[string]string{memoryKey: `{"numa_exclusiv\u0065": "true"}`}, "kube-system all tenant"},
		"NumaBinding":     {nil, map[string]string{memoryKey: `{"numa_binding": "true"}`}, "kube-system infra team-a all plain-1 tenant"},
		"ListedPool":      {nil, map[string]string{cpuKey: `{"cpuset_pool": "batch"}`}, "kube-system infra team-a all tenant"},
		"PoolByGlob":      {nil, map[string]string{cpuKey: `{"cpuset_pool":"b.1"}`}, "kube-system infra team-a all tenant"},
		"OtherPool":       {nil, map[string]string{cpuKey: `{"cpuset_pool": "bx1"}`}, "kube-system all tenant"},
		"PoolBehindOther": {nil, map[string]string{cpuKey: `{"cpuset_pool": "batch", "cpuset_pool": "online"}`}, "kube-system all tenant"},
		"EscapedPool":     {nil, map[string]string{cpuKey: `{"a": "\"cpuset_pool\": \"batch\"", "cpuset\u005fpool": "online"}`}, "kube-system all tenant"},
		"FullCores":       {nil, map[string]string{cpuKey: `{"full_pcpus_pairing": "true"}`}, "kube-system infra team-a all plain-1 tenant"},
		"ListedRole":      {map[string]string{roleLabel: "web"}, nil, "kube-system infra team-a all tenant"},
		"OtherRole":       {map[string]string{roleLabel: "etl"}, nil, "kube-system all tenant"},
		"OpenClass":       {nil, map[string]string{blockioKey: "slow"}, "kube-system infra team-a all plain-1 tenant"},
		"ClassByItsRule":  {nil, map[string]string{blockioKey: "batch"}, "kube-system team-a all plain-1"},
		"ListedClass":     {nil, map[string]string{blockioKey: "fast"}, "kube-system infra team-a all"},
		"ClassByGlob":     {nil, map[string]string{rdtKey: "gold"}, "kube-system infra team-a all"},
		"ForeignAndOpen":  {nil, map[string]string{blockioKey: "slow", rdtKey: "gold"}, "kube-system infra team-a all"},
		"NoClass":         {nil, map[string]string{blockioKey: ""}, "kube-system infra team-a all plain-1 tenant"},
		"RoleAnnotation":  {nil, map[string]string{"kubernetes.io/pod-role": "etl"}, "kube-system all tenant"},
	} {
		for _, namespace := range []string{"kube-system", "infra", "team-a", "all", "plain-1", "tenant"} {
			want := http.StatusForbidden
			if strings.Contains(" "+test.allowed+" ", " "+namespace+" ") {
				want = http.StatusCreated
			}
			code, message := server.create(podsOf(namespace)+"?dryRun=All", podWith("one", test.labels, test.annotations))
			if code != want || (want == http.StatusForbidden && !strings.Contains(message, "namespace "+namespace+" may not ")) {
				t.Errorf("%s in %s: %d %s", name, namespace, code, message)
			}
		}
	}
}

func TestApiServerRejectsUnavailableClasses(t *testing.T) {
	server := startGuardedServer(t)
	for name, test := range map[string]struct{ key, value, says string }{
		"Path":            {blockioKey, "../gold", "a class has 1 to 63 letters"},
		"LongName":        {blockioKey, strings.Repeat("a", 64), "a class has 1 to 63 letters"},
		"UnknownKey":      {"blockio.resources.alpha.kubernetes.io/pod", "slow", "an annotation for classes ends in"},
		"AbsentContainer": {"blockio.resources.alpha.kubernetes.io/container.side", "slow", "a container that the pod does not have"},
		"MisspeltType":    {"blokio.resources.beta.kubernetes.io/pod", "slow", "the nodes have no such type of classes, but blockio and rdt"},
		"UnknownOfLast":   {"lanes.resources.kubernetes.io/default", "slow", "the nodes have no such type of classes, but blockio and rdt"},
		"UnknownVersion":  {"blockio.resources.gamma.kubernetes.io/default", "slow", "an annotation for classes ends in"},
		"SuffixOfLast":    {"blockio.resources.kubernetes.io/pod", "slow", "an annotation for classes ends in"},
		"UnknownType":     {"lanes.resources.qrm.io/pod", "slow", "the nodes have no such type of classes, but blockio and rdt"},
	} {
		code, message := server.create(podsOf("all")+"?dryRun=All", podWith("one", nil, map[string]string{test.key: test.value}))
		if code != http.StatusUnprocessableEntity || !strings.Contains(message, test.says) {
			t.Errorf("%s: %d %s", name, code, message)
		}
	}
	for _, value := range []string{strings.Repeat("a", 63), "A.b_c-1"} {
		if code, message := server.create(podsOf("all")+"?dryRun=All", podWith("one", nil, map[string]string{rdtKey: value})); code != http.StatusCreated {
			t.Errorf("%s: %d %s", value, code, message)
		}
	}
}

func TestApiServerGivesClassesByServiceAccountAndNamespaceLabel(t *testing.T) {
	server := startServerWith(t, `
qos-classes: true
class-types:
  blockio: {config-file: /srv/blockio.yaml, classes: {slow: {namespaces: [all]}, fast: {service-accounts: [tenant/runner, "team-*/io"], namespace-labels: [tier=gold, example.com/io=yes]}}}
`)
	for namespace, labels := range map[string]object{"infra": {"tier": "gold"}, "plain-1": {"tier": "silver", "example.com/io": "yes"}, "all": {"tier": "silver"}} {
		if code, message := server.patch("/api/v1/namespaces/"+namespace, object{"metadata": object{"labels": labels}}); code != http.StatusOK {
			t.Fatalf("%s: %d %s", namespace, code, message)
		}
	}
	for _, test := range []struct {
		namespace, account, class string
		may                       bool
	}{
		{"tenant", "runner", "fast", true}, {"tenant", "default", "fast", false}, {"tenant", "", "fast", false}, {"tenant", "runner", "slow", false},
		{"team-a", "io", "fast", true}, {"team-a", "runner", "fast", false}, {"all", "runner", "fast", false}, {"all", "", "slow", true},
		{"infra", "", "fast", true}, {"plain-1", "", "fast", true}, {"plain-1", "", "slow", false},
	} {
		pod := podWith("one", nil, map[string]string{blockioKey: test.class})
		if test.account != "" {
			pod["spec"].(object)["serviceAccountName"] = test.account
		}
		var code int
		var message string
		want := map[bool]int{true: http.StatusCreated, false: http.StatusForbidden}[test.may]
		server.await(fmt.Sprintf("%v", test), func() bool { // the labels are read from a cache
			code, message = server.create(podsOf(test.namespace)+"?dryRun=All", pod)
			return code == want
		})
		if !test.may && !strings.Contains(message, "may not use class blockio/"+test.class) {
			t.Errorf("%v: %d %s", test, code, message)
		}
	}
}

func TestApiServerTiesCountedClassesToTheirExtendedResource(t *testing.T) {
	server := startServerWith(t, strings.Replace(permissionRules, "qos-classes: true", "publish: [classes, class-resources]\nqos-classes: true", 1))
	server.mustCreate("/api/v1/namespaces/team-a/resourcequotas", object{"apiVersion": "v1", "kind": "ResourceQuota",
		"metadata": object{"name": "classes"}, "spec": object{"hard": object{"requests.blockio.qrm.io/fast": "1"}}})
	// The server counts; what a controller would write is written here.
	const quota = "/api/v1/namespaces/team-a/resourcequotas/classes"
	used := func(count string) {
		amounts := func(count string) object { return object{"requests.blockio.qrm.io/fast": count} }
		if code, message := server.patch(quota+"/status", object{"status": object{"hard": amounts("1"), "used": amounts(count)}}); code != http.StatusOK {
			t.Fatalf("the quota's status: %d %s", code, message)
		}
	}
	used("1")
	create := func(name string, annotations, limits map[string]string) (int, string) {
		pod := podWith(name, nil, annotations)
		pod["spec"].(object)["containers"].([]object)[0]["resources"] = object{"limits": limits}
		return server.create(podsOf("team-a"), pod)
	}
	one := map[string]string{"blockio.qrm.io/fast": "1"}
	const says = "requests 1 of its extended resource blockio.qrm.io/CLASS: fast"
	for name, test := range map[string]struct{ annotations, limits map[string]string }{
		"OnlyAnnotation": {map[string]string{blockioKey: "fast"}, nil},
		"OwnKey":         {map[string]string{"blockio.resources.beta.kubernetes.io/container.main": "fast"}, nil},
		"OnlyResource":   {nil, one},
		"TwoOfIt":        {map[string]string{blockioKey: "fast"}, map[string]string{"blockio.qrm.io/fast": "2"}},
	} {
		if code, message := create("one", test.annotations, test.limits); code != http.StatusUnprocessableEntity || !strings.Contains(message, says) {
			t.Errorf("%s: %d %s", name, code, message)
		}
	}
	if code, message := create("slow", map[string]string{blockioKey: "slow"}, nil); code != http.StatusCreated {
		t.Errorf("a class without capacity: %d %s", code, message)
	}
	server.await("the quota to be in force", func() bool {
		code, _ := create("fast", map[string]string{blockioKey: "fast"}, one)
		return code == http.StatusForbidden
	})
	used("0")
	server.await("a place in the quota", func() bool {
		code, _ := create("fast", map[string]string{blockioKey: "fast"}, one)
		return code == http.StatusCreated
	})
	if code, message := create("more", map[string]string{blockioKey: "fast"}, one); code != http.StatusForbidden || !strings.Contains(message, "exceeded quota: classes") {
		t.Errorf("beyond the quota: %d %s", code, message)
	}
}

func TestApiServerTakesTheChartsOwnPod(t *testing.T) {
	server := startGuardedServer(t)
	template := renderIn(t, otherNamespace, at("config", permissionRules)).daemonSet.Spec.Template
	pod := object{"apiVersion": "v1", "kind": "Pod", "spec": template.Spec,
		"metadata": object{"name": "qrm", "labels": template.Labels, "annotations": template.Annotations}}
	server.mustCreate(podsOf(otherNamespace), pod)
}

func TestApiServerRejectsChangesOfKeysOnExistingPods(t *testing.T) {
	server := startGuardedServer(t)
	server.mustCreate(podsOf("tenant"), podWith("has", map[string]string{roleLabel: "web"}, map[string]string{levelKey: "shared_cores", blockioKey: "slow"}))
	server.mustCreate(podsOf("tenant"), podWith("lacks", nil, nil))
	server.mustCreate(podsOf("kube-system"), podWith("system", nil, nil))
	refused := func(what, key string, code int, message string) {
		t.Helper()
		if code != http.StatusForbidden || !strings.Contains(message, "after the pod was created: "+key) {
			t.Errorf("%s: %d %s", what, code, message)
		}
	}
	for _, key := range []string{skipKey, levelKey, cpuKey, memoryKey, nicKey, "kubernetes.io/pod-role", "katalyst.kubewharf.io/pod_type",
		"kubernetes.io/resource-type", "kubernetes.io/main-container-name", blockioKey, rdtKey, "rdt.resources.kubernetes.io/default", "lanes.resources.qrm.io/pod",
		"cci.qrm.io/driver", "spec.cci.qrm.io/container.main", "qrm.io/pod-priority", "fake.qrm.io/request", "qrm.io/class-status", "kubernetes.io/config.hash"} {
		for _, part := range []string{"", "/status"} {
			code, message := server.patch(podsOf("tenant")+"/lacks"+part, annotate(key, "false"))
			refused("adding at pods"+part, key, code, message)
		}
		code, message := server.create(podsOf("tenant")+"/lacks/binding", bindingOf("lacks", map[string]string{key: "false"}))
		refused("adding at pods/binding", key, code, message)
		code, message = server.create("/api/v1/namespaces/tenant/bindings", bindingOf("lacks", map[string]string{key: "false"}))
		refused("adding at bindings", key, code, message)
	}
	for what, change := range map[string]object{"changing": annotate(levelKey, "dedicated_cores"), "removing": annotate(levelKey, nil)} {
		for _, part := range []string{"", "/status"} {
			code, message := server.patch(podsOf("tenant")+"/has"+part, change)
			refused(what+" at pods"+part, levelKey, code, message)
		}
	}
	for what, change := range map[string]object{"changing": annotate(blockioKey, "batch"), "removing": annotate(blockioKey, nil)} {
		for _, part := range []string{"", "/status"} {
			code, message := server.patch(podsOf("tenant")+"/has"+part, change)
			refused(what+" at pods"+part, blockioKey, code, message)
		}
	}
	code, message := server.patch(podsOf("tenant")+"/has", object{"metadata": object{"labels": object{roleLabel: "etl"}}})
	refused("changing a label", roleLabel, code, message)
	code, message = server.patch(podsOf("kube-system")+"/system", annotate(skipKey, "true"))
	refused("changing in kube-system", skipKey, code, message)
}

func TestApiServerTakesPlacementsFromTheSchedulersAccountOnly(t *testing.T) {
	server := startGuardedServer(t)
	forged := map[string]string{placementKey: "0-15"}
	refused := func(what string, code int, message string) {
		t.Helper()
		if code != http.StatusForbidden || !strings.Contains(message, placementKey) {
			t.Errorf("%s: %d %s", what, code, message)
		}
	}
	for _, namespace := range []string{"tenant", "kube-system"} {
		code, message := server.create(podsOf(namespace)+"?dryRun=All", podWith("one", nil, forged))
		refused("a new pod in "+namespace, code, message)
	}
	code, message := server.patch(podsOf("tenant")+"/early", annotate(placementKey, "0-15"))
	refused("adding", code, message)

	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	made := renderScheduler(t, nil)
	server.mustCreate("/api/v1/namespaces/default/serviceaccounts", made.account)
	server.mustCreate(rbac+"clusterroles", made.clusterRole)
	for _, binding := range made.clusterBindings {
		server.mustCreate(rbac+"clusterrolebindings", binding)
	}
	// What every scheduler may do.
	server.mustCreate("/api/v1/namespaces/default/serviceaccounts", object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": "other"}})
	server.mustCreate(rbac+"clusterrolebindings", object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
		"metadata": object{"name": "other"}, "roleRef": object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:kube-scheduler"},
		"subjects": []object{{"kind": "ServiceAccount", "name": "other", "namespace": "default"}}})
	bind := func(account string) (int, string) {
		return server.createAs(server.tokenOf("default", account, object{}), podsOf("tenant")+"/early/binding", bindingOf("early", forged))
	}
	code, message = bind("other")
	refused("another account's binding", code, message)
	if code, message = bind(made.account.Name); code != http.StatusCreated {
		t.Errorf("the scheduler's binding: %d %s", code, message)
	}
	for what, value := range map[string]any{"changing": "1-15", "removing": nil} {
		code, message = server.patch(podsOf("tenant")+"/early", annotate(placementKey, value))
		refused(what, code, message)
	}
}

func TestApiServerLetsOrdinaryPodsLive(t *testing.T) {
	server := startGuardedServer(t)
	const pod = "/ordinary"
	server.mustCreate(podsOf("tenant"), podWith("ordinary", map[string]string{roleLabel: "web"}, map[string]string{levelKey: "dedicated_cores", blockioKey: "slow"}))
	for what, step := range map[string]func() (int, string){
		"a label": func() (int, string) {
			return server.patch(podsOf("tenant")+pod, object{"metadata": object{"labels": object{"a": "b"}}})
		},
		"a waking": func() (int, string) { return server.patch(podsOf("tenant")+pod, annotate("qrm.io/room-seen", "x")) },
		"a note":   func() (int, string) { return server.patch(podsOf("tenant")+pod, annotate("example.com/note", "x")) },
		"the same": func() (int, string) { return server.patch(podsOf("tenant")+pod, annotate(levelKey, "dedicated_cores")) },
		"a status": func() (int, string) {
			return server.patch(podsOf("tenant")+pod+"/status", object{"status": object{"phase": "Running"}, "metadata": object{"annotations": object{"example.com/s": "t"}}})
		},
	} {
		if code, message := step(); code != http.StatusOK {
			t.Errorf("%s: %d %s", what, code, message)
		}
	}
	server.mustCreate(podsOf("tenant")+pod+"/binding", bindingOf("ordinary", map[string]string{"example.com/by": "me"}))
	if code, message := server.call(http.MethodDelete, podsOf("tenant")+pod+"?gracePeriodSeconds=0", "application/json", object{}); code != http.StatusOK {
		t.Errorf("the end: %d %s", code, message)
	}
}

// guardOf returns whether the policies reject a change of a key on existing pods.
func guardOf(t *testing.T, made *release) func(key string) bool {
	t.Helper()
	variables := map[string]string{}
	for _, variable := range made.policies[0].Spec.Variables {
		variables[variable.Name] = variable.Expression
	}
	var keys []string
	found := regexp.MustCompile(`k\.matches\('([^']+)'\)`).FindStringSubmatch(variables["changed"])
	if err := json.Unmarshal([]byte(variables["keys"]), &keys); err != nil || found == nil {
		t.Fatalf("the policy has no keys or no pattern: %v", variables)
	}
	pattern := regexp.MustCompile(found[1])
	return func(key string) bool { return slices.Contains(keys, key) || pattern.MatchString(key) }
}

func TestPoliciesGuardEveryKeyThatTheProductReads(t *testing.T) {
	const group, example, own = "a group of the API", "a resource of an example", "written on containers, not read of pods"
	others := map[string]string{
		"authentication.k8s.io/v1": group, "authorization.k8s.io/v1": group, "coordination.k8s.io/v1": group, "topology.node.k8s.io/v1alpha2": group,
		"power.example.com/watts": example, "example.com/lane": example, "example.com/nic": example, "example.com/serial-port": example, "lanes.example.com/fast": example,
		"nvidia.com/*": example, "nvidia.com/gpu": example, "kubernetes.io/host-netns-path": own,
		"gpu.example.com/gpu=0": example, "vendor.com/class=name": example,
		"resource.kubernetes.io/numaNode":           "an attribute of a ResourceSlice",
		"resource.kubernetes.io/numaNode,":          "an attribute of a ResourceSlice",
		"resource.kubernetes.io/pciBusID":           "an attribute of a ResourceSlice",
		"katalyst.kubewharf.io/":                    "the beginning of keys",
		"kubernetes.io/":                            "the beginning of resources",
		"katalyst.kubewharf.io/network_enhancement": "shown to clients of the pod-resources socket, and not read",
		"*.resources.*kubernetes.io/*":              "keys of classes, with their domains elsewhere",
		".kubernetes.io/":                           "the end of the domains of keys of classes",
		"kubernetes.io/config.mirror":               "guarded by the API server itself",
		"kubernetes.io/config.source":               "written by kubelet on its copy of each pod, over what the pod has",
	}
	guarded := guardOf(t, render(t, nil))
	form := regexp.MustCompile(`"([a-z0-9.*-]+\.(?:com|dev|io|org)/[^"\s{}]*)`)
	seen := map[string]bool{}
	for _, folder := range []string{"api", "checkpoint", "cluster", "manager", "plugins", "scheduler", "topology"} {
		err := filepath.WalkDir("../../../"+folder, func(path string, entry os.DirEntry, err error) error {
			if err != nil || !(strings.HasSuffix(path, ".cc") || strings.HasSuffix(path, ".h")) {
				return err
			}
			text, err := os.ReadFile(path)
			for _, match := range form.FindAllStringSubmatch(string(text), -1) {
				key := match[1]
				seen[key] = true
				// The part before the domain is a type's name.
				full := strings.ReplaceAll(key, "*", "x")
				if strings.HasPrefix(full, ".") {
					full = "x" + full
				}
				if others[key] == "" && !guarded(full) {
					t.Errorf("%s reads %s, whose change no policy rejects: add it to qrm.podKeys of the chart, or say here what it is", path, key)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for key := range others {
		if !seen[key] {
			t.Errorf("%s is in no source any more", key)
		}
	}
	if !seen["qrm.io/placement"] || !seen["cci.qrm.io/driver"] || guarded("example.com/note") {
		t.Error("this test does not see what it should")
	}
}

func TestPoliciesGuardTheKeysThatTheConfigurationNames(t *testing.T) {
	guarded := guardOf(t, render(t, at("config", `
pod-role-label: example.com/role
plugins:
  cpu:
    rules: [{select: {label: {example.com/tier: trading}, annotation: {example.com/own: "true"}}, pool: team}, {select: {}, pool: team}]
    pools: {team: {size: {min: 1}, instances: {by: "label:example.com/team"}}, batch: {cpus: 2-3}}
  memory: {rules: [{select: {label: {app: redis}}, role: cache}]}
`)))
	for _, key := range []string{"example.com/role", "example.com/tier", "example.com/own", "example.com/team", "app"} {
		if !guarded(key) {
			t.Errorf("%s may change", key)
		}
	}
	if guarded("katalyst.kubewharf.io/pod_role") {
		t.Error("a label that is not read may not change")
	}
}

func TestPoliciesNeedAServerThatKnowsThem(t *testing.T) {
	made, err := tryRender(nil, 29)
	if err != nil {
		t.Fatal(err)
	}
	if len(made.policies) != 0 || len(made.bindings) != 0 {
		t.Errorf("in 1.29, %d policies are made", len(made.policies))
	}
	if names := fmt.Sprint(len(render(t, nil).policies), len(render(t, nil).bindings)); names != "2 2" {
		t.Errorf("there are %s policies and bindings", names)
	}
}
