// Rules by namespace for what pods may ask for by labels and annotations.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/config_key.h"
#include "api/base/status.h"

namespace qrm::manager {

/// What a pod may ask for beyond its requests.
enum class Feature {
  kOptOut,             ///< to be skipped
  kReservedCpus,       ///< system_cores
  kOwnCpus,            ///< dedicated_cores, roles with exclusive CPUs, the static policy
  kNumaNodes,          ///< numa_exclusive
  kNetworkNamespaces,  ///< a NIC in another network namespace than the pod's
  kPool,               ///< a named pool
  kRole,
  kResource,  ///< a plugin's resource outside native-resources, such as a NIC
  kClass,     ///< a class of a QoS-class resource, "TYPE/CLASS"
  kDriver,    ///< a compute driver
};

/// One thing that a pod asks for.
struct Wish {
  Feature feature = Feature::kOptOut;
  std::string name;  ///< of the pool, role, resource, class or driver; empty for other features
  std::string key;   ///< the source of the wish: "annotation KEY=VALUE"
};

/// What the pods of some namespaces may ask for. Namespaces and names are globs: `*` matches any
/// text.
struct PermissionRule {
  std::string title;  ///< its name in rejections
  std::vector<std::string> namespaces;
  std::set<Feature> allowed;  ///< features without names
  std::vector<std::string> pools;
  std::vector<std::string> roles;
  std::vector<std::string> resources;
  std::vector<std::string> classes;  ///< in addition to classes whose own rule names the namespace
  std::vector<std::string> drivers;  ///< in addition to drivers whose own rule does
};

/// The rules in order: the first rule that names a namespace decides.
class Permissions {
 public:
  /// `configured`, then the default rules: kube-system may ask for everything. Other namespaces may
  /// ask for what the configuration gives by name and what their requests pay for, but not for
  /// opt-out, reserved CPUs, classes or compute drivers.
  Permissions() : Permissions(std::vector<PermissionRule>()) {}
  explicit Permissions(std::vector<PermissionRule> configured);

  const std::vector<PermissionRule>& rules() const { return rules_; }
  /// Every namespace has a rule.
  const PermissionRule& RuleFor(std::string_view pod_namespace) const;
  bool Allows(std::string_view pod_namespace, const Wish& wish) const;

  /// OK when the rule of `pod_namespace` allows `wish`. Errors: kPermissionDenied naming rule,
  /// namespace and key.
  Status Check(std::string_view pod_namespace, const Wish& wish) const;

 private:
  std::vector<PermissionRule> rules_;
};

/// The words of `rule.allowed`: "opt-out", "reserved-cpus", ...; in the order of Feature.
std::vector<std::string> AllowedWords(const PermissionRule& rule);

config::ConfigKey PermissionsKey(std::string name, Permissions& place, std::string help);

}  // namespace qrm::manager
