#include "test/support/scripted_cri.h"

#include <map>
#include <utility>

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include "api/check.h"
#include "api/grpc_lifetime.h"
#include "api/mutex.h"
#include "api/proto/runtime/v1/api.grpc.pb.h"

namespace qrm::test {

namespace cri = ::runtime::v1;

struct ScriptedCri::Impl final : cri::RuntimeService::CallbackService {
  using Context = grpc::CallbackServerContext;

  grpc::ServerUnaryReactor* Finish(Context* context, const grpc::Status& status);

  grpc::ServerUnaryReactor* Version(Context* context, const cri::VersionRequest*,
                                    cri::VersionResponse* response) override {
    response->set_version("0.1.0");
    response->set_runtime_name("scripted");
    response->set_runtime_version("1.0.0");
    response->set_runtime_api_version("v1");
    return Finish(context, grpc::Status::OK);
  }

  grpc::ServerUnaryReactor* ListPodSandbox(Context* context, const cri::ListPodSandboxRequest*,
                                           cri::ListPodSandboxResponse* response) override {
    {
      const MutexLock lock(mutex);
      for (const cri::PodSandbox& pod : pods) {
        *response->add_items() = pod;
      }
    }
    return Finish(context, grpc::Status::OK);
  }

  grpc::ServerUnaryReactor* ListContainers(Context* context, const cri::ListContainersRequest*,
                                           cri::ListContainersResponse* response) override {
    {
      const MutexLock lock(mutex);
      for (const auto& [id, container] : containers) {
        *response->add_containers() = container;
      }
    }
    return Finish(context, grpc::Status::OK);
  }

  grpc::ServerUnaryReactor* UpdateContainerResources(
      Context* context, const cri::UpdateContainerResourcesRequest* request,
      cri::UpdateContainerResourcesResponse*) override {
    Status result;
    {
      const MutexLock lock(mutex);
      updates.push_back(*request);
      result = update_result;
    }
    return Finish(context,
                  grpc::Status(static_cast<grpc::StatusCode>(result.code()), MessageOf(result)));
  }

  std::unique_ptr<grpc::Server> server;
  Mutex mutex;
  std::vector<cri::PodSandbox> pods QRM_GUARDED_BY(mutex);
  std::map<std::string, cri::Container> containers QRM_GUARDED_BY(mutex);
  std::vector<Update> updates QRM_GUARDED_BY(mutex);
  Status update_result QRM_GUARDED_BY(mutex);
  std::chrono::milliseconds delay QRM_GUARDED_BY(mutex){0};
  std::vector<std::unique_ptr<grpc::Alarm>> alarms QRM_GUARDED_BY(mutex);
};

grpc::ServerUnaryReactor* ScriptedCri::Impl::Finish(Context* context, const grpc::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  grpc::Alarm* alarm = nullptr;
  std::chrono::milliseconds wait{};
  {
    const MutexLock lock(mutex);
    wait = delay;
    if (wait.count() > 0) {
      alarm = alarms.emplace_back(std::make_unique<grpc::Alarm>()).get();
    }
  }
  if (alarm == nullptr) {
    reactor->Finish(status);
  } else {
    alarm->Set(std::chrono::system_clock::now() + wait,
               [reactor, status](bool) { reactor->Finish(status); });
  }
  return reactor;
}

ScriptedCri::ScriptedCri(const std::string& socket) : impl_(std::make_unique<Impl>()) {
  KeepGrpcCallbackThreads();
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(impl_.get());
  builder.SetMaxSendMessageSize(-1);
  impl_->server = builder.BuildAndStart();
  QRM_CHECK(impl_->server != nullptr);
}

ScriptedCri::~ScriptedCri() {
  impl_->server->Shutdown(std::chrono::system_clock::now());
  impl_->server->Wait();
}

void ScriptedCri::AddPod(const cri::PodSandbox& pod) {
  const MutexLock lock(impl_->mutex);
  impl_->pods.push_back(pod);
}

void ScriptedCri::RemovePod(const std::string& id) {
  const MutexLock lock(impl_->mutex);
  std::erase_if(impl_->pods, [&](const cri::PodSandbox& pod) { return pod.id() == id; });
}

void ScriptedCri::PutContainer(const cri::Container& container) {
  const MutexLock lock(impl_->mutex);
  impl_->containers[container.id()] = container;
}

void ScriptedCri::RemoveContainer(const std::string& id) {
  const MutexLock lock(impl_->mutex);
  impl_->containers.erase(id);
}

std::vector<ScriptedCri::Update> ScriptedCri::updates() const {
  const MutexLock lock(impl_->mutex);
  return impl_->updates;
}

void ScriptedCri::FailUpdates(const Status& status) {
  const MutexLock lock(impl_->mutex);
  impl_->update_result = status;
}

void ScriptedCri::SetDelay(std::chrono::milliseconds delay) {
  const MutexLock lock(impl_->mutex);
  impl_->delay = delay;
}

}  // namespace qrm::test
