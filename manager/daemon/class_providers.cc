// Makes the types by name.
#include "manager/daemon/class_providers.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "api/base/check.h"
#include "plugins/blockio/blockio_provider.h"
#include "plugins/rdt/rdt_classes.h"

namespace qrm::manager {
namespace {

using Made = StatusOr<std::unique_ptr<sdk::ClassProvider>>;

struct KnownType {
  const char* name;
  Made (*make)(const std::string& config_file, const std::string& cgroup_root);
};
constexpr KnownType kKnownTypes[] = {
    {blockio::kType, blockio::MakeSystemBlockio},
    {rdt::kTypeName, rdt::MakeSystemRdt},
};

}  // namespace

std::vector<std::string> ClassTypeNames() {
  std::vector<std::string> names;
  for (const KnownType& type : kKnownTypes) {
    names.emplace_back(type.name);
  }
  return names;
}

StatusOr<ClassBook::Providers> MakeClassProviders(const ClassesOptions& options,
                                                  const std::string& cgroup_root) {
  ClassBook::Providers providers;
  if (!options.enabled) {
    return providers;
  }
  for (const auto& [name, rules] : options.types) {
    const auto* const known =
        std::find_if(std::begin(kKnownTypes), std::end(kKnownTypes),
                     [&, &wanted = name](const KnownType& type) { return type.name == wanted; });
    QRM_CHECK(known != std::end(kKnownTypes));  // the configuration was read with their names
    Made made = known->make(rules.config_file, cgroup_root);
    if (!made.ok()) {
      return Annotate(made.status(), "class-types: " + name);
    }
    providers.push_back(*std::move(made));
  }
  return providers;
}

}  // namespace qrm::manager
