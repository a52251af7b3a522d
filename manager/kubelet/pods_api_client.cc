// Keeps one watch at a time, whose events arrive in order on gRPC's threads.
#include "manager/kubelet/pods_api_client.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "api/base/log.h"
#include "api/base/mutex.h"
#include "api/proto/pods/v1alpha1/api.grpc.pb.h"
#include "api/rpc/channel.h"
#include "api/rpc/unary_call.h"
#include "manager/demand/pod_spec.h"

namespace qrm::manager {
namespace {

namespace pods = ::v1alpha1;
using std::chrono::milliseconds;

/// A watch that lasted this long counts as working.
constexpr std::chrono::seconds kGoodLife{1};

std::unique_ptr<pods::Pods::Stub> Connect(const PodsApiOptions& options) {
  return pods::Pods::NewStub(rpc::UnixChannel(
      options.socket,
      {.first_backoff = options.first_backoff, .most_backoff = options.first_backoff}));
}

}  // namespace

struct PodsApiClient::Impl : std::enable_shared_from_this<PodsApiClient::Impl> {
  Impl(boost::asio::io_context& loop, PodsApiOptions client_options)
      : io(loop), options(std::move(client_options)), stub(Connect(options)) {}

  void BeginWatch();
  void WatchEnded(const Status& status, bool was_good);
  void Retry(milliseconds after);
  void Lookup(const std::string& uid);
  void Close();
  void SetSynced(bool now);

  boost::asio::io_context& io;
  const PodsApiOptions options;
  const std::unique_ptr<pods::Pods::Stub> stub;
  const std::shared_ptr<rpc::CallsInFlight> in_flight = std::make_shared<rpc::CallsInFlight>();
  std::optional<boost::asio::steady_timer> retry_timer{io};  // on the I/O loop only; until Close
  SpecCache cache{options.on_gone};

  Mutex mutex;
  bool watching QRM_GUARDED_BY(mutex) = false;  // the current watch has had an event
  bool synced QRM_GUARDED_BY(mutex) = false;
  bool was_synced QRM_GUARDED_BY(mutex) = false;
  std::string problem QRM_GUARDED_BY(mutex);      // of the latest watch
  bool complained QRM_GUARDED_BY(mutex) = false;  // kubelet's absence has been logged
  milliseconds backoff QRM_GUARDED_BY(mutex){0};
};

/// One stream; deletes itself when gRPC has ended the call.
class PodsApiClient::Watch final : public grpc::ClientReadReactor<pods::WatchPodsEvent> {
 public:
  explicit Watch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  void Begin() {
    const auto id = impl_->in_flight->Enter([context = context_] { rpc::Cancel(*context); });
    if (!id.has_value()) {
      delete this;
      return;
    }
    id_ = *id;
    impl_->cache.BeginSync();
    impl_->stub->async()->WatchPods(context_.get(), &request_, this);
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
    impl_->WatchEnded(rpc::FromGrpc(status), synced_ && lived);
    const auto in_flight = impl_->in_flight;
    const auto id = id_;
    delete this;  // before Leave: a Stop that waits for it may then destroy the rest
    in_flight->Leave(id);
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
      Complain("more pods than a node can have");
    }
  }

  void Complain(const std::string& about) {
    if (!std::exchange(complained_, true)) {
      log::Warning("skipped an event of kubelet's Pods API", {{"what", about}});
    }
  }

  const std::shared_ptr<Impl> impl_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  const std::shared_ptr<grpc::ClientContext> context_ = std::make_shared<grpc::ClientContext>();
  rpc::CallsInFlight::Id id_ = 0;
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
    was_synced = was_synced || now;
    watching = true;
    complained = complained && !now;
  }
  if (is_new) {
    cache.SetSettled();
    log::Info("following kubelet's Pods API", {{"socket", options.socket}, {"pods", cache.size()}});
  }
}

void PodsApiClient::Impl::WatchEnded(const Status& status, bool was_good) {
  milliseconds wait{0};
  bool complain = false;
  {
    const MutexLock lock(mutex);
    watching = false;
    synced = false;
    problem = MessageOf(status);
    complain = !in_flight->stopped() && !std::exchange(complained, true);
    backoff = was_good || backoff.count() == 0 ? options.first_backoff
                                               : std::min(2 * backoff, options.most_backoff);
    wait = backoff;
  }
  cache.SetSettled();
  if (complain) {
    log::Info("kubelet's Pods API is not available", {{"socket", options.socket},
                                                      {"error", MessageOf(status)},
                                                      {"code", static_cast<int>(status.code())}});
  }
  boost::asio::post(io, [self = shared_from_this(), wait] { self->Retry(wait); });
}

void PodsApiClient::Impl::Retry(milliseconds after) {
  if (!retry_timer.has_value()) {
    return;  // closed
  }
  retry_timer->expires_after(after);
  retry_timer->async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && !self->in_flight->stopped()) {
      self->BeginWatch();
    }
  });
}

void PodsApiClient::Impl::Lookup(const std::string& uid) {
  using Async = pods::Pods::StubInterface::async_interface;
  pods::GetPodRequest request;
  request.set_poduid(uid);
  const bool sent = rpc::StartUnary(
      {in_flight, DeadlineAfter(options.lookup_timeout)}, stub->async(), &Async::GetPod,
      std::move(request),
      [self = shared_from_this(), uid](const StatusOr<pods::GetPodResponse>& response) {
        if (response.ok()) {
          StatusOr<PodSpec> spec = ParsePodMessage(response->pod());
          if (spec.ok() && (spec->uid == uid || spec->static_uid == uid)) {
            self->cache.Put(*std::move(spec));
          }
        }
        self->cache.EndLookup(uid);
      });
  if (!sent) {
    cache.EndLookup(uid);
  }
}

void PodsApiClient::Impl::Close() {
  retry_timer.reset();  // when the loop is gone, the last owner may be a thread of gRPC
  in_flight->StopAndWait();
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

std::string PodsApiClient::lost() const {
  const MutexLock lock(impl_->mutex);
  if (impl_->synced || !impl_->was_synced) {
    return {};
  }
  return fmt::format("kubelet's Pods API at {} does not answer, as it did before: {}",
                     impl_->options.socket,
                     impl_->problem.empty() ? "it closed the connection" : impl_->problem);
}

SpecCache& PodsApiClient::cache() const {
  return impl_->cache;
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

}  // namespace qrm::manager
