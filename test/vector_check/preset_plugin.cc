// The state of a plugin that never touches a disk.
#include "test/vector_check/preset_plugin.h"

#include <utility>

#include "plugins/sdk/plugin_state.h"

namespace qrm::vectors {
namespace {

class PresetState final : public sdk::PluginState {
 public:
  PresetState(sdk::Grants grants, std::shared_ptr<std::string> saved)
      : grants_(std::move(grants)), saved_(std::move(saved)) {}

  StatusOr<sdk::StoredState> Load() override {
    sdk::StoredState stored{.grants = std::move(grants_)};
    if (!saved_->empty()) {
      stored.saved = *saved_;
    }
    return stored;
  }

  Status Commit(const sdk::StateChange& change) override {
    if (change.saved.has_value()) {
      *saved_ = *change.saved;
    }
    return OkStatus();
  }

  Status BeginAnew(const sdk::StateChange& everything) override { return Commit(everything); }

 private:
  sdk::Grants grants_;
  std::shared_ptr<std::string> saved_;
};

}  // namespace

StatusOr<std::unique_ptr<PresetPlugin>> PresetPlugin::Start(
    const std::string& resource, std::unique_ptr<sdk::ResourcePlugin> plugin, sdk::Grants grants,
    std::string saved) {
  std::unique_ptr<PresetPlugin> preset(new PresetPlugin());
  preset->plugin_ = std::move(plugin);
  preset->saved_ = std::make_shared<std::string>(std::move(saved));
  preset->driver_ = std::make_unique<sdk::PluginDriver>(
      *preset->plugin_, resource, std::make_unique<PresetState>(std::move(grants), preset->saved_));
  QRM_RETURN_IF_ERROR(preset->driver_->Start());
  return preset;
}

ContainerRequest GuaranteedRequest(const std::string& resource, const std::string& pod,
                                   const std::string& container) {
  return {.key = {.pod_uid = pod, .container = container},
          .pod_namespace = "default",
          .pod_name = pod,
          .resource = resource,
          .native_qos_class = "Guaranteed"};
}

}  // namespace qrm::vectors
