// Calls CRI with gRPC's callback API and converts its messages.
#include "manager/runtime/cri/cri_client.h"

#include <algorithm>
#include <set>
#include <utility>

#include <boost/asio/post.hpp>
#include <grpcpp/grpcpp.h>

#include "api/base/mutex.h"
#include "api/grpc_lifetime.h"
#include "api/proto/runtime/v1/api.grpc.pb.h"
#include "manager/runtime/cri/cri_container.h"
#include "manager/runtime/cri/cri_event_watch.h"
#include "manager/runtime/pod_labels.h"

namespace qrm::manager {
namespace {

namespace cri = ::runtime::v1;

/// kubelet's own limit: lists of nodes with many containers exceed gRPC's default of 4 MiB.
constexpr int kMaxMessageBytes = 16 << 20;
constexpr int kMaxReconnectMillis = 2000;

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& socket) {
  KeepGrpcCallbackThreads();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMillis);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

StringMap ToStringMap(const google::protobuf::Map<std::string, std::string>& map) {
  return {map.begin(), map.end()};
}

RuntimePod FromWire(const cri::PodSandbox& wire) {
  return {.id = wire.id(),
          .uid = wire.metadata().uid(),
          .pod_namespace = wire.metadata().namespace_(),
          .name = wire.metadata().name(),
          .labels = PodsOwn(wire.labels()),
          .annotations = PodsOwn(wire.annotations()),
          .runtime_handler = wire.runtime_handler()};
}

RuntimeContainer FromWire(const cri::Container& wire) {
  return {.id = wire.id(),
          .pod_id = wire.pod_sandbox_id(),
          .name = wire.metadata().name(),
          .state = wire.state() == cri::CONTAINER_RUNNING ? RuntimeContainerState::kRunning
                                                          : RuntimeContainerState::kCreated,
          .labels = ToStringMap(wire.labels()),
          .annotations = ToStringMap(wire.annotations())};
}

bool IsLive(const cri::Container& container) {
  return container.state() == cri::CONTAINER_CREATED || container.state() == cri::CONTAINER_RUNNING;
}

cri::LinuxContainerResources ToWire(const LinuxResources& resources) {
  cri::LinuxContainerResources wire;
  wire.set_cpu_shares(static_cast<int64_t>(resources.cpu_shares.value_or(0)));
  wire.set_cpu_quota(resources.cpu_quota_us.value_or(0));
  wire.set_cpu_period(static_cast<int64_t>(resources.cpu_period_us.value_or(0)));
  wire.set_memory_limit_in_bytes(resources.memory_limit_bytes.value_or(0));
  wire.set_memory_swap_limit_in_bytes(resources.memory_swap_limit_bytes.value_or(0));
  wire.set_cpuset_cpus(resources.cpuset_cpus);
  wire.set_cpuset_mems(resources.cpuset_mems);
  wire.mutable_unified()->insert(resources.unified.begin(), resources.unified.end());
  return wire;
}

bool ChangesNothing(const cri::LinuxContainerResources& wire) {
  return wire.ByteSizeLong() == 0;
}

}  // namespace

struct CriClient::Impl : std::enable_shared_from_this<CriClient::Impl> {
  /// A call in flight: owns all that gRPC works on.
  template <typename Request, typename Response>
  struct Call {
    grpc::ClientContext context;
    Request request;
    Response response;
  };
  template <typename Request, typename Response>
  using Method = void (cri::RuntimeService::StubInterface::async_interface::*)(
      grpc::ClientContext*, const Request*, Response*, std::function<void(grpc::Status)>);
  template <typename Response>
  using Finish = std::function<void(StatusOr<Response>)>;

  Impl(boost::asio::io_context& loop, const CriOptions& opts)
      : io(loop), options(opts), stub(cri::RuntimeService::NewStub(MakeChannel(opts.socket))) {}

  /// Calls `method`; `finish` runs on the I/O loop with the response, or an error that begins with
  /// `what`.
  template <typename Request, typename Response>
  void Start(Method<Request, Response> method, Request request, std::string what,
             Finish<Response> finish);
  Status ToStatus(const grpc::Status& status, const std::string& what) const;
  bool Enter(grpc::ClientContext* context);
  void Leave(grpc::ClientContext* context);
  void Close();

  boost::asio::io_context& io;
  const CriOptions options;
  const std::unique_ptr<cri::RuntimeService::Stub> stub;

  Mutex mutex;
  CondVar changed;
  bool closed QRM_GUARDED_BY(mutex) = false;
  std::set<grpc::ClientContext*> in_flight QRM_GUARDED_BY(mutex);
};

Status CriClient::Impl::ToStatus(const grpc::Status& status, const std::string& what) const {
  return Errorf(static_cast<StatusCode>(status.error_code()), "cannot {}: {} (runtime at {})", what,
                status.error_message(), options.socket);
}

bool CriClient::Impl::Enter(grpc::ClientContext* context) {
  const MutexLock lock(mutex);
  if (!closed) {
    in_flight.insert(context);
  }
  return !closed;
}

void CriClient::Impl::Leave(grpc::ClientContext* context) {
  const MutexLock lock(mutex);
  in_flight.erase(context);
  changed.NotifyAll();
}

void CriClient::Impl::Close() {
  const MutexLock lock(mutex);
  closed = true;
  for (grpc::ClientContext* context : in_flight) {
    context->TryCancel();
  }
  // Cancelled calls end at once; until they have, they may still post to the loop.
  changed.Wait(mutex, [this]() QRM_REQUIRES(mutex) { return in_flight.empty(); });
}

template <typename Request, typename Response>
void CriClient::Impl::Start(Method<Request, Response> method, Request request, std::string what,
                            Finish<Response> finish) {
  auto call = std::make_shared<Call<Request, Response>>();
  call->request = std::move(request);
  call->context.set_deadline(std::chrono::system_clock::now() + options.timeout);
  if (!Enter(&call->context)) {
    return;
  }
  (stub->async()->*method)(
      &call->context, &call->request, &call->response,
      [self = shared_from_this(), call, what = std::move(what),
       finish = std::move(finish)](const grpc::Status& status) {
        StatusOr<Response> result = status.ok() ? StatusOr<Response>(std::move(call->response))
                                                : StatusOr<Response>(self->ToStatus(status, what));
        boost::asio::post(self->io, [self, finish, result = std::move(result)]() mutable {
          bool wanted = false;
          {
            const MutexLock lock(self->mutex);
            wanted = !self->closed;
          }
          if (wanted) {
            finish(std::move(result));
          }
        });
        self->Leave(&call->context);
      });
}

CriClient::CriClient(boost::asio::io_context& io, const CriOptions& options)
    : impl_(std::make_shared<Impl>(io, options)) {}

CriClient::~CriClient() {
  impl_->Close();
}

void CriClient::GetVersion(VersionDone done) {
  using Async = cri::RuntimeService::StubInterface::async_interface;
  impl_->Start<cri::VersionRequest, cri::VersionResponse>(
      &Async::Version, {}, "ask the runtime's version",
      [done = std::move(done)](const StatusOr<cri::VersionResponse>& response) {
        if (!response.ok()) {
          return done(response.status());
        }
        done(RuntimeInfo{.name = response->runtime_name(), .version = response->runtime_version()});
      });
}

void CriClient::ListPods(PodsDone done) {
  using Async = cri::RuntimeService::StubInterface::async_interface;
  impl_->Start<cri::ListPodSandboxRequest, cri::ListPodSandboxResponse>(
      &Async::ListPodSandbox, {}, "list pods",
      [done = std::move(done)](const StatusOr<cri::ListPodSandboxResponse>& response) {
        if (!response.ok()) {
          return done(response.status());
        }
        std::vector<RuntimePod> pods;
        for (const cri::PodSandbox& pod : response->items()) {
          pods.push_back(FromWire(pod));
        }
        done(std::move(pods));
      });
}

void CriClient::ListContainers(ContainersDone done) {
  using Async = cri::RuntimeService::StubInterface::async_interface;
  impl_->Start<cri::ListContainersRequest, cri::ListContainersResponse>(
      &Async::ListContainers, {}, "list containers",
      [done = std::move(done)](const StatusOr<cri::ListContainersResponse>& response) {
        if (!response.ok()) {
          return done(response.status());
        }
        std::vector<RuntimeContainer> containers;
        for (const cri::Container& container : response->containers()) {
          if (IsLive(container)) {
            containers.push_back(FromWire(container));
          }
        }
        done(std::move(containers));
      });
}

void CriClient::GetContainer(const RuntimeContainer& listed, ContainerDone done) {
  using Async = cri::RuntimeService::StubInterface::async_interface;
  cri::ContainerStatusRequest request;
  request.set_container_id(listed.id);
  request.set_verbose(true);
  impl_->Start<cri::ContainerStatusRequest, cri::ContainerStatusResponse>(
      &Async::ContainerStatus, std::move(request), "look at container " + listed.id,
      [listed, done = std::move(done)](const StatusOr<cri::ContainerStatusResponse>& response) {
        if (!response.ok()) {
          return done(response.status());
        }
        RuntimeContainer container = listed;
        AddStatus(*response, container);
        done(std::move(container));
      });
}

std::unique_ptr<EventWatch> CriClient::WatchEvents(std::function<void()> on_event,
                                                   UpdateDone on_end) {
  return StartEventWatch(impl_->io, *impl_->stub, std::move(on_event), std::move(on_end),
                         [impl = impl_](const grpc::Status& status) {
                           return impl->ToStatus(status, "follow the runtime's events");
                         });
}

void CriClient::UpdateResources(const ContainerUpdate& update, UpdateDone done) {
  using Async = cri::RuntimeService::StubInterface::async_interface;
  cri::UpdateContainerResourcesRequest request;
  request.set_container_id(update.container_id);
  *request.mutable_linux() = ToWire(update.resources);
  if (ChangesNothing(request.linux())) {
    boost::asio::post(impl_->io, [done = std::move(done)] { done(OkStatus()); });
    return;
  }
  impl_->Start<cri::UpdateContainerResourcesRequest, cri::UpdateContainerResourcesResponse>(
      &Async::UpdateContainerResources, std::move(request),
      fmt::format("update container {}", update.container_id),
      [done = std::move(done)](const StatusOr<cri::UpdateContainerResourcesResponse>& response) {
        done(response.status());
      });
}

}  // namespace qrm::manager
