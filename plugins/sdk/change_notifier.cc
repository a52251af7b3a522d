// Keeps one call in flight, and remembers whether another is needed.
#include "plugins/sdk/change_notifier.h"

#include <chrono>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "api/base/clock.h"
#include "api/base/log.h"
#include "api/base/mutex.h"
#include "api/base/status.h"
#include "api/proto/qrm/v1/control.grpc.pb.h"
#include "api/rpc/channel.h"
#include "api/rpc/unary_call.h"

namespace qrm::sdk {
namespace {

/// Short, since the manager answers before it starts to reconcile.
constexpr std::chrono::seconds kCallTimeout{2};

}  // namespace

struct ChangeNotifier::Impl : std::enable_shared_from_this<ChangeNotifier::Impl> {
  Impl(std::string control_socket, std::string resource_name)
      : socket(std::move(control_socket)), resource(std::move(resource_name)) {}

  void Notify();
  void Send();
  void OnAnswer(const Status& answer);

  const std::string socket;
  const std::string resource;
  const std::shared_ptr<rpc::CallsInFlight> calls = std::make_shared<rpc::CallsInFlight>();
  Mutex mutex;
  bool sending QRM_GUARDED_BY(mutex) = false;
  bool again QRM_GUARDED_BY(mutex) = false;
  bool said QRM_GUARDED_BY(mutex) = false;  // that the manager was not notified
};

void ChangeNotifier::Impl::Notify() {
  {
    const MutexLock lock(mutex);
    if (std::exchange(sending, true)) {
      again = true;
      return;
    }
  }
  Send();
}

/// Each call has its own channel, so that it does not wait for the backoff of an earlier attempt.
void ChangeNotifier::Impl::Send() {
  using Async = v1::Control::StubInterface::async_interface;
  const std::shared_ptr<v1::Control::Stub> stub = v1::Control::NewStub(rpc::UnixChannel(socket));
  v1::NotifyChangedRequest request;
  request.set_resource_name(resource);
  const bool sent = rpc::StartUnary(
      {calls, DeadlineAfter(kCallTimeout)}, stub->async(), &Async::NotifyChanged,
      std::move(request),
      [self = shared_from_this(), stub](const auto& answer) { self->OnAnswer(answer.status()); });
  if (!sent) {  // stopped
    const MutexLock lock(mutex);
    sending = false;
  }
}

void ChangeNotifier::Impl::OnAnswer(const Status& answer) {
  bool say = false;
  bool send = false;
  {
    const MutexLock lock(mutex);
    say = !answer.ok() && !std::exchange(said, !answer.ok()) && !calls->stopped();
    send = std::exchange(again, false);
    sending = send;
  }
  if (say) {
    log::Info("cannot notify the manager of a change; it sees the change at its next reconcile",
              {{"resource", resource}, {"socket", socket}, {"error", MessageOf(answer)}});
  }
  if (send) {
    Send();
  }
}

ChangeNotifier::ChangeNotifier(std::string control_socket, std::string resource)
    : impl_(std::make_shared<Impl>(std::move(control_socket), std::move(resource))) {}

ChangeNotifier::~ChangeNotifier() {
  impl_->calls->StopAndWait();
}

void ChangeNotifier::Notify() {
  impl_->Notify();
}

}  // namespace qrm::sdk
