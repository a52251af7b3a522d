// Runs one call at a time through the plugin's driver, on the caller's thread if possible.
#include "manager/registry/calls/local_plugin.h"

#include <utility>

#include "api/base/task_thread.h"
#include "manager/registry/calls/call_deadlines.h"
#include "plugins/sdk/change_signal.h"
#include "plugins/sdk/plugin_driver.h"

namespace qrm::manager {

using calls::Blame;
using calls::Call;

// Members are destroyed in reverse order: the thread ends before the members that it uses.
struct LocalPlugin::Impl {
  Impl(sdk::ResourcePlugin& served, const std::string& resource,
       std::unique_ptr<sdk::PluginState> state, Parts parts)
      : plugin(served),
        machine_nodes(std::move(parts.machine_nodes)),
        in_flight(std::move(parts.in_flight)),
        deadlines(parts.io),
        driver(served, resource, std::move(state), std::move(parts.state_dir)) {}
  ~Impl() { plugin.changes().Connect({}); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  sdk::ResourcePlugin& plugin;
  const NumaMask machine_nodes;
  const std::shared_ptr<rpc::CallsInFlight> in_flight;
  CallDeadlines deadlines;
  sdk::PluginDriver driver;  // used in tasks only, except for parts that never change
  TaskThread thread;
};

StatusOr<std::unique_ptr<LocalPlugin>> LocalPlugin::Start(sdk::ResourcePlugin& plugin,
                                                          const std::string& resource,
                                                          std::unique_ptr<sdk::PluginState> state,
                                                          Parts parts) {
  auto impl = std::make_unique<Impl>(plugin, resource, std::move(state), std::move(parts));
  Status started;
  impl->thread.Run([&] { started = impl->driver.Start(); });
  QRM_RETURN_IF_ERROR(started);
  return std::unique_ptr<LocalPlugin>(new LocalPlugin(std::move(impl)));
}

LocalPlugin::LocalPlugin(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

LocalPlugin::~LocalPlugin() = default;

void LocalPlugin::OnChanged(std::function<void()> listener) {
  impl_->plugin.changes().Connect(std::move(listener));
}

void LocalPlugin::Post(std::function<void()> task) {
  impl_->thread.Post(std::move(task));
}

void LocalPlugin::Run(const std::function<void(sdk::PluginDriver& driver)>& task) {
  impl_->thread.Run([&] { task(impl_->driver); });
}

void LocalPlugin::Start(const std::shared_ptr<Call>& call, Deadline deadline) {
  if (call->method().answered_by == calls::AnsweredBy::kAnyThread) {
    call->Serve(impl_->driver, impl_->machine_nodes);
    return;
  }
  const auto stop = [call] {
    call->Fail(Status(StatusCode::kCancelled, "qrmd is stopping"), Blame::kStopping);
  };
  const auto id = impl_->in_flight->Enter(stop);
  if (!id.has_value()) {
    stop();
    return;
  }
  const CallDeadlines::Watch watch = impl_->deadlines.Begin(deadline, [call] {
    call->Fail(Status(StatusCode::kDeadlineExceeded, "no answer before the deadline"),
               Blame::kTimeout);
  });
  impl_->thread.Dispatch([impl = impl_.get(), call, id = *id, watch] {
    if (!call->ended()) {
      call->Serve(impl->driver, impl->machine_nodes);
    }
    impl->deadlines.End(watch);
    impl->in_flight->Leave(id);
  });
}

}  // namespace qrm::manager
