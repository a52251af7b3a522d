// Reads the classes of a file by name.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "api/base/section.h"
#include "api/base/status.h"
#include "plugins/sdk/class_name.h"

namespace qrm::cgroup {

/// Reads `classes: {NAME: {...}}`, each class by `read`. Errors: kInvalidArgument with file, line
/// and key for an invalid or repeated name, and for any other key; those of `read`.
template <typename Class>
StatusOr<std::map<std::string, Class>> ParseClasses(
    const config::Section& file,
    const std::function<StatusOr<Class>(const config::Section&)>& read) {
  QRM_RETURN_IF_ERROR(file.AllowKeys({"classes"}));
  QRM_ASSIGN_OR_RETURN(const auto sections, file.Children("classes"));
  std::map<std::string, Class> classes;
  for (const auto& [name, section] : sections) {
    const bool is_twice = classes.contains(name);
    if (!sdk::IsClassName(name) || is_twice) {
      return file.Error("classes",
                        "has '" + name + (is_twice ? "' twice" : "', which is not a class name"),
                        is_twice ? "keep one of them" : sdk::kClassNameForm);
    }
    QRM_ASSIGN_OR_RETURN(classes[name], read(section));
  }
  return classes;
}

}  // namespace qrm::cgroup
