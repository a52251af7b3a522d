// Creates the providers of types by name.
#include "manager/daemon/class_providers.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>

#include "api/base/check.h"
#include "api/base/log.h"
#include "manager/classes/class_change.h"
#include "plugins/blockio/blockio_provider.h"
#include "plugins/kernel/knob.h"
#include "plugins/rdt/rdt_classes.h"

namespace qrm::manager {
namespace {

using Made = StatusOr<std::unique_ptr<sdk::ClassProvider>>;

struct KnownType {
  std::string name;
  std::function<Made(const ClassTypeRules& rules, const std::string& cgroup_root)> make;
};

std::vector<KnownType> KnownTypes() {
  std::vector<KnownType> types = {
      {blockio::kType,
       [](const auto& rules, const auto& root) {
         return blockio::MakeSystemBlockio(rules.config_file, root, rules.require_devices);
       }},
      {kernel::kQuotaType,
       [](const auto& rules, const auto& root) {
         return kernel::MakeQuotaProvider(rules.config_file, kernel::FindKnobs("cpu", root));
       }},
      {rdt::kTypeName, [](const auto& rules, const auto& root) {
         return rdt::MakeSystemRdt(rules.config_file, root);
       }}};
  for (const kernel::KnobType& type : kernel::KnobTypes()) {
    types.push_back({type.name, [&type](const auto& rules, const auto& root) {
                       return kernel::MakeKnobProvider(type, rules.config_file,
                                                       kernel::FindKnobs(type.controller, root));
                     }});
  }
  return types;
}

}  // namespace

std::vector<std::string> ClassTypeNames() {
  std::vector<std::string> names;
  for (const KnownType& type : KnownTypes()) {
    names.push_back(type.name);
  }
  return names;
}

StatusOr<ClassBook::Providers> MakeClassProviders(const ClassesOptions& options,
                                                  const std::string& cgroup_root) {
  ClassBook::Providers providers;
  if (!options.enabled) {
    return providers;
  }
  const std::vector<KnownType> types = KnownTypes();
  for (const auto& [name, rules] : options.types) {
    if (IsPluginType(name)) {
      continue;
    }
    const auto known =
        std::find_if(types.begin(), types.end(),
                     [&, &wanted = name](const KnownType& type) { return type.name == wanted; });
    QRM_CHECK(known != types.end());  // reading the configuration accepts only known names
    Made made = known->make(rules, cgroup_root);
    if (!made.ok()) {
      return Annotate(made.status(), "class-types: " + name);
    }
    providers.push_back(*std::move(made));
  }
  return providers;
}

void AddRetiredTypes(const ClassesOptions& options, const std::string& cgroup_root,
                     const checkpoint::NodeState& state, ClassBook::Providers& providers) {
  ClassesOptions retired{.enabled = options.enabled};
  for (const std::string& type : ClassTypeNames()) {
    if (!options.types.contains(type) && !ClassesInUse(type, state).empty()) {
      retired.types[type].config_file = "/dev/null";
    }
  }
  StatusOr<ClassBook::Providers> made = MakeClassProviders(retired, cgroup_root);
  if (!made.ok()) {
    log::Warning("values of removed types stay in force", {{"error", MessageOf(made.status())}});
    return;
  }
  std::move(made->begin(), made->end(), std::back_inserter(providers));
}

}  // namespace qrm::manager
