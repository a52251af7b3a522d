// The callback API, waited for.
#include "plugins/sdk/plugin_client.h"

#include <chrono>
#include <functional>
#include <future>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "api/grpc_lifetime.h"
#include "api/proto/pluginregistration/v1/api.grpc.pb.h"
#include "api/proto/qrm/v1/control.grpc.pb.h"
#include "api/proto/resourceplugin/v1alpha1/api.grpc.pb.h"
#include "api/wire.h"

namespace qrm::sdk {
namespace {

namespace pb = ::resourceplugin::v1alpha1;
namespace registration = ::pluginregistration;

constexpr std::chrono::seconds kCallTimeout{10};

/// A channel without a past: gRPC would otherwise wait out the backoff of a plugin that was away.
std::shared_ptr<grpc::Channel> NewChannel(const std::string& socket) {
  KeepGrpcCallbackThreads();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);  // a reconcile answers for all containers at once
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

/// Calls `method` of `stub` (one that ends in a callback) and waits for the status.
template <typename Async, typename Request, typename Response>
Status Call(Async* stub,
            void (Async::*method)(grpc::ClientContext*, const Request*, Response*,
                                  std::function<void(grpc::Status)>),
            const Request& request, Response& response) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallTimeout);
  const auto answer = std::make_shared<std::promise<grpc::Status>>();
  (stub->*method)(&context, &request, &response,
                  [answer](grpc::Status status) { answer->set_value(std::move(status)); });
  const grpc::Status status = answer->get_future().get();
  return {static_cast<StatusCode>(status.error_code()), status.error_message()};
}

StatusOr<std::vector<Pool>> PoolsFrom(const google::protobuf::RepeatedPtrField<v1::Pool>& pools) {
  std::vector<Pool> result;
  for (const v1::Pool& message : pools) {
    QRM_ASSIGN_OR_RETURN(CpuSet cpus, CpuSet::Parse(message.cpus()));
    result.push_back({.name = message.name(),
                      .cpus = std::move(cpus),
                      .roles = {message.roles().begin(), message.roles().end()},
                      .containers = message.containers()});
  }
  return result;
}

}  // namespace

struct PluginClient::Impl {
  explicit Impl(const std::shared_ptr<grpc::Channel>& channel)
      : plugin(pb::ResourcePlugin::NewStub(channel)),
        extensions(v1::PluginExtensions::NewStub(channel)),
        registration(registration::Registration::NewStub(channel)) {}

  using PluginAsync = class pb::ResourcePlugin::Stub::async;
  using ExtensionsAsync = class v1::PluginExtensions::Stub::async;
  using RegistrationAsync = class registration::Registration::Stub::async;

  std::unique_ptr<pb::ResourcePlugin::Stub> plugin;
  std::unique_ptr<v1::PluginExtensions::Stub> extensions;
  std::unique_ptr<registration::Registration::Stub> registration;
};

PluginClient::PluginClient(const std::string& socket)
    : impl_(std::make_unique<Impl>(NewChannel(socket))) {}

PluginClient::~PluginClient() = default;

StatusOr<PluginIdentity> PluginClient::GetInfo() {
  registration::PluginInfo info;
  QRM_RETURN_IF_ERROR(Call(impl_->registration->async(), &Impl::RegistrationAsync::GetInfo,
                           registration::InfoRequest(), info));
  return PluginIdentity{
      .type = info.type(),
      .resource = info.name(),
      .versions = {info.supported_versions().begin(), info.supported_versions().end()}};
}

Status PluginClient::NotifyRegistrationStatus(const std::string& refusal) {
  registration::RegistrationStatus status;
  status.set_plugin_registered(refusal.empty());
  status.set_error(refusal);
  registration::RegistrationStatusResponse response;
  return Call(impl_->registration->async(), &Impl::RegistrationAsync::NotifyRegistrationStatus,
              status, response);
}

StatusOr<PluginOptions> PluginClient::Options() {
  pb::ResourcePluginOptions options;
  QRM_RETURN_IF_ERROR(Call(impl_->plugin->async(), &Impl::PluginAsync::GetResourcePluginOptions,
                           pb::Empty(), options));
  return wire::FromWire(options);
}

StatusOr<HintList> PluginClient::Hints(const ContainerRequest& request) {
  pb::ResourceHintsResponse response;
  QRM_RETURN_IF_ERROR(Call(impl_->plugin->async(), &Impl::PluginAsync::GetTopologyHints,
                           wire::ToWire(request), response));
  return wire::HintsFrom(response, request);
}

StatusOr<ResourceAllocation> PluginClient::Allocate(const ContainerRequest& request) {
  pb::ResourceAllocationResponse response;
  QRM_RETURN_IF_ERROR(
      Call(impl_->plugin->async(), &Impl::PluginAsync::Allocate, wire::ToWire(request), response));
  QRM_ASSIGN_OR_RETURN(AllocationByResource allocations, wire::AllocationsFrom(response, request));
  return std::move(allocations[request.resource]);
}

Status PluginClient::RemovePod(const std::string& pod_uid) {
  pb::RemovePodRequest request;
  request.set_pod_uid(pod_uid);
  pb::RemovePodResponse response;
  return Call(impl_->plugin->async(), &Impl::PluginAsync::RemovePod, request, response);
}

Status PluginClient::ReleaseContainer(const ContainerKey& key) {
  v1::ReleaseContainerRequest request;
  request.set_pod_uid(key.pod_uid);
  request.set_container_name(key.container);
  v1::ReleaseContainerResponse response;
  return Call(impl_->extensions->async(), &Impl::ExtensionsAsync::ReleaseContainer, request,
              response);
}

StatusOr<std::map<ContainerKey, ResourceAllocation>> PluginClient::Reconcile(
    const std::string& resource) {
  pb::GetResourcesAllocationResponse response;
  QRM_RETURN_IF_ERROR(Call(impl_->plugin->async(), &Impl::PluginAsync::GetResourcesAllocation,
                           pb::GetResourcesAllocationRequest(), response));
  QRM_ASSIGN_OR_RETURN(AllocationByContainer by_container, wire::FromWire(response));
  std::map<ContainerKey, ResourceAllocation> allocations;
  for (auto& [key, by_resource] : by_container) {
    if (by_resource.contains(resource)) {
      allocations.emplace(key, std::move(by_resource[resource]));
    }
  }
  return allocations;
}

StatusOr<AllocatableResource> PluginClient::Allocatable(const std::string& resource) {
  pb::GetTopologyAwareAllocatableResourcesResponse response;
  QRM_RETURN_IF_ERROR(Call(impl_->plugin->async(),
                           &Impl::PluginAsync::GetTopologyAwareAllocatableResources,
                           pb::GetTopologyAwareAllocatableResourcesRequest(), response));
  return wire::FromWire((*response.mutable_allocatable_resources())[resource]);
}

StatusOr<std::vector<Pool>> PluginClient::Pools() {
  v1::GetPoolsResponse response;
  QRM_RETURN_IF_ERROR(Call(impl_->extensions->async(), &Impl::ExtensionsAsync::GetPools,
                           v1::GetPoolsRequest(), response));
  return PoolsFrom(response.pools());
}

StatusOr<std::vector<Pool>> PluginClient::SetPools(
    const std::map<std::string, CpuSet>& cpus_by_pool) {
  v1::SetPoolsRequest request;
  for (const auto& [name, cpus] : cpus_by_pool) {
    (*request.mutable_cpus_by_pool())[name] = ToString(cpus);
  }
  v1::SetPoolsResponse response;
  QRM_RETURN_IF_ERROR(
      Call(impl_->extensions->async(), &Impl::ExtensionsAsync::SetPools, request, response));
  return PoolsFrom(response.pools());
}

StatusOr<std::string> PluginClient::ExportState() {
  v1::ExportStateResponse response;
  QRM_RETURN_IF_ERROR(Call(impl_->extensions->async(), &Impl::ExtensionsAsync::ExportState,
                           v1::ExportStateRequest(), response));
  return response.json();
}

}  // namespace qrm::sdk
