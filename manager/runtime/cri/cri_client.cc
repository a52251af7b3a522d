// Calls CRI with gRPC's callback API and converts its messages.
#include "manager/runtime/cri/cri_client.h"

#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>

#include "api/base/clock.h"
#include "api/base/errorf.h"
#include "api/base/foreign_json.h"
#include "api/base/mutex.h"
#include "api/base/pieces.h"
#include "api/base/unix_socket.h"
#include "api/message_fields.h"
#include "api/pod_texts.h"
#include "api/proto/runtime/v1/api.grpc.pb.h"
#include "api/proto/runtime/v1/api.pb.h"
#include "api/rpc/channel.h"
#include "api/rpc/unary_call.h"
#include "manager/runtime/cri/cri_event_watch.h"
#include "manager/runtime/socket_cure.h"

namespace qrm::manager {
namespace {

namespace cri = ::runtime::v1;

RuntimePod FromWire(const cri::PodSandbox& wire) {
  return {.id = wire.id(),
          .uid = wire.metadata().uid(),
          .pod_namespace = wire.metadata().namespace_(),
          .name = wire.metadata().name(),
          .labels = PodsOwn(wire.labels()),
          .annotations = PodsOwn(wire.annotations()),
          .runtime_handler = wire.runtime_handler(),
          .ready = wire.state() == cri::SANDBOX_READY};
}

RuntimeContainerState StateOf(const cri::Container& wire) {
  switch (wire.state()) {
    case cri::CONTAINER_CREATED:
      return RuntimeContainerState::kCreated;
    case cri::CONTAINER_RUNNING:
      return RuntimeContainerState::kRunning;
    case cri::CONTAINER_EXITED:
      return RuntimeContainerState::kStopped;
    default:
      return RuntimeContainerState::kUnknown;
  }
}

RuntimeContainer FromWire(const cri::Container& wire) {
  return {.id = wire.id(),
          .pod_id = wire.pod_sandbox_id(),
          .name = wire.metadata().name(),
          .state = StateOf(wire),
          .attempt = wire.metadata().attempt(),
          .labels = Bounded(wire.labels()),
          .annotations = Bounded(wire.annotations())};
}

/// Reads one message of `field` at a time: parsed, a list takes several times its bytes.
template <typename Wire, typename Kept>
StatusOr<std::vector<Kept>> ReadList(const Pieces& response, int field) {
  std::vector<Kept> kept;
  bool parsed = true;
  const auto rest = TakeFields(Joined(response), [&](int number, std::string_view bytes) {
    Wire wire;
    if (parsed && number == field) {
      parsed = wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
      kept.push_back(FromWire(wire));
    }
    return true;
  });
  if (!rest.has_value() || !parsed) {
    return Errorf(StatusCode::kInternal, "its answer is not a list; check the runtime");
  }
  return kept;
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
  template <typename Request, typename Response>
  using Method = void (cri::RuntimeService::StubInterface::async_interface::*)(
      grpc::ClientContext*, const Request*, Response*, std::function<void(grpc::Status)>);
  template <typename Response>
  using Finish = std::function<void(StatusOr<Response>)>;

  Impl(boost::asio::io_context& loop, const CriOptions& opts)
      : io(loop),
        options(opts),
        channel(rpc::UnixChannel(opts.socket)),
        stub(cri::RuntimeService::NewStub(channel)) {}

  /// Calls `method`; `finish` runs on the I/O loop with the response, or an error that begins with
  /// `what`.
  template <typename Request, typename Response>
  void Start(Method<Request, Response> method, Request request, std::string what,
             Finish<Response> finish);
  /// Calls a method without parameters whose response has messages of type `Wire` in `field`;
  /// `finish` gets what FromWire keeps of them, as Start's.
  template <typename Wire, typename Kept>
  void StartList(const char* method, int field, std::string what,
                 std::function<void(StatusOr<std::vector<Kept>>)> finish);
  /// Sends the first update of `updates` for the container, and the next one after its answer.
  void SendUpdate(const std::string& container_id);
  /// `status` as a sentence; an OK status stays OK.
  Status Explain(const Status& status, const std::string& what) const;

  boost::asio::io_context& io;
  const CriOptions options;
  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<cri::RuntimeService::Stub> stub;
  const std::shared_ptr<rpc::CallsInFlight> in_flight = std::make_shared<rpc::CallsInFlight>();

  struct Update {
    cri::UpdateContainerResourcesRequest request;
    UpdateDone done;
  };
  Mutex mutex;
  /// By container; the first of each is under way.
  std::map<std::string, std::queue<Update>> updates QRM_GUARDED_BY(mutex);
};

Status CriClient::Impl::Explain(const Status& status, const std::string& what) const {
  if (status.ok()) {
    return status;
  }
  const bool unanswered =
      status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kDeadlineExceeded;
  return Errorf(
      status.code(), "cannot {}: {} (runtime at {}){}", what, MessageOf(status), options.socket,
      unanswered ? "; " + SocketCure(RuntimeSocket::kCri, ProbeSocket(options.socket)) : "");
}

template <typename Request, typename Response>
void CriClient::Impl::Start(Method<Request, Response> method, Request request, std::string what,
                            Finish<Response> finish) {
  // A cancelled call may still post to the loop until it has ended; `finish` must not run then.
  const auto take = [self = shared_from_this(), what = std::move(what),
                     finish = std::move(finish)](StatusOr<Response> response) {
    if (!response.ok()) {
      response = self->Explain(response.status(), what);
    }
    boost::asio::post(self->io, [self, finish, response = std::move(response)]() mutable {
      if (!self->in_flight->stopped()) {
        finish(std::move(response));
      }
    });
  };
  std::ignore = rpc::StartUnary({in_flight, DeadlineAfter(options.timeout)}, stub->async(), method,
                                std::move(request), take);
}

template <typename Wire, typename Kept>
void CriClient::Impl::StartList(const char* method, int field, std::string what,
                                std::function<void(StatusOr<std::vector<Kept>>)> finish) {
  auto take = [self = shared_from_this(), field, what = std::move(what),
               finish = std::move(finish)](const StatusOr<Pieces>& bytes) {
    StatusOr<std::vector<Kept>> kept = bytes.ok() ? ReadList<Wire, Kept>(*bytes, field)
                                                  : StatusOr<std::vector<Kept>>(bytes.status());
    if (!kept.ok()) {
      kept = self->Explain(kept.status(), what);
    }
    boost::asio::post(self->io, [self, finish, kept = std::move(kept)]() mutable {
      if (!self->in_flight->stopped()) {
        finish(std::move(kept));
      }
    });
  };
  std::ignore =
      rpc::StartRaw(in_flight, channel,
                    {.method = method, .request = {}, .deadline = DeadlineAfter(options.timeout)},
                    std::move(take));
}

void CriClient::Impl::SendUpdate(const std::string& container_id) {
  using Async = cri::RuntimeService::StubInterface::async_interface;
  cri::UpdateContainerResourcesRequest request;
  {
    const MutexLock lock(mutex);
    request = updates.at(container_id).front().request;
  }
  Start<cri::UpdateContainerResourcesRequest, cri::UpdateContainerResourcesResponse>(
      &Async::UpdateContainerResources, std::move(request), "update container " + container_id,
      [this, container_id](const StatusOr<cri::UpdateContainerResourcesResponse>& response) {
        UpdateDone done;
        bool has_next = false;
        {
          const MutexLock lock(mutex);
          const auto own = updates.find(container_id);
          done = std::move(own->second.front().done);
          own->second.pop();
          has_next = !own->second.empty();
          if (!has_next) {
            updates.erase(own);
          }
        }
        done(response.status());
        if (has_next) {
          SendUpdate(container_id);
        }
      });
}

CriClient::CriClient(boost::asio::io_context& io, const CriOptions& options)
    : impl_(std::make_shared<Impl>(io, options)) {}

CriClient::~CriClient() {
  impl_->in_flight->StopAndWait();
}

void CriClient::GetVersion(VersionDone done) {
  using Async = cri::RuntimeService::StubInterface::async_interface;
  impl_->Start<cri::VersionRequest, cri::VersionResponse>(
      &Async::Version, {}, "get the runtime's version",
      [done = std::move(done)](const StatusOr<cri::VersionResponse>& response) {
        if (!response.ok()) {
          return done(response.status());
        }
        done(RuntimeInfo{.name = response->runtime_name(), .version = response->runtime_version()});
      });
}

void CriClient::ListPods(PodsDone done) {
  impl_->StartList<cri::PodSandbox>("/runtime.v1.RuntimeService/ListPodSandbox",
                                    cri::ListPodSandboxResponse::kItemsFieldNumber, "list pods",
                                    std::move(done));
}

void CriClient::ListContainers(ContainersDone done) {
  impl_->StartList<cri::Container>("/runtime.v1.RuntimeService/ListContainers",
                                   cri::ListContainersResponse::kContainersFieldNumber,
                                   "list containers", std::move(done));
}

void CriClient::GetContainer(const RuntimeContainer& listed, ContainerDone done) {
  using Async = cri::RuntimeService::StubInterface::async_interface;
  cri::ContainerStatusRequest request;
  request.set_container_id(listed.id);
  request.set_verbose(true);
  impl_->Start<cri::ContainerStatusRequest, cri::ContainerStatusResponse>(
      &Async::ContainerStatus, std::move(request), "get the status of container " + listed.id,
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
  return StartEventWatch(impl_->io, impl_->channel, std::move(on_event), std::move(on_end),
                         [impl = impl_](const Status& status) {
                           return impl->Explain(status, "follow the runtime's events");
                         });
}

void CriClient::UpdateResources(const ContainerUpdate& update, UpdateDone done) {
  cri::UpdateContainerResourcesRequest request;
  request.set_container_id(update.container_id);
  *request.mutable_linux() = ToWire(update.resources);
  if (ChangesNothing(request.linux())) {
    boost::asio::post(impl_->io, [done = std::move(done)] { done(OkStatus()); });
    return;
  }
  bool is_first = false;
  {
    const MutexLock lock(impl_->mutex);
    auto& own = impl_->updates[update.container_id];
    is_first = own.empty();
    own.push({std::move(request), std::move(done)});
  }
  if (is_first) {
    impl_->SendUpdate(update.container_id);
  }
}

namespace {

using Json = nlohmann::json;
namespace cri = ::runtime::v1;

/// The value at `path` of `json`, if it exists and is an integer.
template <typename T>
std::optional<T> NumberAt(const Json& json, const char* path) {
  const Json::json_pointer pointer(path);
  if (!json.contains(pointer) || !json.at(pointer).is_number_integer()) {
    return std::nullopt;
  }
  return json.at(pointer).get<T>();
}

template <typename T>
std::optional<T> UnlessZero(int64_t value) {
  return value == 0 ? std::nullopt : std::optional<T>(static_cast<T>(value));
}

LinuxResources FromWire(const cri::LinuxContainerResources& wire) {
  return {.cpu_shares = UnlessZero<uint64_t>(wire.cpu_shares()),
          .cpu_quota_us = UnlessZero<int64_t>(wire.cpu_quota()),
          .cpu_period_us = UnlessZero<uint64_t>(wire.cpu_period()),
          .memory_limit_bytes = UnlessZero<int64_t>(wire.memory_limit_in_bytes()),
          .memory_swap_limit_bytes = UnlessZero<int64_t>(wire.memory_swap_limit_in_bytes()),
          .cpuset_cpus = wire.cpuset_cpus(),
          .cpuset_mems = wire.cpuset_mems(),
          .unified = {wire.unified().begin(), wire.unified().end()}};
}

/// Runtimes older than CRI's `resources` field show resources in the OCI spec only.
LinuxResources FromSpec(const Json& info) {
  return {
      .cpu_shares = NumberAt<uint64_t>(info, "/runtimeSpec/linux/resources/cpu/shares"),
      .cpu_quota_us = NumberAt<int64_t>(info, "/runtimeSpec/linux/resources/cpu/quota"),
      .cpu_period_us = NumberAt<uint64_t>(info, "/runtimeSpec/linux/resources/cpu/period"),
      .memory_limit_bytes = NumberAt<int64_t>(info, "/runtimeSpec/linux/resources/memory/limit")};
}

}  // namespace

void AddStatus(const cri::ContainerStatusResponse& response, RuntimeContainer& container) {
  const auto text = response.info().find("info");
  const Json info =
      text == response.info().end() ? Json() : ParseJson(text->second).value_or(Json());
  container.resources = response.status().has_resources()
                            ? FromWire(response.status().resources().linux())
                            : FromSpec(info);
  container.oom_score_adj = NumberAt<int64_t>(info, "/runtimeSpec/process/oomScoreAdj");
  container.pid = NumberAt<uint32_t>(info, "/pid").value_or(0);
  const Json::json_pointer cgroups_path("/runtimeSpec/linux/cgroupsPath");
  if (info.contains(cgroups_path) && info.at(cgroups_path).is_string()) {
    container.cgroups_path = info.at(cgroups_path).get<std::string>();
  }
}

}  // namespace qrm::manager
