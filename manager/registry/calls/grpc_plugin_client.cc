// The calls over gRPC's callback API.
#include "manager/registry/calls/grpc_plugin_client.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <optional>
#include <utility>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/slice.h>

#include "api/grpc_lifetime.h"
#include "api/proto/pluginregistration/v1/api.grpc.pb.h"
#include "api/proto/qrm/v1/control.grpc.pb.h"
#include "api/proto/resourceplugin/v1alpha1/api.grpc.pb.h"
#include "api/wire.h"
#include "manager/registry/calls/answer_check.h"

namespace qrm::manager {
namespace {

namespace pb = ::resourceplugin::v1alpha1;

/// One call: gRPC reads and writes these until its callback has run.
template <typename Request, typename Response>
struct Call {
  grpc::ClientContext context;
  Request request;
  Response response;
};

/// A call of one of the generated stubs. (The stubs overload each with a reactor.)
template <typename Async, typename Request, typename Response>
using Method = void (Async::*)(grpc::ClientContext*, const Request*, Response*,
                               std::function<void(grpc::Status)>);

using PluginCalls = pb::ResourcePlugin::StubInterface::async_interface;
using ExtensionCalls = qrm::v1::PluginExtensions::StubInterface::async_interface;
using RegistrationCalls = pluginregistration::Registration::StubInterface::async_interface;

template <typename Request, typename Response>
// NOLINTNEXTLINE(performance-unnecessary-value-param): it is moved, but for what is only copied
std::shared_ptr<Call<Request, Response>> NewCall(Deadline deadline, Request request = {}) {
  auto call = std::make_shared<Call<Request, Response>>();
  const auto left = deadline - std::chrono::steady_clock::now();
  call->context.set_deadline(std::chrono::system_clock::now() + left);
  call->request = std::move(request);
  return call;
}

grpc::ChannelArguments ArgumentsForPlugins() {
  KeepGrpcCallbackThreads();
  grpc::ChannelArguments arguments;
  // A plugin that restarts must be back within two seconds, and its next channel must not inherit
  // the old one's backoff.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  // Despite its name, how long a plugin has to greet us; a refused connection fails at once.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Without traffic the connection stays: it is how we notice that the plugin died.
  arguments.SetInt(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, INT_MAX);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(GrpcPluginClient::kMaxAnswerBytes);
  return arguments;
}

bool StartsWith(const std::string& text, std::string_view prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

/// gRPC reports these with codes that a plugin may use for its own errors; only the text tells.
bool IsUnreadableAnswer(const grpc::Status& status) {
  return StartsWith(status.error_message(), "Received message larger than max") ||
         (status.error_code() == grpc::StatusCode::INTERNAL && status.error_message().empty());
}

Blame BlameFor(const grpc::Status& status, grpc::Channel& channel) {
  if (IsUnreadableAnswer(status)) {
    return Blame::kProtocol;
  }
  switch (status.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Blame::kTimeout;
    case grpc::StatusCode::CANCELLED:
      return Blame::kStopping;
    case grpc::StatusCode::UNAVAILABLE:  // a plugin's own word when it is connected
      return channel.GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY ? Blame::kRefusal
                                                                              : Blame::kConnection;
    default:
      return Blame::kRefusal;
  }
}

Status CauseOf(const grpc::Status& status, Blame blame) {
  const std::string text = OneLine(status.error_message());
  switch (blame) {
    case Blame::kProtocol:
      return Errorf(StatusCode::kInvalidArgument, "its answer cannot be read ({})",
                    text.empty() ? "not the message of this call" : text);
    case Blame::kTimeout:
      return {StatusCode::kDeadlineExceeded, "no answer before the deadline"};
    case Blame::kConnection:
      return Errorf(StatusCode::kUnavailable, "nobody answers on its socket ({})", text);
    case Blame::kStopping:
      return {StatusCode::kCancelled, "the call was cancelled"};
    case Blame::kRefusal:
    case Blame::kNobody:
      break;
  }
  const auto code = static_cast<StatusCode>(status.error_code());
  return {code, text.empty() ? fmt::format("it answered with code {} and no message",
                                           static_cast<int>(status.error_code()))
                             : text};
}

template <typename Response>
StatusOr<std::vector<PoolInfo>> PoolsFrom(const Response& response) {
  std::vector<PoolInfo> pools;
  for (const qrm::v1::Pool& message : response.pools()) {
    if (const Status read = CpuSet::Parse(message.cpus()).status(); !read.ok()) {
      return Annotate(read, "pool " + message.name());
    }
    pools.push_back({.name = message.name(),
                     .cpus = message.cpus(),
                     .roles = {message.roles().begin(), message.roles().end()},
                     .containers = message.containers()});
  }
  return pools;
}

int CountHints(const pb::ResourceHintsResponse& response) {
  int count = 0;
  for (const pb::HintsEntry& entry : response.resource_hints()) {
    count += entry.value().hints_size();
  }
  return count;
}

StatusOr<AllocatableByResource> AllocatableFrom(
    const pb::GetTopologyAwareAllocatableResourcesResponse& response) {
  AllocatableByResource resources;
  for (const auto& [name, message] : response.allocatable_resources()) {
    StatusOr<AllocatableResource> resource = wire::FromWire(message);
    if (!resource.ok()) {
      return Annotate(resource.status(), "resource " + name);
    }
    resources.emplace(name, *std::move(resource));
  }
  return resources;
}

/// Its answer grows with the node and is mostly the same: it is taken as bytes.
constexpr char kGetResourcesAllocation[] =
    "/resourceplugin.v1alpha1.ResourcePlugin/GetResourcesAllocation";
using RawCall = Call<grpc::ByteBuffer, grpc::ByteBuffer>;

StatusOr<HeldAllocations> ReadHeld(HeldAllocationsReader& reader,
                                   const grpc::ByteBuffer& response) {
  std::vector<grpc::Slice> slices;
  if (!response.Dump(&slices).ok()) {
    return Errorf(StatusCode::kInvalidArgument, "its answer cannot be read (it came in pieces)");
  }
  std::vector<std::string_view> pieces;
  pieces.reserve(slices.size());
  for (const grpc::Slice& slice : slices) {
    pieces.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return reader.Read(pieces);
}

using Quantities = google::protobuf::RepeatedPtrField<pb::TopologyAwareQuantity>;

StatusOr<std::vector<PlacedQuantity>> QuantitiesFrom(const Quantities& messages) {
  std::vector<PlacedQuantity> quantities;
  for (const pb::TopologyAwareQuantity& message : messages) {
    if (!std::isfinite(message.resource_value()) || message.resource_value() < 0) {
      return Errorf(StatusCode::kInvalidArgument, "a quantity on node {} is {}", message.node(),
                    message.resource_value());
    }
    quantities.push_back(
        {.amount = message.resource_value(),
         .node = message.node(),
         .level = message.topology_level() == pb::SOCKET ? PlacedQuantity::Level::kSocket
                                                         : PlacedQuantity::Level::kNuma,
         .name = message.name(),
         .type = message.type(),
         .annotations = {message.annotations().begin(), message.annotations().end()}});
  }
  return quantities;
}

StatusOr<PlacedByResource> PlacementFrom(const pb::GetTopologyAwareResourcesResponse& response) {
  PlacedByResource placed;
  for (const auto& [name, message] :
       response.container_topology_aware_resources().allocated_resources()) {
    PlacedResource resource{.is_node_resource = message.is_node_resource(),
                            .is_scalar_resource = message.is_scalar_resource(),
                            .amount = message.aggregated_quantity(),
                            .admitted_amount = message.original_aggregated_quantity()};
    QRM_ASSIGN_OR_RETURN(resource.by_place, QuantitiesFrom(message.topology_aware_quantity_list()));
    QRM_ASSIGN_OR_RETURN(resource.admitted_by_place,
                         QuantitiesFrom(message.original_topology_aware_quantity_list()));
    placed.emplace(name, std::move(resource));
  }
  return placed;
}

template <typename Response>
StatusOr<Acknowledged> Acknowledge(const Response& /*response*/) {
  return Acknowledged{};
}

/// What came of a call that ended with `status`.
template <typename T, typename Response, typename Read>
CallResult<T> ResultOf(const grpc::Status& status, grpc::Channel& channel, const Response& response,
                       const Read& read) {
  if (!status.ok()) {
    const Blame blame = BlameFor(status, channel);
    return {CauseOf(status, blame), blame};
  }
  StatusOr<T> value = read(response);
  const Blame blame = value.ok() ? Blame::kNobody : Blame::kProtocol;
  return {std::move(value), blame};
}

}  // namespace

struct GrpcPluginClient::Impl {
  Impl(std::shared_ptr<grpc::Channel> connection, NumaMask nodes,
       std::shared_ptr<CallsInFlight> calls_in_flight)
      : channel(std::move(connection)),
        machine_nodes(std::move(nodes)),
        calls(std::move(calls_in_flight)),
        plugin(channel),
        raw(channel),
        extensions(channel),
        registration(channel) {}

  /// Sends `call` by `method` of `stub`; `read` makes the value of a response, or says what is
  /// wrong with it.
  template <typename T, typename Stub, typename Async, typename Request, typename Response,
            typename Read>
  void Start(Stub* stub, Method<Async, Request, Response> method,
             std::shared_ptr<Call<Request, Response>> call, Read read, Done<T> done) {
    const auto send = [&](Call<Request, Response>& started, auto ended) {
      (stub->*method)(&started.context, &started.request, &started.response, std::move(ended));
    };
    StartBy(send, std::move(call), std::move(read), std::move(done));
  }
  /// The same for a call that `send` sends.
  template <typename T, typename Send, typename Request, typename Response, typename Read>
  void StartBy(const Send& send, std::shared_ptr<Call<Request, Response>> call, Read read,
               Done<T> done);

  const std::shared_ptr<grpc::Channel> channel;
  const NumaMask machine_nodes;
  const std::shared_ptr<CallsInFlight> calls;
  const std::shared_ptr<HeldAllocationsReader> held = std::make_shared<HeldAllocationsReader>();
  pb::ResourcePlugin::Stub plugin;
  grpc::GenericStub raw;  ///< for answers that are seldom parsed
  qrm::v1::PluginExtensions::Stub extensions;
  pluginregistration::Registration::Stub registration;
};

template <typename T, typename Send, typename Request, typename Response, typename Read>
void GrpcPluginClient::Impl::StartBy(const Send& send,
                                     std::shared_ptr<Call<Request, Response>> call, Read read,
                                     Done<T> done) {
  const auto id = calls->Enter([call] { call->context.TryCancel(); });
  if (!id.has_value()) {
    done({Status(StatusCode::kCancelled, "qrmd is stopping"), Blame::kStopping});
    return;
  }
  Call<Request, Response>& started = *call;
  // All that the callback holds goes before `calls` hears of its end: who stops may then go too.
  auto ended = [calls = calls, id = *id, channel = channel, call = std::move(call),
                read = std::move(read),
                done = std::move(done)](const grpc::Status& status) mutable {
    {
      const auto last_call = std::move(call);
      const auto last_channel = std::move(channel);
      const auto last_done = std::move(done);
      last_done(ResultOf<T>(status, *last_channel, last_call->response, read));
    }
    calls->Leave(id);
  };
  send(started, std::move(ended));
}

GrpcPluginClient::GrpcPluginClient(const std::string& socket, NumaMask machine_nodes,
                                   std::shared_ptr<CallsInFlight> calls)
    : impl_(std::make_unique<Impl>(
          grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(),
                                    ArgumentsForPlugins()),
          std::move(machine_nodes), std::move(calls))) {}

GrpcPluginClient::~GrpcPluginClient() = default;

std::shared_ptr<grpc::Channel> GrpcPluginClient::channel() const {
  return impl_->channel;
}

void GrpcPluginClient::GetOptions(Deadline deadline, Done<PluginOptions> done) {
  const auto read = [](const pb::ResourcePluginOptions& response) -> StatusOr<PluginOptions> {
    return wire::FromWire(response);
  };
  impl_->Start(impl_->plugin.async(), &PluginCalls::GetResourcePluginOptions,
               NewCall<pb::Empty, pb::ResourcePluginOptions>(deadline), read, std::move(done));
}

void GrpcPluginClient::GetTopologyHints(const ContainerRequest& request, Deadline deadline,
                                        Done<HintList> done) {
  const auto read = [request, nodes = impl_->machine_nodes](
                        const pb::ResourceHintsResponse& response) -> StatusOr<HintList> {
    QRM_RETURN_IF_ERROR(CheckHintCount(CountHints(response)));
    QRM_ASSIGN_OR_RETURN(HintList hints, wire::HintsFrom(response, request));
    QRM_RETURN_IF_ERROR(CheckHints(hints.hints(), nodes));
    return hints;
  };
  impl_->Start(
      impl_->plugin.async(), &PluginCalls::GetTopologyHints,
      NewCall<pb::ResourceRequest, pb::ResourceHintsResponse>(deadline, wire::ToWire(request)),
      read, std::move(done));
}

void GrpcPluginClient::Allocate(const ContainerRequest& request, Deadline deadline,
                                Done<AllocationByResource> done) {
  const auto read =
      [request, nodes = impl_->machine_nodes](
          const pb::ResourceAllocationResponse& response) -> StatusOr<AllocationByResource> {
    QRM_ASSIGN_OR_RETURN(AllocationByResource allocations,
                         wire::AllocationsFrom(response, request));
    QRM_RETURN_IF_ERROR(CheckAllocations(allocations, nodes));
    return allocations;
  };
  impl_->Start(
      impl_->plugin.async(), &PluginCalls::Allocate,
      NewCall<pb::ResourceRequest, pb::ResourceAllocationResponse>(deadline, wire::ToWire(request)),
      read, std::move(done));
}

void GrpcPluginClient::RemovePod(const std::string& pod_uid, Deadline deadline,
                                 Done<Acknowledged> done) {
  pb::RemovePodRequest request;
  request.set_pod_uid(pod_uid);
  impl_->Start(impl_->plugin.async(), &PluginCalls::RemovePod,
               NewCall<pb::RemovePodRequest, pb::RemovePodResponse>(deadline, std::move(request)),
               Acknowledge<pb::RemovePodResponse>, std::move(done));
}

void GrpcPluginClient::GetResourcesAllocation(Deadline deadline, Done<HeldAllocations> done) {
  const auto send = [this](RawCall& call, auto ended) {
    impl_->raw.UnaryCall(&call.context, kGetResourcesAllocation, grpc::StubOptions(), &call.request,
                         &call.response, std::move(ended));
  };
  const auto read = [reader = impl_->held](const grpc::ByteBuffer& response) {
    return ReadHeld(*reader, response);
  };
  const grpc::Slice no_fields;  // a buffer without any slice cannot be sent
  impl_->StartBy(send, NewCall<grpc::ByteBuffer, grpc::ByteBuffer>(deadline, {&no_fields, 1}), read,
                 std::move(done));
}

void GrpcPluginClient::GetAllocatable(Deadline deadline, Done<AllocatableByResource> done) {
  using Request = pb::GetTopologyAwareAllocatableResourcesRequest;
  using Response = pb::GetTopologyAwareAllocatableResourcesResponse;
  impl_->Start(impl_->plugin.async(), &PluginCalls::GetTopologyAwareAllocatableResources,
               NewCall<Request, Response>(deadline), AllocatableFrom, std::move(done));
}

void GrpcPluginClient::GetPlacement(const ContainerKey& key, Deadline deadline,
                                    Done<PlacedByResource> done) {
  using Request = pb::GetTopologyAwareResourcesRequest;
  using Response = pb::GetTopologyAwareResourcesResponse;
  Request request;
  request.set_pod_uid(key.pod_uid);
  request.set_container_name(key.container);
  impl_->Start(impl_->plugin.async(), &PluginCalls::GetTopologyAwareResources,
               NewCall<Request, Response>(deadline, std::move(request)), PlacementFrom,
               std::move(done));
}

void GrpcPluginClient::ReleaseContainer(const ContainerKey& key, Deadline deadline,
                                        Done<Acknowledged> done) {
  using Request = qrm::v1::ReleaseContainerRequest;
  using Response = qrm::v1::ReleaseContainerResponse;
  Request request;
  request.set_pod_uid(key.pod_uid);
  request.set_container_name(key.container);
  impl_->Start(impl_->extensions.async(), &ExtensionCalls::ReleaseContainer,
               NewCall<Request, Response>(deadline, std::move(request)), Acknowledge<Response>,
               std::move(done));
}

void GrpcPluginClient::GetPools(const std::string& resource, Deadline deadline,
                                Done<std::vector<PoolInfo>> done) {
  qrm::v1::GetPoolsRequest request;
  request.set_resource_name(resource);
  impl_->Start(
      impl_->extensions.async(), &ExtensionCalls::GetPools,
      NewCall<qrm::v1::GetPoolsRequest, qrm::v1::GetPoolsResponse>(deadline, std::move(request)),
      PoolsFrom<qrm::v1::GetPoolsResponse>, std::move(done));
}

void GrpcPluginClient::SetPools(const std::string& resource, const StringMap& cpus_by_pool,
                                Deadline deadline, Done<std::vector<PoolInfo>> done) {
  qrm::v1::SetPoolsRequest request;
  request.set_resource_name(resource);
  request.mutable_cpus_by_pool()->insert(cpus_by_pool.begin(), cpus_by_pool.end());
  impl_->Start(
      impl_->extensions.async(), &ExtensionCalls::SetPools,
      NewCall<qrm::v1::SetPoolsRequest, qrm::v1::SetPoolsResponse>(deadline, std::move(request)),
      PoolsFrom<qrm::v1::SetPoolsResponse>, std::move(done));
}

void GrpcPluginClient::GetIdentity(Deadline deadline, Done<PluginIdentity> done) {
  namespace pr = pluginregistration;
  const auto read = [](const pr::PluginInfo& response) -> StatusOr<PluginIdentity> {
    return PluginIdentity{.type = response.type(),
                          .name = response.name(),
                          .endpoint = response.endpoint(),
                          .supported_versions = {response.supported_versions().begin(),
                                                 response.supported_versions().end()}};
  };
  auto call = NewCall<pr::InfoRequest, pr::PluginInfo>(deadline);
  call->context.set_wait_for_ready(true);
  impl_->Start(impl_->registration.async(), &RegistrationCalls::GetInfo, std::move(call), read,
               std::move(done));
}

void GrpcPluginClient::Notify(const std::string& error, Deadline deadline,
                              Done<Acknowledged> done) {
  namespace pr = pluginregistration;
  pr::RegistrationStatus request;
  request.set_plugin_registered(error.empty());
  request.set_error(error);
  impl_->Start(
      impl_->registration.async(), &RegistrationCalls::NotifyRegistrationStatus,
      NewCall<pr::RegistrationStatus, pr::RegistrationStatusResponse>(deadline, std::move(request)),
      Acknowledge<pr::RegistrationStatusResponse>, std::move(done));
}

}  // namespace qrm::manager
