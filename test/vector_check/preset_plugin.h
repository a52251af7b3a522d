// A plugin behind the SDK's driver, as after a restart.
#pragma once

#include <memory>
#include <string>

#include "api/base/status.h"
#include "plugins/sdk/plugin.h"
#include "plugins/sdk/plugin_driver.h"

namespace qrm::vectors {

/// A started driver whose plugin has the given allocations; nothing is written to a disk.
class PresetPlugin {
 public:
  /// `saved` is the plugin's own state. Errors: the plugin's from Restore.
  static StatusOr<std::unique_ptr<PresetPlugin>> Start(const std::string& resource,
                                                       std::unique_ptr<sdk::ResourcePlugin> plugin,
                                                       sdk::Grants grants, std::string saved = "");

  sdk::PluginDriver& driver() { return *driver_; }
  /// The plugin's latest saved state.
  const std::string& saved() const { return *saved_; }

 private:
  PresetPlugin() = default;

  std::unique_ptr<sdk::ResourcePlugin> plugin_;
  std::shared_ptr<std::string> saved_;
  std::unique_ptr<sdk::PluginDriver> driver_;
};

/// A MAIN container of a Guaranteed pod that asks for nothing yet.
ContainerRequest GuaranteedRequest(const std::string& resource, const std::string& pod,
                                   const std::string& container);

}  // namespace qrm::vectors
