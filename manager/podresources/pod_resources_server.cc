// Serves both versions on one socket: counts calls, limits them, answers them.
#include "manager/podresources/pod_resources_server.h"

#include <utility>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <prometheus/counter.h>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/base/rejected.h"
#include "api/proto/podresources/v1/api.grpc.pb.h"
#include "api/proto/podresources/v1alpha1/api.grpc.pb.h"
#include "manager/observability/metrics.h"
#include "manager/podresources/allocatable_cache.h"
#include "manager/podresources/kubelet_client.h"
#include "manager/podresources/list_cache.h"
#include "manager/podresources/placement_asker.h"
#include "manager/podresources/pod_resources_answers.h"
#include "manager/rpc/counted_call.h"
#include "manager/rpc/rate_limiter.h"
#include "manager/rpc/unix_server.h"

namespace qrm::manager {
namespace {

// Kubelet's texts; clients match on them.
constexpr char kRateLimited[] = "rejected by rate limit";
constexpr char kAllocatableDisabled[] = "Pod Resources API GetAllocatableResources disabled";
constexpr char kGetDisabled[] = "PodResources API Get method disabled";
constexpr char kNotRestored[] =
    "cannot list pods: qrmd has not restored its state yet; try again in a second";
/// A caller that keeps calling at this many times its rate is disconnected, since rejecting its
/// calls costs too much.
constexpr int kFloodFactor = 10;
/// A request names a namespace and a pod.
constexpr int kMaxRequestBytes = 4 << 10;
/// New connections a second of one process; clients reuse theirs.
constexpr int kConnectionsPerSecond = 50;
constexpr char kNotAsked[] =
    "cannot list allocatable resources: the plugins have not answered yet; try again in a second";

grpc::Status FailedPrecondition(const char* text) {
  return {grpc::StatusCode::FAILED_PRECONDITION, text};
}

/// Plugins' reports go into `cache`; a plugin that is not running is asked again after `retry`.
PlacementAsker::Listener ToCache(const std::shared_ptr<ListCache>& cache,
                                 std::chrono::milliseconds retry) {
  return {
      .on_told = [cache](const PlacementAsker::StatePtr&, const checkpoint::PodRecord& pod,
                         const std::string& container,
                         const PlacedByResource& placed) { cache->Tell(pod, container, placed); },
      .on_away =
          [cache, retry](const std::string& resource) {
            cache->AskAgain(resource, DeadlineAfter(retry));
          }};
}

/// `bytes` without a copy: they live for as long as gRPC needs them.
grpc::ByteBuffer Refer(std::shared_ptr<const std::string> bytes) {
  using Holder = std::shared_ptr<const std::string>;
  auto* holder = new Holder(std::move(bytes));
  const std::string& text = **holder;
  const grpc::Slice slice(
      const_cast<char*>(text.data()), text.size(),
      [](void* held) { delete static_cast<Holder*>(held); }, holder);
  return {&slice, 1};
}

// If qrmd serves kubelet's own socket path, there is no kubelet to query.
std::string KubeletSocketOf(const PodResourcesOptions& options) {
  return options.kubelet_socket == options.socket ? std::string() : options.kubelet_socket;
}

}  // namespace

struct PodResourcesServer::Impl {
  Impl(Parts parts, PodResourcesOptions server_options)
      : snapshots(parts.snapshots),
        machine(parts.machine),
        metrics(parts.metrics),
        restored(std::move(parts.restored)),
        options(std::move(server_options)),
        annotations(options.annotations.begin(), options.annotations.end()),
        list(std::make_shared<ListCache>(machine, annotations)),
        asker(parts.plugins, metrics.placement_errors_total, options.plugin_timeout,
              ToCache(list, options.plugin_retry)),
        allocatable(parts.plugins, metrics.allocatable_errors_total, options.keep_answers),
        kubelet({.socket_path = KubeletSocketOf(options),
                 .timeout = options.kubelet_timeout,
                 .keep = options.keep_answers},
                metrics.kubelet_errors_total),
        limiter(options.qps, options.burst),
        rejections(kFloodFactor * options.qps, 2 * kFloodFactor * options.qps),
        v1(*this),
        v1alpha1(*this),
        server({.group = options.group,
                .max_request_bytes = kMaxRequestBytes,
                .connections = {.per_second = kConnectionsPerSecond}}) {}

  /// False when the caller is too fast; counts the call, and disconnects a caller that continues.
  bool IsInTime(const std::string& grpc_peer) {
    const PeerCredentials peer = server.FindPeer(grpc_peer).value_or(PeerCredentials{});
    const auto now = std::chrono::steady_clock::now();
    if (limiter.Allow(peer, now)) {
      return true;
    }
    metrics.rate_limited_total.Increment();
    if (!rejections.Allow(peer, now)) {
      Reject(Rejected::kGrpcCalls,
             fmt::format("cannot serve process {} of user {}: it keeps calling {} at more than {} "
                         "calls a second; check that process",
                         peer.pid, peer.uid, options.socket, options.qps));
      server.Disconnect(grpc_peer);
    }
    return false;
  }

  struct Answered {
    grpc::Status status;
    CountedAnswer answer;
  };

  /// Finishes the call with `answer(kubelet's view)`, unless the caller is too fast or the state is
  /// not restored, and counts it.
  template <typename Answer>
  grpc::ServerUnaryReactor* Serve(grpc::CallbackServerContext* context,
                                  PodResourcesVersionMetrics& version,
                                  const PodResourcesVersionMetrics::Method& method, Answer answer) {
    CountedCall& call = CountedCall::Begin(*context);
    grpc::ServerUnaryReactor* const reactor = call.reactor();
    if (!IsInTime(context->peer())) {
      call.Answer({grpc::StatusCode::RESOURCE_EXHAUSTED, kRateLimited}, {});
      return reactor;
    }
    version.requests_total.Increment();
    method.requests.Increment();
    if (!restored()) {
      method.errors.Increment();
      call.Answer(FailedPrecondition(kNotRestored), {});
      return reactor;
    }
    kubelet.Get([&call, &errors = method.errors,
                 answer = std::move(answer)](const KubeletClient::ViewPtr& view) {
      Answered answered = answer(view);
      if (!answered.status.ok()) {
        errors.Increment();
      }
      call.Answer(answered.status, std::move(answered.answer));
    });
    return reactor;
  }

  grpc::Status Get(const ::v1::GetPodResourcesRequest& request, const KubeletClient::ViewPtr& view,
                   ::v1::GetPodResourcesResponse& response) {
    if (!options.get_enabled) {
      return {grpc::StatusCode::UNKNOWN, kGetDisabled};
    }
    const auto state = snapshots.Load();
    AnswerList(state, view);  // asks plugins about new pods
    const auto* pod = state->FindPodByName(request.pod_namespace(), request.pod_name());
    const auto placements = pod == nullptr ? nullptr : list->PlacementsOf(*pod);
    auto answer = GetAnswer(*state, machine, *view, request, placements.get());
    if (!answer.ok()) {
      return {grpc::StatusCode::UNKNOWN, MessageOf(answer.status())};
    }
    response = *std::move(answer);
    KeepAnnotations(annotations, *response.mutable_pod_resources());
    return grpc::Status::OK;
  }

  std::shared_ptr<const std::string> AnswerList(const ListCache::StatePtr& state,
                                                const KubeletClient::ViewPtr& view) {
    ListCache::ToAsk to_ask;
    auto bytes = list->Answer(state, view, &to_ask);
    asker.Ask(state, to_ask.changed);
    if (!to_ask.resources.empty()) {
      asker.Ask(state, to_ask.others, to_ask.resources);
    }
    return bytes;
  }

  /// The same bytes while neither changes: clients that do not read their answers share them.
  std::shared_ptr<const std::string> AnswerV1Alpha1(const ListCache::StatePtr& state,
                                                    const KubeletClient::ViewPtr& view) {
    {
      const MutexLock lock(mutex);
      if (first_version.state == state && first_version.view == view) {
        return first_version.bytes;
      }
    }
    auto bytes = std::make_shared<const std::string>(ListBytesV1Alpha1(*state, *view));
    const MutexLock lock(mutex);
    first_version = {.state = state, .view = view, .bytes = bytes};
    return bytes;
  }

  void RefreshOld() {
    allocatable.RefreshIfOlder(options.allocatable_max_age, options.plugin_timeout);
  }

  grpc::Status GetAllocatable(const KubeletView& view,
                              ::v1::AllocatableResourcesResponse& response) {
    if (!options.allocatable_enabled) {
      return {grpc::StatusCode::UNKNOWN, kAllocatableDisabled};
    }
    RefreshOld();
    const auto known = allocatable.Load();
    if (known == nullptr) {
      return FailedPrecondition(kNotAsked);
    }
    response = AllocatableAnswer(*known, machine, view);
    return grpc::Status::OK;
  }

  template <typename Response>
  static Answered Send(const grpc::Status& status, const Response& response) {
    return {.status = status, .answer = MessageAnswer(response)};
  }
  static Answered Send(const std::shared_ptr<const std::string>& bytes,
                       grpc::ByteBuffer& response) {
    response = Refer(bytes);
    return {.status = grpc::Status::OK,
            .answer = {.at = bytes.get(), .bytes = bytes->size(), .owner = bytes}};
  }

  /// List answers with ready bytes; the other methods answer with messages.
  using V1Service = ::v1::PodResourcesLister::WithRawCallbackMethod_List<
      ::v1::PodResourcesLister::WithCallbackMethod_GetAllocatableResources<
          ::v1::PodResourcesLister::WithCallbackMethod_Get<::v1::PodResourcesLister::Service>>>;

  class V1 final : public V1Service {
   public:
    explicit V1(Impl& impl) : impl_(impl), metrics_(impl.metrics.v1) {}

    grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
                                   grpc::ByteBuffer* response) override {
      return impl_.Serve(context, metrics_, metrics_.list,
                         [this, response](const KubeletClient::ViewPtr& view) {
                           return Send(impl_.AnswerList(impl_.snapshots.Load(), view), *response);
                         });
    }

    grpc::ServerUnaryReactor* GetAllocatableResources(
        grpc::CallbackServerContext* context, const ::v1::AllocatableResourcesRequest*,
        ::v1::AllocatableResourcesResponse* response) override {
      return impl_.Serve(context, metrics_, metrics_.get_allocatable,
                         [this, response](const KubeletClient::ViewPtr& view) {
                           return Send(impl_.GetAllocatable(*view, *response), *response);
                         });
    }

    grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context,
                                  const ::v1::GetPodResourcesRequest* request,
                                  ::v1::GetPodResourcesResponse* response) override {
      return impl_.Serve(context, metrics_, metrics_.get,
                         [this, request, response](const KubeletClient::ViewPtr& view) {
                           return Send(impl_.Get(*request, view, *response), *response);
                         });
    }

   private:
    Impl& impl_;
    PodResourcesVersionMetrics& metrics_;
  };

  class V1Alpha1 final : public ::v1alpha1::PodResourcesLister::WithRawCallbackMethod_List<
                             ::v1alpha1::PodResourcesLister::Service> {
   public:
    explicit V1Alpha1(Impl& impl) : impl_(impl), metrics_(impl.metrics.v1alpha1) {}

    grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
                                   grpc::ByteBuffer* response) override {
      return impl_.Serve(
          context, metrics_, metrics_.list, [this, response](const KubeletClient::ViewPtr& view) {
            return Send(impl_.AnswerV1Alpha1(impl_.snapshots.Load(), view), *response);
          });
    }

   private:
    Impl& impl_;
    PodResourcesVersionMetrics& metrics_;
  };

  const Snapshots& snapshots;
  const Machine& machine;
  PodResourcesMetrics& metrics;
  const std::function<bool()> restored;
  const PodResourcesOptions options;
  const std::set<std::string> annotations;  // of pods, in answers
  const std::shared_ptr<ListCache> list;    // outlives the questions under way
  PlacementAsker asker;
  AllocatableCache allocatable;
  KubeletClient kubelet;
  struct FirstVersion {
    ListCache::StatePtr state;
    KubeletClient::ViewPtr view;
    std::shared_ptr<const std::string> bytes;
  };
  Mutex mutex;
  FirstVersion first_version QRM_GUARDED_BY(mutex);  // the latest answer of v1alpha1
  RateLimiter<PeerCredentials> limiter;
  RateLimiter<PeerCredentials> rejections;
  V1 v1;
  V1Alpha1 v1alpha1;
  UnixServer server;
};

PodResourcesServer::PodResourcesServer(Parts parts, PodResourcesOptions options)
    : impl_(std::make_unique<Impl>(std::move(parts), std::move(options))) {}

PodResourcesServer::~PodResourcesServer() = default;

Status PodResourcesServer::Start() {
  RefreshAllocatable();
  return impl_->server.Start(impl_->options.socket, {&impl_->v1, &impl_->v1alpha1});
}

void PodResourcesServer::Stop() {
  impl_->server.Stop();
}

std::shared_ptr<const AllocatableByResource> PodResourcesServer::Allocatable() {
  impl_->RefreshOld();
  return impl_->allocatable.LoadLatest();
}

std::map<std::string, double> PodResourcesServer::AnswerAges() const {
  std::map<std::string, double> ages = impl_->allocatable.Ages();
  if (const std::optional<double> age = impl_->kubelet.Age(); age.has_value()) {
    ages.emplace("kubelet", *age);
  }
  return ages;
}

void PodResourcesServer::OnPluginChanged(const std::string& resource) {
  impl_->asker.failures().Forget(resource);
  impl_->list->AskAgain(resource, std::chrono::steady_clock::now());
  RefreshAllocatable();
}

std::vector<std::string> PodResourcesServer::Problems() const {
  std::vector<std::string> problems = impl_->asker.failures().Sentences();
  for (std::string& problem : impl_->allocatable.Problems()) {
    problems.push_back(std::move(problem));
  }
  return problems;
}

void PodResourcesServer::RefreshAllocatable() {
  impl_->allocatable.Refresh(impl_->options.plugin_timeout);
}

}  // namespace qrm::manager
