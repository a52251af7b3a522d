// Keeps one watch at a time; its events arrive in order on gRPC's threads.
#include "manager/kubelet/pods_api_client.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <grpcpp/grpcpp.h>

#include "api/base/log.h"
#include "api/base/mutex.h"
#include "api/grpc_lifetime.h"
#include "api/proto/pods/v1alpha1/api.grpc.pb.h"
#include "manager/demand/pod_message.h"
#include "manager/demand/spec_cache.h"

namespace qrm::manager {
namespace {

namespace pods = ::v1alpha1;
using std::chrono::milliseconds;

constexpr int kMaxMessageBytes = 16 << 20;
/// A watch that lasted this long counts as working.
constexpr std::chrono::seconds kGoodLife{1};

std::unique_ptr<pods::Pods::Stub> Connect(const PodsApiOptions& options) {
  KeepGrpcCallbackThreads();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const int backoff = static_cast<int>(options.first_backoff.count());
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, backoff);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, backoff);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, backoff);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  return pods::Pods::NewStub(grpc::CreateCustomChannel(
      "unix:" + options.socket, grpc::InsecureChannelCredentials(), arguments));
}

}  // namespace

struct PodsApiClient::Impl : std::enable_shared_from_this<PodsApiClient::Impl> {
  Impl(boost::asio::io_context& loop, PodsApiOptions client_options)
      : io(loop), options(std::move(client_options)), stub(Connect(options)) {}

  void BeginWatch();
  void WatchEnded(const grpc::Status& status, bool was_good);
  void Retry(milliseconds after);
  void Lookup(const std::string& uid);
  void Close();
  bool Enter(grpc::ClientContext* context);
  void Leave(grpc::ClientContext* context);
  void SetSynced(bool now);
  bool IsOpen();

  boost::asio::io_context& io;
  const PodsApiOptions options;
  const std::unique_ptr<pods::Pods::Stub> stub;
  std::optional<boost::asio::steady_timer> retry_timer{io};  // on the I/O loop only; until Close
  SpecCache cache;

  Mutex mutex;
  CondVar changed;
  bool closed QRM_GUARDED_BY(mutex) = false;
  bool watching QRM_GUARDED_BY(mutex) = false;  // the current watch has told something
  bool synced QRM_GUARDED_BY(mutex) = false;
  bool complained QRM_GUARDED_BY(mutex) = false;  // about a kubelet that is away
  milliseconds backoff QRM_GUARDED_BY(mutex){0};
  std::set<grpc::ClientContext*> in_flight QRM_GUARDED_BY(mutex);
};

/// One stream; deletes itself when gRPC is done with it.
class PodsApiClient::Watch final : public grpc::ClientReadReactor<pods::WatchPodsEvent> {
 public:
  explicit Watch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  void Begin() {
    if (!impl_->Enter(&context_)) {
      delete this;
      return;
    }
    impl_->cache.BeginSync();
    impl_->stub->async()->WatchPods(&context_, &request_, this);
    StartRead(&event_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      Take();
      StartRead(&event_);
    }
  }

  void OnDone(const grpc::Status& status) override {
    const bool lived = std::chrono::steady_clock::now() - begun_ >= kGoodLife;
    const std::shared_ptr<Impl> impl = impl_;
    impl->WatchEnded(status, synced_ && lived);
    impl->Leave(&context_);
    delete this;
  }

 private:
  void Take() {
    switch (event_.type()) {
      case pods::EVENT_TYPE_ADDED:
      case pods::EVENT_TYPE_MODIFIED:
        TakePod();
        break;
      case pods::EVENT_TYPE_DELETED:
        impl_->cache.Remove(UidOfPodMessage(event_.pod()));
        break;
      case pods::EVENT_TYPE_INITIAL_SYNC_COMPLETE:
        impl_->cache.EndSync();
        synced_ = true;
        break;
      default:
        Complain("event of unknown type " + std::to_string(event_.type()));
        break;
    }
    impl_->SetSynced(synced_);
  }

  void TakePod() {
    StatusOr<PodSpec> spec = ParsePodMessage(event_.pod());
    if (!spec.ok()) {
      Complain(MessageOf(spec.status()));
    } else if (!impl_->cache.Put(*std::move(spec))) {
      Complain("more pods than any node has");
    }
  }

  void Complain(const std::string& about) {
    if (!std::exchange(complained_, true)) {
      log::Warning("kubelet's Pods API tells what is left out", {{"what", about}});
    }
  }

  const std::shared_ptr<Impl> impl_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  grpc::ClientContext context_;
  const pods::WatchPodsRequest request_;
  pods::WatchPodsEvent event_;
  bool synced_ = false;
  bool complained_ = false;
};

void PodsApiClient::Impl::BeginWatch() {
  (new Watch(shared_from_this()))->Begin();
}

void PodsApiClient::Impl::SetSynced(bool now) {
  bool is_new = false;
  {
    const MutexLock lock(mutex);
    is_new = now && !synced;
    synced = now;
    watching = true;
    complained = complained && !now;
  }
  if (is_new) {
    cache.SetSettled();
    log::Info("following kubelet's Pods API", {{"socket", options.socket}, {"pods", cache.size()}});
  }
}

void PodsApiClient::Impl::WatchEnded(const grpc::Status& status, bool was_good) {
  milliseconds wait{0};
  bool complain = false;
  {
    const MutexLock lock(mutex);
    watching = false;
    synced = false;
    complain = !closed && !std::exchange(complained, true);
    backoff = was_good || backoff.count() == 0 ? options.first_backoff
                                               : std::min(2 * backoff, options.most_backoff);
    wait = backoff;
  }
  cache.SetSettled();
  if (complain) {
    log::Info("kubelet's Pods API is away", {{"socket", options.socket},
                                             {"error", status.error_message()},
                                             {"code", static_cast<int>(status.error_code())}});
  }
  boost::asio::post(io, [self = shared_from_this(), wait] { self->Retry(wait); });
}

void PodsApiClient::Impl::Retry(milliseconds after) {
  if (!retry_timer.has_value()) {
    return;  // closed
  }
  retry_timer->expires_after(after);
  retry_timer->async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && self->IsOpen()) {
      self->BeginWatch();
    }
  });
}

void PodsApiClient::Impl::Lookup(const std::string& uid) {
  struct Call {
    grpc::ClientContext context;
    pods::GetPodRequest request;
    pods::GetPodResponse response;
  };
  auto call = std::make_shared<Call>();
  call->request.set_poduid(uid);
  call->context.set_deadline(std::chrono::system_clock::now() + options.lookup_timeout);
  if (!Enter(&call->context)) {
    cache.EndLookup(uid);
    return;
  }
  stub->async()->GetPod(&call->context, &call->request, &call->response,
                        [self = shared_from_this(), call, uid](const grpc::Status& status) {
                          if (status.ok()) {
                            StatusOr<PodSpec> spec = ParsePodMessage(call->response.pod());
                            if (spec.ok() && (spec->uid == uid || spec->static_uid == uid)) {
                              self->cache.Put(*std::move(spec));
                            }
                          }
                          self->cache.EndLookup(uid);
                          self->Leave(&call->context);
                        });
}

bool PodsApiClient::Impl::IsOpen() {
  const MutexLock lock(mutex);
  return !closed;
}

bool PodsApiClient::Impl::Enter(grpc::ClientContext* context) {
  const MutexLock lock(mutex);
  if (!closed) {
    in_flight.insert(context);
  }
  return !closed;
}

void PodsApiClient::Impl::Leave(grpc::ClientContext* context) {
  const MutexLock lock(mutex);
  in_flight.erase(context);
  changed.NotifyAll();
}

void PodsApiClient::Impl::Close() {
  retry_timer.reset();  // the last owner may be a thread of gRPC, when the loop is gone
  const MutexLock lock(mutex);
  closed = true;
  for (grpc::ClientContext* context : in_flight) {
    context->TryCancel();
  }
  changed.Wait(mutex, [this]() QRM_REQUIRES(mutex) { return in_flight.empty(); });
}

PodsApiClient::PodsApiClient(boost::asio::io_context& io, PodsApiOptions options)
    : impl_(std::make_shared<Impl>(io, std::move(options))) {}

PodsApiClient::~PodsApiClient() {
  Stop();
}

void PodsApiClient::Start() {
  impl_->BeginWatch();
}

void PodsApiClient::Stop() {
  impl_->Close();
}

bool PodsApiClient::synced() const {
  const MutexLock lock(impl_->mutex);
  return impl_->synced;
}

PodSpecPtr PodsApiClient::Find(const std::string& uid) const {
  return impl_->cache.Find(uid);
}

void PodsApiClient::Prefetch(const std::string& uid) {
  bool watching = false;
  {
    const MutexLock lock(impl_->mutex);
    watching = impl_->watching;
  }
  if (watching && impl_->cache.BeginLookup(uid)) {
    impl_->Lookup(uid);
  }
}

void PodsApiClient::AfterLooking(const std::string& uid, Deadline deadline,
                                 std::function<void()> done) {
  impl_->cache.AfterLooking(uid, deadline, std::move(done));
}

}  // namespace qrm::manager
