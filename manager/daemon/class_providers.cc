// Creates the providers of types by name.
#include "manager/daemon/class_providers.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

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
  std::function<Made(const ClassTypeRules& rules, const ClassPaths& paths)> make;
};

std::string JournalOf(const ClassPaths& paths, const std::string& type) {
  return paths.state_dir.empty() ? "" : fmt::format("{}/{}.knobs.json", paths.state_dir, type);
}

std::vector<KnownType> KnownTypes() {
  std::vector<KnownType> types = {
      {blockio::kType,
       [](const auto& rules, const auto& paths) {
         return blockio::MakeSystemBlockio(rules.config_file, paths.cgroup_root,
                                           rules.require_devices);
       }},
      {kernel::kQuotaType,
       [](const auto& rules, const auto& paths) {
         return kernel::MakeQuotaProvider(rules.config_file,
                                          kernel::FindKnobs("cpu", paths.cgroup_root));
       }},
      {rdt::kTypeName, [](const auto& rules, const auto& paths) {
         return rdt::MakeSystemRdt({.config_file = rules.config_file,
                                    .cgroup_root = paths.cgroup_root,
                                    .journal = JournalOf(paths, rdt::kTypeName)});
       }}};
  for (const kernel::KnobType& type : kernel::KnobTypes()) {
    types.push_back({type.name, [&type](const auto& rules, const auto& paths) {
                       kernel::KnobMachine machine =
                           kernel::FindKnobs(type.controller, paths.cgroup_root);
                       machine.journal = JournalOf(paths, type.name);
                       return kernel::MakeKnobProvider(type, rules.config_file, std::move(machine));
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
                                                  const ClassPaths& paths) {
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
    Made made = known->make(rules, paths);
    if (!made.ok()) {
      return Annotate(made.status(), "class-types: " + name);
    }
    providers.push_back(*std::move(made));
  }
  return providers;
}

void AddRetiredTypes(const ClassesOptions& options, const ClassPaths& paths,
                     const checkpoint::NodeState& state, ClassBook::Providers& providers) {
  ClassesOptions retired{.enabled = options.enabled};
  for (const std::string& type : ClassTypeNames()) {
    const std::set<std::string> in_use = ClassesInUse(type, state);
    const bool is_left =
        !in_use.empty() || (type == rdt::kTypeName && rdt::IsLeftOnSystem(JournalOf(paths, type)));
    if (options.enabled && !options.types.contains(type) && is_left) {
      log::Info("type of classes was removed from class-types; its values are removed",
                {{"type", type}, {"classes", fmt::format("{}", fmt::join(in_use, ", "))}});
      retired.types[type].config_file = "/dev/null";
    }
  }
  StatusOr<ClassBook::Providers> made = MakeClassProviders(retired, paths);
  if (!made.ok()) {
    log::Warning("values of removed types stay in force", {{"error", MessageOf(made.status())}});
    return;
  }
  std::move(made->begin(), made->end(), std::back_inserter(providers));
}

}  // namespace qrm::manager
