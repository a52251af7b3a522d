// Every call that reaches the plugin's thread is answered there; one whose caller has gone is not
// begun.
#include "plugins/sdk/services.h"

#include <utility>

#include <grpcpp/grpcpp.h>

#include "api/base/log.h"
#include "api/proto/pluginregistration/v1/api.grpc.pb.h"
#include "api/proto/qrm/v1/control.grpc.pb.h"
#include "api/proto/resourceplugin/v1alpha1/api.grpc.pb.h"
#include "api/wire.h"
#include "plugins/sdk/allocations_answer.h"

namespace qrm::sdk {
namespace {

namespace pb = ::resourceplugin::v1alpha1;
namespace registration = ::pluginregistration;
using Context = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;

grpc::Status ToGrpc(const Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), MessageOf(status)};
}

Reactor* AnswerNow(Context* context, const Status& status) {
  Reactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

/// Runs `work` on `thread` and answers with its status.
template <typename Work>
Reactor* AnswerFrom(TaskThread& thread, Context* context, Work work) {
  Reactor* reactor = context->DefaultReactor();
  thread.Post([context, reactor, work = std::move(work)] {
    reactor->Finish(context->IsCancelled() ? grpc::Status::CANCELLED : ToGrpc(work()));
  });
  return reactor;
}

StatusOr<ContainerRequest> ReadRequest(const pb::ResourceRequest& message,
                                       const std::string& resource) {
  QRM_ASSIGN_OR_RETURN(ContainerRequest request, wire::FromWire(message));
  if (request.resource != resource) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot serve a request for {}: this plugin serves {}; ask the plugin that is "
                  "registered for {}",
                  request.resource, resource, request.resource);
  }
  return request;
}

using Quantities = google::protobuf::RepeatedPtrField<pb::TopologyAwareQuantity>;

void FillQuantities(const ResourceAllocation& allocation, Quantities& quantities) {
  for (const auto& [node, amount] : allocation.amount_by_node) {
    pb::TopologyAwareQuantity& quantity = *quantities.Add();
    quantity.set_node(node);
    quantity.set_resource_value(static_cast<double>(amount));
    quantity.set_topology_level(pb::NUMA);
  }
}

/// What the container holds now, and what it held when it was admitted.
void FillTopologyAware(const Grant& grant, pb::TopologyAwareResource& message) {
  const ResourceAllocation& now = grant.allocation;
  const ResourceAllocation& admitted = grant.admitted != nullptr ? *grant.admitted : now;
  message.set_is_node_resource(now.is_node_resource);
  message.set_is_scalar_resource(now.is_scalar_resource);
  message.set_aggregated_quantity(now.quantity);
  message.set_original_aggregated_quantity(admitted.quantity);
  FillQuantities(now, *message.mutable_topology_aware_quantity_list());
  FillQuantities(admitted, *message.mutable_original_topology_aware_quantity_list());
}

/// A buffer that shares `bytes`.
grpc::ByteBuffer BufferOf(const AllocationsAnswer::Bytes& bytes) {
  auto* const owner = new AllocationsAnswer::Bytes(bytes);
  const auto release = [](void* data) { delete static_cast<AllocationsAnswer::Bytes*>(data); };
  const grpc::Slice slice(const_cast<char*>(bytes->data()), bytes->size(), release, owner);
  return {&slice, 1};
}

using RawReconcileService = pb::ResourcePlugin::WithRawCallbackMethod_GetResourcesAllocation<
    pb::ResourcePlugin::CallbackService>;

class ResourcePluginService final : public RawReconcileService {
 public:
  ResourcePluginService(TaskThread& thread, PluginDriver& driver)
      : thread_(thread), driver_(driver) {}

  Reactor* GetTopologyHints(Context* context, const pb::ResourceRequest* message,
                            pb::ResourceHintsResponse* response) override {
    StatusOr<ContainerRequest> request = ReadRequest(*message, driver_.resource());
    if (!request.ok()) {
      return AnswerNow(context, request.status());
    }
    return AnswerFrom(thread_, context, [this, response, request = *std::move(request)] {
      const StatusOr<HintList> hints = driver_.Hints(request);
      if (hints.ok()) {
        *response = wire::HintsResponse(request, *hints);
      }
      return hints.status();
    });
  }

  Reactor* Allocate(Context* context, const pb::ResourceRequest* message,
                    pb::ResourceAllocationResponse* response) override {
    StatusOr<ContainerRequest> request = ReadRequest(*message, driver_.resource());
    if (!request.ok()) {
      return AnswerNow(context, request.status());
    }
    return AnswerFrom(thread_, context, [this, response, request = *std::move(request)] {
      StatusOr<ResourceAllocation> allocation = driver_.Allocate(request);
      if (allocation.ok()) {
        *response =
            wire::AllocationResponse(request, {{driver_.resource(), *std::move(allocation)}});
      }
      return allocation.status();
    });
  }

  Reactor* RemovePod(Context* context, const pb::RemovePodRequest* message,
                     pb::RemovePodResponse* /*response*/) override {
    if (message->pod_uid().empty()) {
      return AnswerNow(context, Errorf(StatusCode::kInvalidArgument,
                                       "cannot remove a pod: pod_uid is empty; set it"));
    }
    return AnswerFrom(thread_, context,
                      [this, message] { return driver_.RemovePod(message->pod_uid()); });
  }

  /// The request has no fields.
  Reactor* GetResourcesAllocation(Context* context, const grpc::ByteBuffer*,
                                  grpc::ByteBuffer* response) override {
    return AnswerFrom(thread_, context, [this, response] {
      QRM_RETURN_IF_ERROR(driver_.Reconcile());
      *response = BufferOf(allocations_.For(driver_));
      return OkStatus();
    });
  }

  Reactor* GetTopologyAwareResources(Context* context,
                                     const pb::GetTopologyAwareResourcesRequest* message,
                                     pb::GetTopologyAwareResourcesResponse* response) override {
    return AnswerFrom(thread_, context, [this, message, response] {
      response->set_pod_uid(message->pod_uid());
      pb::ContainerTopologyAwareResources& container =
          *response->mutable_container_topology_aware_resources();
      container.set_container_name(message->container_name());
      const auto known = driver_.grants().find({message->pod_uid(), message->container_name()});
      if (known != driver_.grants().end()) {
        response->set_pod_name(known->second.request.pod_name);
        response->set_pod_namespace(known->second.request.pod_namespace);
        FillTopologyAware(known->second,
                          (*container.mutable_allocated_resources())[driver_.resource()]);
      }
      return OkStatus();
    });
  }

  Reactor* GetTopologyAwareAllocatableResources(
      Context* context, const pb::GetTopologyAwareAllocatableResourcesRequest*,
      pb::GetTopologyAwareAllocatableResourcesResponse* response) override {
    return AnswerFrom(thread_, context, [this, response] {
      QRM_ASSIGN_OR_RETURN(const AllocatableResource allocatable, driver_.Allocatable());
      (*response->mutable_allocatable_resources())[driver_.resource()] = wire::ToWire(allocatable);
      return OkStatus();
    });
  }

  Reactor* GetResourcePluginOptions(Context* context, const pb::Empty*,
                                    pb::ResourcePluginOptions* response) override {
    *response = wire::ToWire(driver_.options());
    return AnswerNow(context, OkStatus());
  }

  Reactor* PreStartContainer(Context* context, const pb::PreStartContainerRequest*,
                             pb::PreStartContainerResponse*) override {
    return AnswerNow(context, OkStatus());
  }

 private:
  TaskThread& thread_;
  PluginDriver& driver_;
  AllocationsAnswer allocations_;  ///< used on thread_ only
};

class ExtensionsService final : public v1::PluginExtensions::CallbackService {
 public:
  ExtensionsService(TaskThread& thread, PluginDriver& driver) : thread_(thread), driver_(driver) {}

  Reactor* GetPools(Context* context, const v1::GetPoolsRequest*,
                    v1::GetPoolsResponse* response) override {
    return AnswerFrom(thread_, context,
                      [this, response] { return FillPools(*response->mutable_pools()); });
  }

  Reactor* SetPools(Context* context, const v1::SetPoolsRequest* message,
                    v1::SetPoolsResponse* response) override {
    std::map<std::string, CpuSet> cpus_by_pool;
    for (const auto& [name, text] : message->cpus_by_pool()) {
      StatusOr<CpuSet> cpus = CpuSet::Parse(text);
      if (!cpus.ok()) {
        return AnswerNow(context, Annotate(cpus.status(), "cannot set pool " + name));
      }
      cpus_by_pool.emplace(name, *std::move(cpus));
    }
    return AnswerFrom(thread_, context,
                      [this, response, cpus_by_pool = std::move(cpus_by_pool)]() -> Status {
                        QRM_RETURN_IF_ERROR(driver_.SetPools(cpus_by_pool));
                        return FillPools(*response->mutable_pools());
                      });
  }

  Reactor* ReleaseContainer(Context* context, const v1::ReleaseContainerRequest* message,
                            v1::ReleaseContainerResponse*) override {
    if (message->pod_uid().empty() || message->container_name().empty()) {
      return AnswerNow(context,
                       Errorf(StatusCode::kInvalidArgument,
                              "cannot release a container: pod_uid \"{}\" and container_name "
                              "\"{}\" must both be set",
                              message->pod_uid(), message->container_name()));
    }
    return AnswerFrom(thread_, context, [this, message] {
      return driver_.ReleaseContainer({message->pod_uid(), message->container_name()});
    });
  }

  Reactor* ExportState(Context* context, const v1::ExportStateRequest*,
                       v1::ExportStateResponse* response) override {
    return AnswerFrom(thread_, context, [this, response] {
      QRM_ASSIGN_OR_RETURN(*response->mutable_json(), driver_.ExportState());
      return OkStatus();
    });
  }

 private:
  Status FillPools(google::protobuf::RepeatedPtrField<v1::Pool>& pools) {
    QRM_ASSIGN_OR_RETURN(const std::vector<Pool> known, driver_.Pools());
    for (const Pool& pool : known) {
      v1::Pool& message = *pools.Add();
      message.set_name(pool.name);
      message.set_cpus(ToString(pool.cpus));
      message.mutable_roles()->Add(pool.roles.begin(), pool.roles.end());
      message.set_containers(pool.containers);
    }
    return OkStatus();
  }

  TaskThread& thread_;
  PluginDriver& driver_;
};

class RegistrationService final : public registration::Registration::CallbackService {
 public:
  explicit RegistrationService(std::string resource) : resource_(std::move(resource)) {}

  Reactor* GetInfo(Context* context, const registration::InfoRequest*,
                   registration::PluginInfo* response) override {
    response->set_type(wire::kResourcePluginType);
    response->set_name(resource_);
    response->add_supported_versions(wire::kPluginApiVersion);
    return AnswerNow(context, OkStatus());
  }

  /// A refusal may come from a manager of other plugins that watches the same directory: it is
  /// logged, and the plugin stays.
  Reactor* NotifyRegistrationStatus(Context* context,
                                    const registration::RegistrationStatus* message,
                                    registration::RegistrationStatusResponse*) override {
    if (message->plugin_registered()) {
      log::Info("plugin registered by the watched directory", {{"resource", resource_}});
    } else {
      log::Warning("manager refused the plugin",
                   {{"resource", resource_}, {"error", message->error()}});
    }
    return AnswerNow(context, OkStatus());
  }

 private:
  std::string resource_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeResourcePluginService(TaskThread& thread, PluginDriver& driver) {
  return std::make_unique<ResourcePluginService>(thread, driver);
}

std::unique_ptr<grpc::Service> MakeExtensionsService(TaskThread& thread, PluginDriver& driver) {
  return std::make_unique<ExtensionsService>(thread, driver);
}

std::unique_ptr<grpc::Service> MakeRegistrationService(const std::string& resource) {
  return std::make_unique<RegistrationService>(resource);
}

}  // namespace qrm::sdk
