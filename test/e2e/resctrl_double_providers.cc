// In place of manager/daemon/class_providers.cc: the type rdt on the double of resctrl whose
// directory QRM_RESCTRL_DOUBLE names.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "api/base/errorf.h"
#include "manager/daemon/class_providers.h"
#include "plugins/rdt/rdt_classes.h"
#include "test/support/resctrl/resctrl_double.h"

namespace qrm::manager {

std::vector<std::string> ClassTypeNames() {
  return {rdt::kTypeName};
}

StatusOr<ClassBook::Providers> MakeClassProviders(const ClassesOptions& options,
                                                  const ClassPaths& paths) {
  const char* const directory = std::getenv("QRM_RESCTRL_DOUBLE");
  if (directory == nullptr) {
    return Errorf(StatusCode::kInvalidArgument,
                  "QRM_RESCTRL_DOUBLE is not set; set it to the directory of a ResctrlDouble");
  }
  ClassBook::Providers providers;
  for (const auto& [name, rules] : options.types) {
    providers.push_back(std::make_unique<rdt::RdtClasses>(
        rdt::RdtSettings{.config_file = rules.config_file,
                         .paths = test::ResctrlDouble::PathsBelow(directory),
                         .cgroup_root = paths.cgroup_root}));
  }
  return providers;
}

void AddRetiredTypes(const ClassesOptions& /*options*/, const ClassPaths& /*paths*/,
                     const checkpoint::NodeState& /*state*/, ClassBook::Providers& /*providers*/) {
  // Tests on the double never take its only type out of the configuration.
}

}  // namespace qrm::manager
