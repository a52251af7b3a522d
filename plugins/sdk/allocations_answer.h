// Builds the answer to GetResourcesAllocation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "plugins/sdk/resource_plugin.h"

namespace qrm::sdk {

/// All allocations as one serialized answer. It is serialized again only after a change, so an idle
/// node costs nothing and its answers are equal byte for byte.
///
/// Threads: one; the driver's.
class AllocationsAnswer {
 public:
  using Bytes = std::shared_ptr<const std::string>;

  /// The `grants` of `resource` as a serialized
  /// resourceplugin.v1alpha1.GetResourcesAllocationResponse. While `revision` is the same, the
  /// result is the same object.
  const Bytes& For(const Grants& grants, const std::string& resource, uint64_t revision);

 private:
  std::optional<uint64_t> revision_;
  Bytes bytes_;
};

}  // namespace qrm::sdk
