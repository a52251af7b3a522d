// Serves plugins with synchronous services, so that a handler that hangs holds one of gRPC's
// threads only.
#include "test/support/scripted_plugin.h"

#include <utility>

#include <grpcpp/grpcpp.h>

#include "api/base/check.h"
#include "api/proto/pluginregistration/v1/api.grpc.pb.h"
#include "api/proto/qrm/v1/control.grpc.pb.h"
#include "api/proto/resourceplugin/v1alpha1/api.grpc.pb.h"
#include "api/rpc/grpc_lifetime.h"
#include "api/rpc/grpc_status.h"
#include "api/wire.h"

namespace qrm::test {
namespace {

namespace pb = ::resourceplugin::v1alpha1;

template <typename Handler, typename Request, typename Response>
grpc::Status Answer(const Handler& handler, const Request& request, Response& response) {
  if (!handler) {
    return {grpc::StatusCode::UNIMPLEMENTED, "not in the script"};
  }
  return rpc::ToGrpc(handler(request, response));
}

class PluginService final : public pb::ResourcePlugin::Service {
 public:
  explicit PluginService(const PluginScript& script) : script_(script) {}

  grpc::Status GetResourcePluginOptions(grpc::ServerContext*, const pb::Empty* request,
                                        pb::ResourcePluginOptions* response) override {
    if (!script_.options) {
      response->set_with_topology_alignment(true);
      response->set_need_reconcile(true);
      return grpc::Status::OK;
    }
    return Answer(script_.options, *request, *response);
  }
  grpc::Status GetTopologyHints(grpc::ServerContext*, const pb::ResourceRequest* request,
                                pb::ResourceHintsResponse* response) override {
    return Answer(script_.hints, *request, *response);
  }
  grpc::Status Allocate(grpc::ServerContext*, const pb::ResourceRequest* request,
                        pb::ResourceAllocationResponse* response) override {
    return Answer(script_.allocate, *request, *response);
  }
  grpc::Status PreStartContainer(grpc::ServerContext*, const pb::PreStartContainerRequest* request,
                                 pb::PreStartContainerResponse* response) override {
    return Answer(script_.pre_start, *request, *response);
  }
  grpc::Status RemovePod(grpc::ServerContext*, const pb::RemovePodRequest* request,
                         pb::RemovePodResponse* response) override {
    return Answer(script_.remove_pod, *request, *response);
  }
  grpc::Status GetResourcesAllocation(grpc::ServerContext*,
                                      const pb::GetResourcesAllocationRequest* request,
                                      pb::GetResourcesAllocationResponse* response) override {
    return Answer(script_.reconcile, *request, *response);
  }
  grpc::Status GetTopologyAwareResources(grpc::ServerContext*,
                                         const pb::GetTopologyAwareResourcesRequest* request,
                                         pb::GetTopologyAwareResourcesResponse* response) override {
    return Answer(script_.placement, *request, *response);
  }
  grpc::Status GetTopologyAwareAllocatableResources(
      grpc::ServerContext*, const pb::GetTopologyAwareAllocatableResourcesRequest* request,
      pb::GetTopologyAwareAllocatableResourcesResponse* response) override {
    return Answer(script_.allocatable, *request, *response);
  }

 private:
  const PluginScript& script_;
};

class ExtensionService final : public v1::PluginExtensions::Service {
 public:
  explicit ExtensionService(const PluginScript& script) : script_(script) {}

  grpc::Status GetPools(grpc::ServerContext*, const v1::GetPoolsRequest* request,
                        v1::GetPoolsResponse* response) override {
    return Answer(script_.get_pools, *request, *response);
  }

 private:
  const PluginScript& script_;
};

class IdentityService final : public pluginregistration::Registration::Service {
 public:
  explicit IdentityService(const PluginScript& script) : script_(script) {}

  grpc::Status GetInfo(grpc::ServerContext*, const pluginregistration::InfoRequest*,
                       pluginregistration::PluginInfo* response) override {
    *response = script_.identity;
    return grpc::Status::OK;
  }
  grpc::Status NotifyRegistrationStatus(grpc::ServerContext*,
                                        const pluginregistration::RegistrationStatus* request,
                                        pluginregistration::RegistrationStatusResponse*) override {
    const MutexLock lock(mutex_);
    statuses_.push_back(request->plugin_registered() ? "" : request->error());
    return grpc::Status::OK;
  }

  std::vector<std::string> statuses() const {
    const MutexLock lock(mutex_);
    return statuses_;
  }

 private:
  const PluginScript& script_;
  mutable Mutex mutex_;
  std::vector<std::string> statuses_ QRM_GUARDED_BY(mutex_);
};

}  // namespace

struct ScriptedPlugin::Impl {
  explicit Impl(PluginScript text)
      : script(std::move(text)), plugin(script), extensions(script), identity(script) {}

  const PluginScript script;
  PluginService plugin;
  ExtensionService extensions;
  IdentityService identity;
  std::unique_ptr<grpc::Server> server;
};

ScriptedPlugin::ScriptedPlugin(const std::string& socket, PluginScript script)
    : impl_(std::make_unique<Impl>(std::move(script))) {
  KeepGrpcCallbackThreads();
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(&impl_->plugin);
  builder.RegisterService(&impl_->extensions);
  builder.RegisterService(&impl_->identity);
  impl_->server = builder.BuildAndStart();
  QRM_CHECK(impl_->server != nullptr);
}

ScriptedPlugin::~ScriptedPlugin() {
  impl_->server->Shutdown(std::chrono::system_clock::now());
}

std::vector<std::string> ScriptedPlugin::statuses() const {
  return impl_->identity.statuses();
}

pluginregistration::PluginInfo IdentityFor(const std::string& resource) {
  pluginregistration::PluginInfo identity;
  identity.set_type(wire::kResourcePluginType);
  identity.set_name(resource);
  identity.add_supported_versions(wire::kPluginApiVersion);
  return identity;
}

}  // namespace qrm::test
