// Runs one call at a time through the plugin's driver.
#include "manager/registry/calls/local_plugin.h"

#include <utility>

#include "plugins/sdk/change_signal.h"
#include "plugins/sdk/plugin_driver.h"
#include "plugins/sdk/plugin_state.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::manager {

StatusOr<std::unique_ptr<LocalPlugin>> LocalPlugin::Start(sdk::ResourcePlugin& plugin,
                                                          const std::string& resource,
                                                          std::unique_ptr<sdk::PluginState> state,
                                                          std::string state_dir) {
  auto driver =
      std::make_unique<sdk::PluginDriver>(plugin, resource, std::move(state), std::move(state_dir));
  QRM_RETURN_IF_ERROR(driver->Start());
  const PluginOptions options = driver->options();
  return std::unique_ptr<LocalPlugin>(new LocalPlugin(plugin, std::move(driver), options));
}

LocalPlugin::LocalPlugin(sdk::ResourcePlugin& plugin, std::unique_ptr<sdk::PluginDriver> driver,
                         const PluginOptions& options)
    : plugin_(plugin), driver_(std::move(driver)), options_(options) {}

LocalPlugin::~LocalPlugin() {
  plugin_.changes().Connect({});
}

std::unique_ptr<LocalPlugin> LocalPlugin::Fork() {
  const MutexLock lock(mutex_);
  using Forked = StatusOr<std::unique_ptr<sdk::ResourcePlugin>>;
  Forked plugin = driver_->Ask(
      "Fork", [](const sdk::ResourcePlugin& serving) -> Forked { return serving.Fork(); });
  if (!plugin.ok() || *plugin == nullptr) {
    return nullptr;
  }
  auto driver =
      std::make_unique<sdk::PluginDriver>(**plugin, driver_->resource(), sdk::MakeMemoryState());
  std::unique_ptr<LocalPlugin> fork(new LocalPlugin(**plugin, std::move(driver), options_));
  fork->fork_ = *std::move(plugin);
  return fork;
}

void LocalPlugin::OnChanged(std::function<void()> listener) {
  plugin_.changes().Connect(std::move(listener));
}

void LocalPlugin::Run(const std::function<void(sdk::PluginDriver& driver)>& task) {
  const MutexLock lock(mutex_);
  task(*driver_);
}

}  // namespace qrm::manager
