// Builds the answer to GetResourcesAllocation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "plugins/sdk/resource_plugin.h"

namespace qrm::sdk {

/// All allocations as one serialized answer, made anew only when they changed: a node that rests
/// costs nothing, and its answers are equal byte for byte.
///
/// Threads: one; the driver's.
class AllocationsAnswer {
 public:
  using Bytes = std::shared_ptr<const std::string>;

  /// `grants`, given for `resource`, as a serialized
  /// resourceplugin.v1alpha1.GetResourcesAllocationResponse; the same one as before while
  /// `revision` is the same.
  const Bytes& For(const Grants& grants, const std::string& resource, uint64_t revision);

 private:
  std::optional<uint64_t> revision_;
  Bytes bytes_;
};

}  // namespace qrm::sdk
