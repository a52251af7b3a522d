// One call in flight, and a note that another is wanted.
#include "plugins/sdk/change_notifier.h"

#include <chrono>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "api/base/log.h"
#include "api/base/mutex.h"
#include "api/base/status.h"
#include "api/grpc_lifetime.h"
#include "api/proto/qrm/v1/control.grpc.pb.h"

namespace qrm::sdk {
namespace {

/// The manager answers before it does anything.
constexpr std::chrono::seconds kCallTimeout{2};

/// A channel without a past: gRPC would otherwise wait out the backoff of a former attempt.
std::shared_ptr<grpc::Channel> NewChannel(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

struct Call {
  explicit Call(const std::string& socket) : stub(v1::Control::NewStub(NewChannel(socket))) {}

  std::unique_ptr<v1::Control::Stub> stub;
  grpc::ClientContext context;
  v1::NotifyChangedRequest request;
  v1::NotifyChangedResponse response;
};

}  // namespace

struct ChangeNotifier::Impl : std::enable_shared_from_this<ChangeNotifier::Impl> {
  Impl(std::string control_socket, std::string resource_name)
      : socket(std::move(control_socket)), resource(std::move(resource_name)) {}

  void Notify();
  void Send(const std::shared_ptr<Call>& next);
  void OnAnswer(const grpc::Status& answer);
  void Close();
  std::shared_ptr<Call> NewCall() const;

  const std::string socket;
  const std::string resource;
  Mutex mutex;
  CondVar idle;
  std::shared_ptr<Call> call QRM_GUARDED_BY(mutex);  // in flight
  bool again QRM_GUARDED_BY(mutex) = false;
  bool closed QRM_GUARDED_BY(mutex) = false;
  bool said QRM_GUARDED_BY(mutex) = false;  // that the manager is not told
};

std::shared_ptr<Call> ChangeNotifier::Impl::NewCall() const {
  KeepGrpcCallbackThreads();
  auto next = std::make_shared<Call>(socket);
  next->request.set_resource_name(resource);
  next->context.set_deadline(std::chrono::system_clock::now() + kCallTimeout);
  return next;
}

void ChangeNotifier::Impl::Notify() {
  std::shared_ptr<Call> next;
  {
    const MutexLock lock(mutex);
    if (closed) {
      return;
    }
    if (call != nullptr) {
      again = true;
      return;
    }
    next = call = NewCall();
  }
  Send(next);
}

void ChangeNotifier::Impl::Send(const std::shared_ptr<Call>& next) {
  next->stub->async()->NotifyChanged(
      &next->context, &next->request, &next->response,
      [self = shared_from_this(), next](const grpc::Status& answer) { self->OnAnswer(answer); });
}

void ChangeNotifier::Impl::OnAnswer(const grpc::Status& answer) {
  bool say = false;
  std::shared_ptr<Call> next;
  {
    const MutexLock lock(mutex);
    say = !answer.ok() && !std::exchange(said, !answer.ok()) && !closed;
    call = again && !closed ? NewCall() : nullptr;
    again = false;
    next = call;
  }
  if (say) {
    log::Info("manager not told of a change: it sees it at its next reconcile",
              {{"resource", resource}, {"socket", socket}, {"why", answer.error_message()}});
  }
  if (next != nullptr) {
    Send(next);
  } else {
    idle.NotifyAll();
  }
}

void ChangeNotifier::Impl::Close() {
  const MutexLock lock(mutex);
  closed = true;
  if (call != nullptr) {
    call->context.TryCancel();
  }
  idle.Wait(mutex, [this]() QRM_REQUIRES(mutex) { return call == nullptr; });
}

ChangeNotifier::ChangeNotifier(std::string control_socket, std::string resource)
    : impl_(std::make_shared<Impl>(std::move(control_socket), std::move(resource))) {}

ChangeNotifier::~ChangeNotifier() {
  impl_->Close();
}

void ChangeNotifier::Notify() {
  impl_->Notify();
}

}  // namespace qrm::sdk
