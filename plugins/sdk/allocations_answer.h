// The answer to GetResourcesAllocation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "plugins/sdk/plugin_driver.h"

namespace qrm::sdk {

/// All allocations as one serialized answer, made anew only when they changed: a node that rests
/// costs nothing, and its answers are equal byte for byte.
///
/// Threads: one; the driver's.
class AllocationsAnswer {
 public:
  using Bytes = std::shared_ptr<const std::string>;

  /// A serialized resourceplugin.v1alpha1.GetResourcesAllocationResponse; the same one as before
  /// while `driver`, always the same one, grants the same.
  const Bytes& For(const PluginDriver& driver);

 private:
  std::optional<uint64_t> revision_;
  Bytes bytes_;
};

}  // namespace qrm::sdk
