// The first rule that names the namespace decides; what is given is recognised by its CPUs.
#include "test/manager/permissions/permission_oracle.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <utility>
#include <vector>

#include "api/id_set.h"

namespace qrm::test {
namespace {

using nlohmann::json;

bool Fits(std::string_view glob, std::string_view text) {
  if (glob.empty()) {
    return text.empty();
  }
  if (glob.front() == '*') {
    return Fits(glob.substr(1), text) || (!text.empty() && Fits(glob, text.substr(1)));
  }
  return !text.empty() && glob.front() == text.front() && Fits(glob.substr(1), text.substr(1));
}

bool FitsAny(const json& globs, const std::string& text) {
  return std::any_of(globs.begin(), globs.end(), [&](const json& glob) {
    return Fits(glob.get_ref<const std::string&>(), text);
  });
}

bool Has(const json& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// The two rules that every configuration ends with.
const json kDefaults = json::parse(R"([
  {"namespaces": ["kube-system"], "allow": ["everything"]},
  {"namespaces": ["*"], "allow": ["own-cpus", "numa-nodes", "network-namespaces"],
   "pools": ["*"], "roles": ["*"], "resources": ["*"]}])");

std::string TextOf(const StringMap& texts, const std::string& key) {
  const auto found = texts.find(key);
  return found == texts.end() ? std::string() : found->second;
}

std::string LevelOf(const AskingPod& pod) {
  return TextOf(pod.annotations, "katalyst.kubewharf.io/qos_level");
}

std::string RoleOf(const AskingPod& pod) {
  const std::string role = TextOf(pod.labels, "katalyst.kubewharf.io/pod_role");
  return role.empty() ? TextOf(pod.annotations, "kubernetes.io/pod-role") : role;
}

/// The member of the object in an annotation; empty without one.
std::string MemberOf(const AskingPod& pod, const std::string& annotation, const std::string& key) {
  const json object = json::parse(TextOf(pod.annotations, annotation), nullptr, false);
  const auto found = object.is_object() ? object.find(key) : object.end();
  return !object.is_object() || found == object.end() ? ""
         : found->is_string()                         ? found->get<std::string>()
         : *found == true                             ? "true"
                                                      : "";
}

const std::map<std::string, CpuSet>& Pools() {
  static const std::map<std::string, CpuSet> pools = {
      {"batch", {1}}, {"online", {2}}, {"share", {3}}, {"reclaim", {4}}};
  return pools;
}

CpuSet CpusOf(const checkpoint::ContainerRecord& container) {
  const auto cpus = container.allocations.find("cpu");
  return cpus == container.allocations.end()
             ? CpuSet()
             : CpuSet::Parse(cpus->second->value).value_or(CpuSet());
}

bool SaysExclusive(const checkpoint::ContainerRecord& container) {
  const auto cpus = container.allocations.find("cpu");
  return cpus != container.allocations.end() && cpus->second->exclusive;
}

/// Whether it has CPUs of the default pool that other containers may not use.
bool OwnsCpus(const checkpoint::PodRecord& pod, const checkpoint::ContainerRecord& container) {
  CpuSet free = CpuSet::Range(5, 15);
  for (const auto& [name, other] : pod.containers) {
    free -= SaysExclusive(*other) ? CpusOf(*other) : CpuSet();
  }
  const CpuSet cpus = CpusOf(container) & CpuSet::Range(5, 15);
  return SaysExclusive(container) || (!cpus.Empty() && !free.IsSubsetOf(cpus));
}

std::optional<std::string> DriverOf(const checkpoint::ContainerRecord& container) {
  for (const auto& [resource, allocation] : container.allocations) {
    if (resource.str().starts_with("cci.qrm.io/")) {
      return resource.str().substr(std::string("cci.qrm.io/").size());
    }
  }
  return std::nullopt;
}

}  // namespace

const json* PermissionOracle::RuleOf(const std::string& pod_namespace) const {
  for (const json* rules : {&config_.at("permissions"), &kDefaults}) {
    for (const json& rule : *rules) {
      if (FitsAny(rule.at("namespaces"), pod_namespace)) {
        return &rule;
      }
    }
  }
  return nullptr;
}

bool PermissionOracle::May(const std::string& pod_namespace, const std::string& word) const {
  const json& allow = RuleOf(pod_namespace)->at("allow");
  return Has(allow, "everything") || Has(allow, word);
}

bool PermissionOracle::MayName(const std::string& pod_namespace, const std::string& list,
                               const std::string& name) const {
  const json& rule = *RuleOf(pod_namespace);
  return rule.contains(list) ? FitsAny(rule.at(list), name) : Has(rule.at("allow"), "everything");
}

bool PermissionOracle::MayHaveClass(const std::string& pod_namespace, const std::string& type,
                                    const std::string& name) const {
  const json own = config_.at("class-types").at(type).at("classes").value(name, json::object());
  return FitsAny(own.value("namespaces", json::array()), pod_namespace) ||
         MayName(pod_namespace, "classes", type + "/" + name);
}

bool PermissionOracle::MayHaveDriver(const std::string& pod_namespace,
                                     const std::string& driver) const {
  const json own = config_.at("compute-drivers").value(driver, json::object());
  return FitsAny(own.value("namespaces", json::array()), pod_namespace) ||
         MayName(pod_namespace, "drivers", driver);
}

bool PermissionOracle::IsSkipped(const AskingPod& pod) const {
  const bool system = LevelOf(pod) == "system_cores";
  const std::string skip = TextOf(pod.annotations, "katalyst.kubewharf.io/skip_qrm_admit");
  const bool by_itself = (!skip.empty() && skip != "false") || !pod.priority_class.empty() ||
                         (pod.of_daemon_set && !system);
  return (by_itself && May(pod.pod_namespace, "opt-out")) ||
         (!system && Has(config_.at("skip-namespaces"), pod.pod_namespace));
}

std::optional<std::string> PermissionOracle::ExcessOfContainer(
    const AskingPod& pod, const checkpoint::PodRecord& has,
    const checkpoint::ContainerRecord& container) const {
  const std::string& of = pod.pod_namespace;
  const std::optional<std::string> driver = DriverOf(container);
  const json drivers = config_.at("compute-drivers");
  if (driver.has_value() && !MayHaveDriver(of, *driver) &&
      !Has(drivers.value(*driver, json::object()).value("default-namespaces", json::array()), of)) {
    return "driver " + *driver;
  }
  if (!driver.has_value() && OwnsCpus(has, container) && !May(of, "own-cpus")) {
    return "exclusive CPUs";
  }
  for (const auto& [pool, cpus] : Pools()) {
    if (cpus.IsSubsetOf(CpusOf(container)) && !MayName(of, "pools", pool)) {
      return "pool " + pool;
    }
  }
  // Under static, the default pool has them, too.
  if (CpusOf(container) == CpuSet{0} && !May(of, "reserved-cpus") &&
      !MayName(of, "pools", "reserved")) {
    return "reserved CPUs";
  }
  if (const auto nic = container.allocations.find("NIC"); nic != container.allocations.end()) {
    if (!MayName(of, "resources", "NIC")) {
      return "a NIC";
    }
    if (nic->second->annotations.contains("kubernetes.io/host-netns-path") &&
        !May(of, "network-namespaces")) {
      return "another network namespace";
    }
  }
  for (const auto& [type, name] : *container.classes) {
    const json& rules = config_.at("class-types").at(type);
    const json defaults = {rules.value("default", ""),
                           rules.value("namespace-defaults", json::object()).value(of, ""),
                           rules.value("qos-defaults", json::object()).value("Guaranteed", "")};
    if (!name.empty() && !MayHaveClass(of, type, name) && !Has(defaults, name)) {
      return "class " + type + "/" + name;
    }
  }
  return std::nullopt;
}

std::optional<std::string> PermissionOracle::Excess(const AskingPod& pod,
                                                    const checkpoint::PodRecord& has) const {
  for (const auto& [name, container] : has.containers) {
    if (auto excess = ExcessOfContainer(pod, has, *container); excess.has_value()) {
      return excess;
    }
  }
  return std::nullopt;
}

std::optional<std::string> PermissionOracle::ForbiddenWish(const AskingPod& pod) const {
  const std::string& of = pod.pod_namespace;
  const std::string skip = TextOf(pod.annotations, "katalyst.kubewharf.io/skip_qrm_admit");
  if (IsSkipped(pod)) {
    return ForbiddenClass(pod);
  }
  if (!skip.empty() && skip != "false") {
    return "opt-out";
  }
  if (LevelOf(pod) == "system_cores" && !May(of, "reserved-cpus")) {
    return "reserved-cpus";
  }
  if (LevelOf(pod) == "dedicated_cores" && !May(of, "own-cpus")) {
    return "own-cpus";
  }
  if (MemberOf(pod, "katalyst.kubewharf.io/memory_enhancement", "numa_exclusive") == "true" &&
      !May(of, "numa-nodes")) {
    return "numa-nodes";
  }
  return ForbiddenName(pod);
}

std::optional<std::string> PermissionOracle::ForbiddenName(const AskingPod& pod) const {
  const std::string& of = pod.pod_namespace;
  if (auto forbidden = ForbiddenClass(pod); forbidden.has_value() || IsSkipped(pod)) {
    return forbidden;
  }
  const std::string pool = MemberOf(pod, "katalyst.kubewharf.io/cpu_enhancement", "cpuset_pool");
  if (!pool.empty() && !MayName(of, "pools", pool)) {
    return "pool " + pool;
  }
  if (!RoleOf(pod).empty() && !MayName(of, "roles", RoleOf(pod))) {
    return "role " + RoleOf(pod);
  }
  for (const auto& [key, driver] : pod.annotations) {
    const bool names_driver =
        key == "cci.qrm.io/driver" || key.starts_with("driver.cci.qrm.io/container.");
    if (names_driver && !driver.empty() && !MayHaveDriver(of, driver)) {
      return "driver " + driver;
    }
  }
  return std::nullopt;
}

std::optional<std::string> PermissionOracle::ForbiddenClass(const AskingPod& pod) const {
  for (const auto& [key, name] : pod.annotations) {
    const std::string type = key.substr(0, key.find(".resources."));
    if (type != key && !name.empty() && config_.at("class-types").contains(type) &&
        !MayHaveClass(pod.pod_namespace, type, name)) {
      return "class " + type + "/" + name;
    }
  }
  return std::nullopt;
}

}  // namespace qrm::test
