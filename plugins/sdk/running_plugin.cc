// Builds a running plugin from its settings: state, host, socket, registrar.
#include "plugins/sdk/running_plugin.h"

#include <algorithm>
#include <utility>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "plugins/sdk/change_notifier.h"
#include "plugins/sdk/host.h"
#include "plugins/sdk/plugin_state.h"
#include "plugins/sdk/registrar.h"

namespace qrm::sdk {
namespace {

std::string FileNameFor(std::string resource) {
  std::replace(resource.begin(), resource.end(), '/', '_');
  return resource;
}

StatusOr<MeetingPlace> FindMeetingPlace(const PluginSettings& settings) {
  if (settings.registration_dir.empty() == settings.plugins_dir.empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot register: a plugin uses one directory, but the registration directory is "
                  "\"{}\" and the plugins registry is \"{}\"; set exactly one",
                  settings.registration_dir, settings.plugins_dir);
  }
  const std::string name = settings.socket_name.empty() ? FileNameFor(settings.resource) + ".sock"
                                                        : settings.socket_name;
  if (name.front() == '.' || name.find('/') != std::string::npos || name == "kubelet.sock") {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot create socket \"{}\": it must be a plain file name without a leading "
                  "dot, and not kubelet.sock; set --socket-name",
                  name);
  }
  if (settings.registration_dir.empty()) {
    return MeetingPlace{.plugin_socket = settings.plugins_dir + "/" + name};
  }
  return MeetingPlace{.plugin_socket = settings.registration_dir + "/" + name,
                      .manager_socket = settings.registration_dir + "/kubelet.sock"};
}

/// A missing or inaccessible directory may become usable later; a served socket or an impossible
/// path needs an operator.
bool IsFinal(const Status& listening) {
  return listening.code() == StatusCode::kAlreadyExists ||
         listening.code() == StatusCode::kInvalidArgument;
}

}  // namespace

// Members are destroyed in reverse order: each uses those above it.
struct RunningPlugin::Impl {
  std::unique_ptr<ChangeNotifier> notifier;
  std::unique_ptr<PluginHost> host;
  std::unique_ptr<Registrar> registrar;
};

StatusOr<std::unique_ptr<RunningPlugin>> RunningPlugin::Start(const PluginSettings& settings,
                                                              ResourcePlugin& plugin) {
  QRM_RETURN_IF_ERROR(CheckResourceName(settings.resource));
  QRM_ASSIGN_OR_RETURN(MeetingPlace place, FindMeetingPlace(settings));
  QRM_ASSIGN_OR_RETURN(std::unique_ptr<PluginState> state, OpenPluginState(StatePath(settings)));
  auto impl = std::make_unique<Impl>();
  QRM_ASSIGN_OR_RETURN(impl->host, PluginHost::Create(plugin, settings.resource, std::move(state),
                                                      settings.state_dir));
  if (!settings.control_socket.empty()) {
    impl->notifier = std::make_unique<ChangeNotifier>(settings.control_socket, settings.resource);
    impl->host->OnChanged([notifier = impl->notifier.get()] { notifier->Notify(); });
  }
  Status listening = impl->host->Listen(place.plugin_socket);
  if (listening.ok()) {
    log::Info("plugin serves", {{"resource", settings.resource}, {"socket", place.plugin_socket}});
  } else if (IsFinal(listening)) {
    return listening;
  }
  impl->registrar = std::make_unique<Registrar>(*impl->host, std::move(place));
  return std::unique_ptr<RunningPlugin>(new RunningPlugin(std::move(impl)));
}

RunningPlugin::RunningPlugin(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RunningPlugin::~RunningPlugin() = default;

Status RunningPlugin::Replace(std::unique_ptr<ResourcePlugin> next) {
  return impl_->host->Replace(std::move(next));
}

std::string StatePath(const PluginSettings& settings) {
  return settings.state_dir + "/" + FileNameFor(settings.resource) + "_plugin.db";
}

}  // namespace qrm::sdk
