// Writes a plugin's answers in a few words.
#include "tools/plugin_check/answer_text.h"

#include <fmt/format.h>

namespace qrm::manager {

std::string Describe(const PluginOptions& options) {
  return fmt::format("with_topology_alignment={} need_reconcile={} pre_start_required={}",
                     options.with_topology_alignment, options.need_reconcile,
                     options.pre_start_required);
}

std::string Describe(const AllocationByResource& allocations) {
  std::string text;
  for (const auto& [resource, allocation] : allocations) {
    text += fmt::format("{}{}: {}={}", text.empty() ? "" : ", ", resource,
                        allocation->oci_property.empty() ? "no knob" : allocation->oci_property,
                        allocation->value);
    for (const auto& [name, value] : allocation->envs) {
      text += fmt::format(" {}={}", name, value);
    }
    for (const auto& [name, value] : allocation->annotations) {
      text += fmt::format(" annotation {}={}", name, value);
    }
    for (const DeviceSpec& device : allocation->devices) {
      text += fmt::format(" device {} ({})", device.container_path, device.permissions);
    }
    for (const Mount& mount : allocation->mounts) {
      text += fmt::format(" mount {} of {}{}", mount.container_path, mount.host_path,
                          mount.read_only ? " (read-only)" : "");
    }
  }
  return text.empty() ? "nothing" : text;
}

std::string Describe(const HintList& hints) {
  if (hints.IsNoPreference()) {
    return "no preference";
  }
  return hints.IsImpossible() ? "impossible" : fmt::format("{} hints", hints.hints().size());
}

}  // namespace qrm::manager
