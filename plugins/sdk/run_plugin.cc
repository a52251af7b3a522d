// Builds a running plugin from its settings, and runs it as a program: its flags, signals and exit
// code.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pthread.h>

#include <CLI/CLI.hpp>

#include "api/base/changed_file.h"
#include "api/base/errorf.h"
#include "api/base/log.h"
#include "plugins/sdk/compute_driver.h"
#include "plugins/sdk/compute_plugin.h"
#include "plugins/sdk/host.h"
#include "plugins/sdk/plugin.h"
#include "plugins/sdk/plugin_state.h"
#include "plugins/sdk/registrar.h"
#include "plugins/sdk/running_plugin.h"

namespace qrm::sdk {
namespace {

std::string FileNameFor(std::string resource) {
  std::ranges::replace(resource, '/', '_');
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

constexpr char kDefaultPluginsDir[] = "/var/lib/qrm/plugins_registry";
constexpr char kDefaultStateDir[] = "/var/lib/qrm/state";
constexpr char kDefaultControlSocket[] = "/run/qrm/control.sock";
constexpr int kExitMisused = 2;
/// Between two checks of the configuration file.
constexpr std::chrono::seconds kSignalPeriod(1);

/// Blocks SIGTERM, SIGINT and SIGHUP, so that Wait receives them; new threads inherit the mask.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  /// The next signal; nothing if none came within `longest`.
  std::optional<int> Wait(std::chrono::seconds longest) const {
    const timespec timeout{.tv_sec = longest.count(), .tv_nsec = 0};
    const int signal = sigtimedwait(&signals_, nullptr, &timeout);
    return signal < 0 ? std::nullopt : std::optional(signal);
  }

 private:
  sigset_t signals_;
  sigset_t before_;
};

void MakeAnew(const PluginMaking& making, RunningPlugin& running) {
  if (!making.make) {
    log::Warning("SIGHUP ignored: this plugin has no configuration to reload; restart it");
    return;
  }
  StatusOr<std::unique_ptr<ResourcePlugin>> next = making.make();
  const Status taken = next.ok() ? running.Replace(*std::move(next)) : next.status();
  if (taken.ok()) {
    log::Info("plugin's configuration reloaded", {{"file", making.file}});
  } else {
    log::Error("plugin's configuration rejected; the previous one stays in force",
               {{"error", MessageOf(taken)}});
  }
}

/// Recreates the plugin at each SIGHUP and file change, until another signal, which is the result.
int FollowConfiguration(const HeldSignals& signals, const PluginMaking& making,
                        RunningPlugin& running) {
  ChangedFile file(making.file);
  while (true) {
    const std::optional<int> signal = signals.Wait(kSignalPeriod);
    if (signal.has_value() && *signal != SIGHUP) {
      return *signal;
    }
    if (signal.has_value()) {
      file.Know();
      MakeAnew(making, running);
    } else if (file.HasSettled()) {
      MakeAnew(making, running);
    }
  }
}

void AddFlags(CLI::App& app, PluginSettings& settings, const std::vector<ExtraFlag>& extra) {
  app.add_option("--resource", settings.resource, "the resource name to register")
      ->capture_default_str();
  CLI::Option* registration_dir = app.add_option(
      "--registration-dir", settings.registration_dir,
      "register on kubelet.sock in this directory; the plugin's socket is created there too");
  app.add_option("--plugins-registry-dir", settings.plugins_dir,
                 fmt::format("create the socket in this directory, which the manager watches "
                             "(default {}, unless --registration-dir is set)",
                             kDefaultPluginsDir))
      ->excludes(registration_dir);
  app.add_option("--state-dir", settings.state_dir, "directory of the state database")
      ->capture_default_str();
  app.add_option("--socket-name", settings.socket_name,
                 "file name of the socket (default <resource>.sock, '/' as '_')");
  app.add_option("--control-socket", settings.control_socket,
                 "qrmd's control socket, to notify it of changes; empty: it sees them at its next "
                 "reconcile")
      ->capture_default_str();
  for (const ExtraFlag& flag : extra) {
    if (flag.present != nullptr) {
      app.add_flag("--" + flag.name, *flag.present, flag.help);
    } else {
      app.add_option("--" + flag.name, *flag.value, flag.help)->capture_default_str();
    }
  }
}

/// The words after the program's name, the last one first. CLI11 says of "--name=" that its value
/// is missing, so the empty value is a word of its own.
std::vector<std::string> WordsOf(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {
    std::string word = argv[i];
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      word.pop_back();
      words.emplace_back();
    }
    words.push_back(std::move(word));
  }
  return words;
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

StatusOr<PluginSettings> ParseSettings(const std::string& default_resource, int argc, char** argv,
                                       const std::vector<ExtraFlag>& extra) {
  PluginSettings settings{.resource = default_resource,
                          .state_dir = kDefaultStateDir,
                          .control_socket = kDefaultControlSocket};
  CLI::App app("Resource plugin of qrm for " + default_resource);
  AddFlags(app, settings, extra);
  try {
    app.name(argv[0]);
    app.parse(WordsOf(argc, argv));
  } catch (const CLI::CallForHelp& help) {
    std::exit(app.exit(help));
  } catch (const CLI::ParseError& error) {
    return Errorf(StatusCode::kInvalidArgument, "cannot read the command line: {}; try {} --help",
                  error.what(), argv[0]);
  }
  if (settings.registration_dir.empty() && settings.plugins_dir.empty()) {
    settings.plugins_dir = kDefaultPluginsDir;
  }
  return settings;
}

Status RunPlugin(const PluginSettings& settings, ResourcePlugin& plugin) {
  return RunPlugin(settings, plugin, {});
}

Status RunPlugin(const PluginSettings& settings, ResourcePlugin& plugin,
                 const PluginMaking& making) {
  const HeldSignals signals;
  QRM_ASSIGN_OR_RETURN(const std::unique_ptr<RunningPlugin> running,
                       RunningPlugin::Start(settings, plugin));
  const int signal = FollowConfiguration(signals, making, *running);
  log::Info("plugin stopping", {{"resource", settings.resource}, {"signal", signal}});
  return OkStatus();
}

namespace {

int Misused(const Status& error) {
  std::cerr << MessageOf(error) << '\n';
  return kExitMisused;
}

int Main(const PluginSettings& settings, ResourcePlugin& plugin) {
  const Status end = RunPlugin(settings, plugin);
  if (!end.ok()) {
    log::Error("plugin failed", {{"resource", settings.resource}, {"error", MessageOf(end)}});
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

Status CheckIsDriver(const PluginSettings& settings) {
  if (!settings.registration_dir.empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot register a compute driver in {}: drivers register only in the watched "
                  "directory; use --plugins-registry-dir",
                  settings.registration_dir);
  }
  if (!IsDriverResource(settings.resource)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot serve a compute driver as {}: use --resource {}", settings.resource,
                  DriverResource("NAME"));
  }
  return Annotate(CheckDriverName(DriverNameOf(settings.resource)),
                  "cannot serve a compute driver");
}

}  // namespace

int PluginMain(const std::string& default_resource, ResourcePlugin& plugin, int argc, char** argv) {
  const StatusOr<PluginSettings> settings = ParseSettings(default_resource, argc, argv);
  return settings.ok() ? Main(*settings, plugin) : Misused(settings.status());
}

int DriverMain(const std::string& name, ComputeDriver& driver, int argc, char** argv) {
  const StatusOr<PluginSettings> settings = ParseSettings(DriverResource(name), argc, argv);
  if (!settings.ok()) {
    return Misused(settings.status());
  }
  return DriverMain(*settings, driver);
}

int DriverMain(const PluginSettings& settings, ComputeDriver& driver) {
  if (const Status good = CheckIsDriver(settings); !good.ok()) {
    return Misused(good);
  }
  ComputePlugin plugin(driver);
  return Main(settings, plugin);
}

}  // namespace qrm::sdk
