// Serves a driver with synchronous services, so that a handler that hangs holds one of gRPC's
// threads only.
#include "test/support/scripted_driver.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "api/base/check.h"
#include "api/base/mutex.h"
#include "api/proto/cci/v1alpha1/cci.grpc.pb.h"
#include "api/proto/pluginregistration/v1/api.grpc.pb.h"
#include "api/rpc/grpc_lifetime.h"
#include "api/rpc/grpc_status.h"

namespace qrm::test {
namespace {

namespace pb = ::cci::v1alpha1;

class DriverService final : public pb::CCIDriver::Service {
 public:
  explicit DriverService(const DriverScript& script) : script_(script) {}

  grpc::Status cciAdmit(grpc::ServerContext*, const pb::AdmitRequest* request,
                        pb::AdmitResponse* response) override {
    Note(fmt::format("{} {}", request->current_cpus().empty() ? "admit" : "resize",
                     request->container()));
    return rpc::ToGrpc(script_.admit(*request, *response));
  }
  grpc::Status cciAddContainerResource(grpc::ServerContext*, const pb::AddResourceRequest* request,
                                       pb::AddResourceResponse* response) override {
    Note(fmt::format("add {} {}", request->container(), request->container_id()));
    return rpc::ToGrpc(script_.add(*request, *response));
  }
  grpc::Status cciRemoveContainerResource(grpc::ServerContext*,
                                          const pb::RemoveResourceRequest* request,
                                          pb::RemoveResourceResponse* response) override {
    Note(fmt::format("remove {} {}", request->container(), request->container_id()));
    return rpc::ToGrpc(script_.remove(*request, *response));
  }

  grpc::Status cciGetOptions(grpc::ServerContext*, const pb::OptionsRequest*,
                             pb::OptionsResponse* response) override {
    response->set_resizes(script_.resizes);
    return script_.resizes ? grpc::Status::OK
                           : grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "not in the script");
  }

  std::vector<std::string> calls() const {
    const MutexLock lock(mutex_);
    return calls_;
  }

 private:
  void Note(std::string call) {
    const MutexLock lock(mutex_);
    calls_.push_back(std::move(call));
  }

  const DriverScript& script_;
  mutable Mutex mutex_;
  std::vector<std::string> calls_ QRM_GUARDED_BY(mutex_);
};

class IdentityService final : public pluginregistration::Registration::Service {
 public:
  explicit IdentityService(std::string name) : name_(std::move(name)) {}

  grpc::Status GetInfo(grpc::ServerContext*, const pluginregistration::InfoRequest*,
                       pluginregistration::PluginInfo* response) override {
    response->set_type("CCIDriver");
    response->set_name(name_);
    response->add_supported_versions("v1alpha1");
    return grpc::Status::OK;
  }
  grpc::Status NotifyRegistrationStatus(grpc::ServerContext*,
                                        const pluginregistration::RegistrationStatus*,
                                        pluginregistration::RegistrationStatusResponse*) override {
    return grpc::Status::OK;
  }

 private:
  const std::string name_;
};

}  // namespace

struct ScriptedDriver::Impl {
  explicit Impl(DriverScript text)
      : script(std::move(text)), driver(script), identity(script.name) {}

  const DriverScript script;
  DriverService driver;
  IdentityService identity;
  std::unique_ptr<grpc::Server> server;
};

ScriptedDriver::ScriptedDriver(const std::string& socket, DriverScript script)
    : impl_(std::make_unique<Impl>(std::move(script))) {
  KeepGrpcCallbackThreads();
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(&impl_->driver);
  builder.RegisterService(&impl_->identity);
  impl_->server = builder.BuildAndStart();
  QRM_CHECK(impl_->server != nullptr);
}

ScriptedDriver::~ScriptedDriver() {
  impl_->server->Shutdown(std::chrono::system_clock::now());
}

std::vector<std::string> ScriptedDriver::calls() const {
  return impl_->driver.calls();
}

}  // namespace qrm::test
