// Reads the structured keys of admissions.
#include "manager/admission/admission_options.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/section.h"
#include "api/quantity.h"

namespace qrm::manager {
namespace {

using config::ConfigKey;
using config::KeyShape;
using config::Section;

/// The default scale of a resource name. Source: Katalyst, ReclaimedResourceMilliCPU.
double UsualScale(const std::string& name) {
  return name.ends_with("millicpu") ? 0.001 : 1;
}

StatusOr<MappedResource> ReadMappedResource(const Section& names, const std::string& from) {
  MappedResource to{.scale = UsualScale(from)};
  if (names.IsScalar(from)) {
    QRM_ASSIGN_OR_RETURN(to.plugin, names.Text(from, ""));
    return to;
  }
  QRM_ASSIGN_OR_RETURN(const Section entry, names.Child(from));
  QRM_RETURN_IF_ERROR(entry.AllowKeys({"resource", "scale"}));
  QRM_ASSIGN_OR_RETURN(to.plugin, entry.Text("resource", ""));
  if (!entry.Has("scale")) {
    return to;
  }
  QRM_ASSIGN_OR_RETURN(const std::string text, entry.Text("scale", ""));
  to.scale = ParseQuantity(text).value_or(0);
  if (to.scale <= 0) {
    return entry.Error("scale", fmt::format("is '{}', which is not a quantity above 0", text),
                       "write the number of the plugin's units in one requested unit, such as 1m");
  }
  return to;
}

StatusOr<ResourceNames> ReadResourceNames(const Section& names) {
  ResourceNames read;
  for (const std::string& from : names.Keys()) {
    QRM_ASSIGN_OR_RETURN(MappedResource to, ReadMappedResource(names, from));
    for (const std::string& name : {from, to.plugin}) {
      if (!CheckResourceName(name).ok()) {
        return names.Error(from,
                           fmt::format("maps '{}' to '{}', but '{}' is not a resource name", from,
                                       to.plugin, name),
                           "write names such as cpu or example.com/nic");
      }
    }
    read[from] = std::move(to);
  }
  return read;
}

std::string Show(const std::string& from, const MappedResource& to) {
  return to.scale == UsualScale(from)
             ? fmt::format("{}: {}", from, to.plugin)
             : fmt::format("{}: {{resource: {}, scale: {}}}", from, to.plugin, to.scale);
}

StatusOr<ImplicitResource> ReadImplicitResource(const Section& item) {
  QRM_RETURN_IF_ERROR(item.AllowKeys({"resource", "roles", "annotation"}));
  ImplicitResource implicit;
  QRM_ASSIGN_OR_RETURN(implicit.resource, item.Text("resource", ""));
  QRM_ASSIGN_OR_RETURN(const std::vector<std::string> roles, item.Words("roles"));
  QRM_ASSIGN_OR_RETURN(implicit.annotation, item.Text("annotation", ""));
  implicit.roles = {roles.begin(), roles.end()};
  if (!CheckResourceName(implicit.resource).ok()) {
    return item.Error("resource",
                      fmt::format("is '{}', which is not a resource name", implicit.resource),
                      "write one such as NIC or example.com/nic");
  }
  if (implicit.roles.empty() && implicit.annotation.empty()) {
    return item.Error("resource", "is given to no pod", "add roles or an annotation");
  }
  return implicit;
}

std::string Show(const ImplicitResource& implicit) {
  const std::string annotation =
      implicit.annotation.empty() ? "" : ", annotation: " + implicit.annotation;
  return fmt::format("{{resource: {}, roles: [{}]{}}}", implicit.resource,
                     fmt::join(implicit.roles, ", "), annotation);
}

}  // namespace

ConfigKey ResourceNamesKey(std::string name, ResourceNames& place, std::string help) {
  return {.name = std::move(name),
          .shape = KeyShape::kMapping,
          .range = "pod's name: plugin's name, or {resource, scale}",
          .help = std::move(help),
          .read = [&place](const Section& section, const std::string& key) -> Status {
            QRM_ASSIGN_OR_RETURN(const Section names, section.Child(key));
            QRM_ASSIGN_OR_RETURN(place, ReadResourceNames(names));
            return OkStatus();
          },
          .show =
              [&place] {
                std::vector<std::string> names;
                for (const auto& [from, to] : place) {
                  names.push_back(Show(from, to));
                }
                return fmt::format("{{{}}}", fmt::join(names, ", "));
              }};
}

ConfigKey ImplicitResourcesKey(std::string name, std::vector<ImplicitResource>& place,
                               std::string help) {
  return {.name = std::move(name),
          .shape = KeyShape::kList,
          .range = "list of {resource, roles, annotation}",
          .help = std::move(help),
          .read = [&place](const Section& section, const std::string& key) -> Status {
            QRM_ASSIGN_OR_RETURN(const std::vector<Section> items, section.Items(key));
            place.clear();
            for (const Section& item : items) {
              QRM_ASSIGN_OR_RETURN(ImplicitResource implicit, ReadImplicitResource(item));
              place.push_back(std::move(implicit));
            }
            return OkStatus();
          },
          .show =
              [&place] {
                std::vector<std::string> items;
                items.reserve(place.size());
                for (const ImplicitResource& implicit : place) {
                  items.push_back(Show(implicit));
                }
                return config::ListText(items);
              }};
}

}  // namespace qrm::manager
