// Draws from few words, so that rules and pods often meet.
#include "test/manager/permissions/permission_cases.h"

#include <algorithm>
#include <iterator>

#include "api/proto/core/v1/pod.pb.h"

namespace qrm::test {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

const Words kNamespaces = {"team-a", "team-b", "batch", "web", "kube-system", "skipped"};
const Words kNamespaceGlobs = {"team-*", "*", "team-a", "batch", "w*b", "kube-*", "skipped", "*-b"};
const Words kAllowed = {"opt-out",    "reserved-cpus",      "own-cpus",
                        "numa-nodes", "network-namespaces", "everything"};
const Words kPoolGlobs = {"batch", "online", "b*", "*", "share", "reclaim", "o*e", "system"};
const Words kRoleGlobs = {"etl", "own", "*", "w*", "mixed", "*l"};
const Words kResourceGlobs = {"NIC", "*", "N*", "example.com/lane"};
const Words kClassGlobs = {"blockio/slow", "blockio/*", "*", "rdt/gold", "*/fast", "*o*"};
const Words kDriverGlobs = {"fast", "near", "*", "f*"};
const Words kPools = {"batch", "online", "share", "reclaim", "system", "none", ""};
const Words kRoles = {"etl", "own", "web", "mixed", "unknown", "wi\"de", "we\nb"};
const Words kDrivers = {"fast", "near", "absent", "FAST", ""};
/// As the node's plugin has it, so that a pod has one class for all containers.
constexpr char kPodLevelType[] = "lanes.example.com";
const Words kSpaces = {"", " ", "\n\t"};

bool Chance(Random& random, int percent) {
  return std::uniform_int_distribution<int>(1, 100)(random) <= percent;
}

const std::string& OneOf(Random& random, const Words& words) {
  return words[std::uniform_int_distribution<std::size_t>(0, words.size() - 1)(random)];
}

Words SomeOf(Random& random, const Words& words, int percent) {
  Words some;
  std::copy_if(words.begin(), words.end(), std::back_inserter(some),
               [&](const std::string&) { return Chance(random, percent); });
  return some;
}

json DrawRule(Random& random) {
  json rule = json::object({{"namespaces", Words{OneOf(random, kNamespaceGlobs)}}});
  if (Chance(random, 30)) {
    rule["namespaces"].push_back(OneOf(random, kNamespaceGlobs));
  }
  rule["allow"] = SomeOf(random, kAllowed, 25);
  for (const auto& [key, names] :
       {std::pair("pools", &kPoolGlobs), std::pair("roles", &kRoleGlobs),
        std::pair("resources", &kResourceGlobs), std::pair("classes", &kClassGlobs),
        std::pair("drivers", &kDriverGlobs)}) {
    if (Chance(random, 70)) {
      rule[key] = SomeOf(random, *names, 20);
    }
  }
  return rule;
}

json DrawType(Random& random, const std::string& type, const Words& classes) {
  json rules = json::object();
  if (type.find('.') == std::string::npos) {
    rules["config-file"] = "/srv/" + type + ".yaml";
  }
  for (const std::string& name : classes) {
    json& rule = rules["classes"][name] = json::object();
    if (Chance(random, 40)) {
      rule["namespaces"] = SomeOf(random, kNamespaceGlobs, 25);
    }
  }
  if (Chance(random, 30)) {
    rules["default"] = OneOf(random, classes);
  }
  if (Chance(random, 20)) {
    rules["namespace-defaults"][OneOf(random, kNamespaces)] = OneOf(random, classes);
  }
  if (Chance(random, 20)) {
    rules["qos-defaults"]["Guaranteed"] = OneOf(random, classes);
  }
  return rules;
}

json DrawDriver(Random& random) {
  json rules = json::object({{"namespaces", SomeOf(random, kNamespaceGlobs, 15)}});
  if (Chance(random, 20)) {
    rules["default-namespaces"] = Words{OneOf(random, kNamespaces)};
  }
  if (Chance(random, 40)) {
    rules["runtime-classes"] = Words{OneOf(random, RuntimeClasses())};
  }
  return rules;
}

/// The plugins' part, which leads to pools, exclusive CPUs and NICs in all ways.
json Plugins(bool is_static) {
  return json::parse(R"({
    "cpu": {
      "reserved-cpus": "0",
      "pools": {"batch": {"cpus": "1", "roles": ["etl"]}, "online": {"cpus": "2"},
                "share": {"cpus": "3"}, "reclaim": {"cpus": "4"}},
      "roles": {"own": {}},
      "grants": {"trading": {"plus": "batch"}},
      "rules": [{"select": {"label": {"example.com/tier": "trading"}}, "grant": "trading"},
                {"select": {"annotation": {"example.com/tier": "online"}}, "pool": "online"},
                {"select": {"role": "mixed", "cpu": "whole"}, "grant": "trading"},
                {"select": {"qos": "BestEffort", "namespace": "web"}, "pool": "reserved"}],
      "static": )" + std::string(is_static ? "true" : "false") +
                     R"(},
    "memory": {"roles": {"own": {}}},
    "nic": {"nics": [{"interface": "eth0", "numa-node": 0, "ipv4": "10.0.0.1", "netns": "/run/netns/a"},
                     {"interface": "eth1", "numa-node": 1, "ipv4": "10.0.0.2"}]}})");
}

std::string DrawCpuText(Random& random) {
  const std::string key = Chance(random, 90) ? "cpuset_pool" : "cpuset_p\\u006fol";
  const std::string pool = "\"" + key + "\"" + OneOf(random, kSpaces) + ":" +
                           OneOf(random, kSpaces) + "\"" + OneOf(random, kPools) + "\"";
  const Words others = {"\"full_pcpus_pairing\": true", "\"note\": \"cpuset_pool\"",
                        "\"n\": {\"cpuset_pool\": \"online\"}", "\"cpuset_pool\": \"batch\"",
                        "\"cpuset_pool\": true"};
  std::string text = "{" + (Chance(random, 85) ? pool : OneOf(random, others));
  if (Chance(random, 20)) {
    text += ", " + OneOf(random, others);
  }
  return text + (Chance(random, 97) ? "}" : "");
}

std::string DrawMemoryText(Random& random) {
  const Words texts = {R"({"numa_exclusive": "true"})",
                       R"({"numa_exclusive": true, "numa_binding": "true"})",
                       R"({"numa_exclusive" :"false"})",
                       R"({"numa_binding": "true"})",
                       R"({"note": "numa_exclusive"})",
                       R"({"numa_exclusiv\u0065": "true"})",
                       R"({"numa_exclusive": "false", "numa_exclusive": "true"})"};
  return OneOf(random, texts);
}

void DrawClassTexts(Random& random, StringMap& annotations) {
  const Words keys = {"blockio.resources.beta.kubernetes.io/pod",
                      "blockio.resources.beta.kubernetes.io/container.main",
                      "blockio.resources.alpha.kubernetes.io/default",
                      "blockio.resources.kubernetes.io/container.main",
                      "blockio.resources.kubernetes.io/default",
                      "blockio.resources.qrm.io/pod",
                      "blockio.resources.alpha.kubernetes.io/pod",
                      "rdt.resources.beta.kubernetes.io/container.main",
                      "rdt.resources.alpha.kubernetes.io/default",
                      std::string(kPodLevelType) + ".resources.qrm.io/pod",
                      "other.resources.beta.kubernetes.io/pod",
                      "other.resources.alpha.kubernetes.io/default"};
  const Words classes = {"slow", "fast", "gold", "base", "gone", "", "../fast"};
  annotations[OneOf(random, keys)] = OneOf(random, classes);
  if (Chance(random, 40)) {
    annotations[OneOf(random, keys)] = OneOf(random, classes);
  }
}

void DrawTexts(Random& random, AskingPod& pod) {
  const Words levels = {"dedicated_cores", "shared_cores", "reclaimed_cores", "system_cores", "x"};
  StringMap& annotations = pod.annotations;
  if (Chance(random, 40)) {
    annotations["katalyst.kubewharf.io/qos_level"] = OneOf(random, levels);
  }
  if (Chance(random, 35)) {
    annotations["katalyst.kubewharf.io/cpu_enhancement"] = DrawCpuText(random);
  }
  if (Chance(random, 20)) {
    annotations["katalyst.kubewharf.io/memory_enhancement"] = DrawMemoryText(random);
  }
  if (Chance(random, 10)) {
    annotations["katalyst.kubewharf.io/skip_qrm_admit"] = OneOf(random, {"true", "false", "", "1"});
  }
  if (Chance(random, 20)) {  // a label has no quote and no line break
    pod.labels["katalyst.kubewharf.io/pod_role"] = OneOf(random, {"etl", "own", "web", "mixed"});
  }
  if (Chance(random, 15)) {
    annotations["kubernetes.io/pod-role"] = OneOf(random, kRoles);
  }
  if (Chance(random, 15)) {
    pod.labels["example.com/tier"] = "trading";
  }
  if (Chance(random, 15)) {
    annotations["example.com/tier"] = "online";
  }
  if (Chance(random, 15)) {
    annotations["example.com/nic"] = OneOf(random, {"true", "false"});
  }
  if (Chance(random, 25)) {
    DrawClassTexts(random, annotations);
  }
  if (Chance(random, 20)) {
    annotations["cci.qrm.io/driver"] = OneOf(random, kDrivers);
  }
  if (Chance(random, 10)) {
    annotations["driver.cci.qrm.io/container." + OneOf(random, {"main", "side"})] =
        OneOf(random, kDrivers);
  }
}

AskingPod::Container DrawContainer(Random& random, const std::string& name) {
  AskingPod::Container container{.name = name};
  if (Chance(random, 85)) {
    container.requests["cpu"] = OneOf(random, {"1", "2", "3", "500m"});
  }
  if (Chance(random, 70)) {
    container.requests["memory"] = "64Mi";
  }
  if (Chance(random, 50)) {
    container.limits = container.requests;
  }
  if (Chance(random, 10)) {  // the API server wants a limit of extended resources
    container.requests["example.com/lane"] = container.limits["example.com/lane"] =
        OneOf(random, {"0", "1"});
  }
  return container;
}

template <typename Quantities>
void Put(const std::map<std::string, std::string>& amounts, Quantities& quantities) {
  for (const auto& [resource, amount] : amounts) {
    quantities[resource].set_string(amount);
  }
}

}  // namespace

Words PodNamespaces() {
  return kNamespaces;
}

Words RuntimeClasses() {
  return {"low-latency", "kata"};
}

json DrawConfig(Random& random) {
  // The chart's own pods are in a namespace of theirs.
  json rules = json::array(
      {json::object({{"namespaces", Words{"qrm-system"}}, {"allow", Words{"everything"}}})});
  for (int left = std::uniform_int_distribution<int>(0, 4)(random); left > 0; --left) {
    rules.push_back(DrawRule(random));
  }
  json config = {{"permissions", rules},
                 {"skip-namespaces", SomeOf(random, {"kube-system", "skipped", "batch"}, 50)},
                 {"implicit-resources", json::array()},
                 {"resource-names-map", {{"example.com/lane", "NIC"}}},
                 {"qos-classes", true},
                 {"class-types",
                  {{"blockio", DrawType(random, "blockio", {"fast", "slow"})},
                   {"rdt", DrawType(random, "rdt", {"base", "gold"})},
                   {kPodLevelType, DrawType(random, kPodLevelType, {"fast"})}}},
                 {"compute-drivers", {{"fast", DrawDriver(random)}, {"near", DrawDriver(random)}}},
                 {"plugins", Plugins(Chance(random, 30))}};
  if (Chance(random, 50)) {
    config["implicit-resources"].push_back(
        {{"resource", "NIC"}, {"annotation", "example.com/nic"}});
  }
  if (Chance(random, 30)) {
    config["implicit-resources"].push_back(
        {{"resource", "example.com/lane"}, {"roles", Words{"web", "mixed"}}});
  }
  return config;
}

AskingPod DrawPod(Random& random) {
  AskingPod pod{.pod_namespace = OneOf(random, kNamespaces)};
  DrawTexts(random, pod);
  pod.runtime_class = Chance(random, 15) ? OneOf(random, RuntimeClasses()) : "";
  pod.priority_class = Chance(random, 10) ? "system-cluster-critical" : "";
  pod.of_daemon_set = Chance(random, 10);
  pod.containers.push_back(DrawContainer(random, "main"));
  if (Chance(random, 20)) {
    pod.containers.push_back(DrawContainer(random, "side"));
  }
  if (Chance(random, 15)) {
    pod.containers.push_back(DrawContainer(random, "early"));
    pod.containers.back().init = true;
  }
  return pod;
}

AskingPod ChangedPod(AskingPod pod, Random& random) {
  pod.labels = {};
  pod.annotations = {};
  DrawTexts(random, pod);
  for (AskingPod::Container& container : pod.containers) {
    const bool init = container.init;
    container = DrawContainer(random, container.name);
    container.init = init;
  }
  return pod;
}

json ManifestOf(const AskingPod& pod) {
  json manifest = {{"apiVersion", "v1"},
                   {"kind", "Pod"},
                   {"metadata", {{"name", "pod"}, {"namespace", pod.pod_namespace}}}};
  manifest["metadata"]["labels"] = pod.labels;
  manifest["metadata"]["annotations"] = pod.annotations;
  if (pod.of_daemon_set) {
    manifest["metadata"]["ownerReferences"].push_back({{"apiVersion", "apps/v1"},
                                                       {"kind", "DaemonSet"},
                                                       {"name", "set"},
                                                       {"uid", "0c1d"},
                                                       {"controller", true}});
  }
  json& spec = manifest["spec"];
  if (!pod.runtime_class.empty()) {
    spec["runtimeClassName"] = pod.runtime_class;
  }
  if (!pod.priority_class.empty()) {
    spec["priorityClassName"] = pod.priority_class;
  }
  for (const AskingPod::Container& container : pod.containers) {
    spec[container.init ? "initContainers" : "containers"].push_back(
        {{"name", container.name},
         {"image", "localhost/none"},
         {"resources", {{"requests", container.requests}, {"limits", container.limits}}}});
  }
  return manifest;
}

std::string MessageOfPod(const AskingPod& pod) {
  ::k8s::io::api::core::v1::Pod message;
  auto& meta = *message.mutable_metadata();
  meta.set_namespace_(pod.pod_namespace);
  meta.set_name("pod");
  meta.mutable_labels()->insert(pod.labels.begin(), pod.labels.end());
  meta.mutable_annotations()->insert(pod.annotations.begin(), pod.annotations.end());
  if (pod.of_daemon_set) {
    auto& owner = *meta.add_owner_references();
    owner.set_kind("DaemonSet");
    owner.set_controller(true);
  }
  auto& spec = *message.mutable_spec();
  spec.set_runtime_class_name(pod.runtime_class);
  spec.set_priority_class_name(pod.priority_class);
  for (const AskingPod::Container& container : pod.containers) {
    auto& made = container.init ? *spec.add_init_containers() : *spec.add_containers();
    made.set_name(container.name);
    Put(container.requests, *made.mutable_resources()->mutable_requests());
    Put(container.limits, *made.mutable_resources()->mutable_limits());
  }
  return message.SerializeAsString();
}

}  // namespace qrm::test
