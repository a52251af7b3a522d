// Who may ask for what: rules by namespace about what labels and annotations can ask for.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/config_key.h"
#include "api/base/status.h"

namespace qrm::placement {

/// What a pod may want beyond its part of what all have.
enum class Feature {
  kOptOut,             ///< to be left alone
  kReservedCpus,       ///< system_cores
  kOwnCpus,            ///< dedicated_cores, roles with CPUs of their own, the static policy
  kNumaNodes,          ///< numa_exclusive
  kNetworkNamespaces,  ///< a NIC in another network namespace than its own
  kPool,               ///< one that it names
  kRole,
  kResource,  ///< of a plugin that is not one of native-resources, such as a NIC
  kClass,     ///< of QoS-class resources, "TYPE/CLASS", that it asks for
  kDriver,    ///< a compute driver that it asks for
};

/// One thing that a pod asks for.
struct Wish {
  Feature feature = Feature::kOptOut;
  std::string name;  ///< of the pool, role, resource, class or driver; empty for other features
  std::string key;   ///< what asks for it: "annotation KEY=VALUE"
};

/// What the pods of some namespaces may ask for. Namespaces and names are globs: `*` stands for any
/// text.
struct PermissionRule {
  std::string title;  ///< as refusals name it
  std::vector<std::string> namespaces;
  std::set<Feature> allowed;  ///< of the features without names
  std::vector<std::string> pools;
  std::vector<std::string> roles;
  std::vector<std::string> resources;
  std::vector<std::string> classes;  ///< beside those whose own rule names the namespace
  std::vector<std::string> drivers;  ///< the same
};

/// The rules in their order: the first one that names a namespace decides.
class Permissions {
 public:
  /// `configured`, then the default ones: kube-system may ask for everything; all others for what
  /// the configuration gives by name and for what their requests pay, but may neither opt out nor
  /// use reserved CPUs nor ask for classes or compute drivers.
  Permissions() : Permissions(std::vector<PermissionRule>()) {}
  explicit Permissions(std::vector<PermissionRule> configured);

  const std::vector<PermissionRule>& rules() const { return rules_; }
  /// There is one for every namespace.
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

}  // namespace qrm::placement
