// Serves CRI with synchronous handlers: an update waits for qrmd's word over NRI, as in containerd.
#include "test/model/model_cri.h"

#include <chrono>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "api/base/check.h"
#include "api/proto/runtime/v1/api.grpc.pb.h"
#include "api/rpc/grpc_lifetime.h"
#include "api/rpc/grpc_status.h"
#include "test/model/model_runtime.h"

namespace qrm::test {
namespace {

cri::ContainerState CriStateOf(const Box& box) {
  switch (box.state) {
    case Box::State::kCreated:
      return cri::CONTAINER_CREATED;
    case Box::State::kRunning:
      return cri::CONTAINER_RUNNING;
    case Box::State::kExited:
      break;
  }
  return cri::CONTAINER_EXITED;
}

cri::PodSandbox Listed(const Sandbox& sandbox) {
  cri::PodSandbox listed;
  listed.set_id(sandbox.id);
  listed.set_state(sandbox.ready ? cri::SANDBOX_READY : cri::SANDBOX_NOTREADY);
  listed.mutable_metadata()->set_name(sandbox.message.name());
  listed.mutable_metadata()->set_uid(sandbox.message.uid());
  listed.mutable_metadata()->set_namespace_(sandbox.message.namespace_());
  *listed.mutable_labels() = sandbox.message.labels();
  *listed.mutable_annotations() = sandbox.message.annotations();
  return listed;
}

cri::Container Listed(const Box& box) {
  cri::Container listed;
  listed.set_id(box.id);
  listed.set_pod_sandbox_id(box.sandbox_id);
  listed.set_state(CriStateOf(box));
  listed.mutable_metadata()->set_name(box.message.name());
  listed.mutable_metadata()->set_attempt(box.attempt);
  *listed.mutable_labels() = box.message.labels();
  *listed.mutable_annotations() = box.message.annotations();
  return listed;
}

}  // namespace

struct ModelCri::Impl final : cri::RuntimeService::Service {
  explicit Impl(ModelRuntime& owner) : runtime(owner) {}

  grpc::Status Version(grpc::ServerContext*, const cri::VersionRequest*,
                       cri::VersionResponse* response) override {
    response->set_version("0.1.0");
    response->set_runtime_name("containerd");
    response->set_runtime_version("v1.7.24");
    response->set_runtime_api_version("v1");
    return grpc::Status::OK;
  }

  grpc::Status ListPodSandbox(grpc::ServerContext*, const cri::ListPodSandboxRequest*,
                              cri::ListPodSandboxResponse* response) override {
    for (const Sandbox& sandbox : runtime.Sandboxes()) {
      *response->add_items() = Listed(sandbox);
    }
    return grpc::Status::OK;
  }

  grpc::Status ListContainers(grpc::ServerContext*, const cri::ListContainersRequest*,
                              cri::ListContainersResponse* response) override {
    for (const Box& box : runtime.Boxes()) {
      *response->add_containers() = Listed(box);
    }
    return grpc::Status::OK;
  }

  grpc::Status ContainerStatus(grpc::ServerContext*, const cri::ContainerStatusRequest* request,
                               cri::ContainerStatusResponse* response) override {
    const StatusOr<Box> box = runtime.ShowOverCri(request->container_id());
    if (box.ok()) {
      cri::ContainerStatus& status = *response->mutable_status();
      status.set_id(box->id);
      status.set_state(CriStateOf(*box));
      *status.mutable_resources()->mutable_linux() = CriResources(box->message);
      status.mutable_resources()->mutable_linux()->set_cpuset_cpus(box->told);
      (*response->mutable_info())["info"] =
          fmt::format(R"({{"runtimeSpec":{{"linux":{{"cgroupsPath":"{}"}}}}}})",
                      box->message.linux().cgroups_path());
    }
    return rpc::ToGrpc(box.status());
  }

  grpc::Status UpdateContainerResources(grpc::ServerContext*,
                                        const cri::UpdateContainerResourcesRequest* request,
                                        cri::UpdateContainerResourcesResponse*) override {
    return rpc::ToGrpc(runtime.UpdateOverCri(request->container_id(), request->linux()));
  }

  ModelRuntime& runtime;
  std::unique_ptr<grpc::Server> server;
};

ModelCri::ModelCri(const std::string& socket, ModelRuntime& runtime)
    : impl_(std::make_unique<Impl>(runtime)) {
  KeepGrpcCallbackThreads();
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(impl_.get());
  impl_->server = builder.BuildAndStart();
  QRM_CHECK(impl_->server != nullptr);
}

ModelCri::~ModelCri() {
  impl_->server->Shutdown(std::chrono::system_clock::now());
  impl_->server->Wait();
}

}  // namespace qrm::test
