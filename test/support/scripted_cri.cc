// Serves the CRI calls that qrmd makes, from tables.
#include "test/support/scripted_cri.h"

#include <deque>
#include <map>
#include <utility>

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include "api/base/check.h"
#include "api/base/errorf.h"
#include "api/base/mutex.h"
#include "api/proto/runtime/v1/api.grpc.pb.h"
#include "api/rpc/grpc_lifetime.h"
#include "api/rpc/grpc_status.h"

namespace qrm::test {

namespace cri = ::runtime::v1;

namespace {

/// One open stream of events: a queue and at most one write under way.
class EventStream final : public grpc::ServerWriteReactor<cri::ContainerEventResponse> {
 public:
  void Send(const cri::ContainerEventResponse& event) {
    const MutexLock lock(mutex_);
    queue_.push_back(event);
    if (queue_.size() == 1 && !finished_) {
      StartWrite(&queue_.front());
    }
  }
  void End(const grpc::Status& status) {
    const MutexLock lock(mutex_);
    if (!finished_) {
      finished_ = true;
      Finish(status);
    }
  }
  void OnWriteDone(bool ok) override {
    const MutexLock lock(mutex_);
    queue_.pop_front();
    if (ok && !queue_.empty() && !finished_) {
      StartWrite(&queue_.front());
    }
  }
  void OnCancel() override { End(grpc::Status::CANCELLED); }
  /// The object stays with its maker: gRPC is done with it.
  void OnDone() override {
    const MutexLock lock(mutex_);
    done_ = true;
  }
  bool open() {
    const MutexLock lock(mutex_);
    return !finished_ && !done_;
  }

 private:
  Mutex mutex_;
  std::deque<cri::ContainerEventResponse> queue_ QRM_GUARDED_BY(mutex_);
  bool finished_ QRM_GUARDED_BY(mutex_) = false;
  bool done_ QRM_GUARDED_BY(mutex_) = false;
};

}  // namespace

class EveryImage final : public cri::ImageService::CallbackService {
  grpc::ServerUnaryReactor* ImageStatus(grpc::CallbackServerContext* context,
                                        const cri::ImageStatusRequest* request,
                                        cri::ImageStatusResponse* response) override {
    response->mutable_image()->set_id(request->image().image());
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

struct ScriptedCri::Impl final : cri::RuntimeService::CallbackService {
  using Context = grpc::CallbackServerContext;

  grpc::ServerUnaryReactor* Finish(Context* context, const grpc::Status& status);

  grpc::ServerUnaryReactor* Version(Context* context, const cri::VersionRequest*,
                                    cri::VersionResponse* response) override {
    response->set_version("0.1.0");
    {
      const MutexLock lock(mutex);
      response->set_runtime_name(name);
      response->set_runtime_version(version);
    }
    response->set_runtime_api_version("v1");
    return Finish(context, grpc::Status::OK);
  }

  grpc::ServerUnaryReactor* ListPodSandbox(Context* context, const cri::ListPodSandboxRequest*,
                                           cri::ListPodSandboxResponse* response) override {
    grpc::Status result;
    {
      const MutexLock lock(mutex);
      for (const auto& [id, pod] : pods) {
        *response->add_items() = pod;
      }
      result = list_result;
    }
    return Finish(context, result);
  }

  grpc::ServerUnaryReactor* ListContainers(Context* context, const cri::ListContainersRequest*,
                                           cri::ListContainersResponse* response) override {
    grpc::Status result;
    {
      const MutexLock lock(mutex);
      ++lists;
      for (const auto& [id, container] : containers) {
        *response->add_containers() = container;
      }
      result = list_result;
    }
    return Finish(context, result);
  }

  grpc::ServerUnaryReactor* ContainerStatus(Context* context,
                                            const cri::ContainerStatusRequest* request,
                                            cri::ContainerStatusResponse* response) override {
    grpc::Status result;
    {
      const MutexLock lock(mutex);
      const auto found = containers.find(request->container_id());
      if (found == containers.end()) {
        result = {grpc::StatusCode::NOT_FOUND, "no such container"};
      } else {
        response->mutable_status()->set_id(found->first);
        response->mutable_status()->set_state(found->second.state());
        if (resources.contains(found->first)) {
          *response->mutable_status()->mutable_resources()->mutable_linux() =
              resources.at(found->first);
        }
        if (request->verbose() && infos.contains(found->first)) {
          (*response->mutable_info())["info"] = infos.at(found->first);
        }
      }
    }
    return Finish(context, result);
  }

  grpc::ServerWriteReactor<cri::ContainerEventResponse>* GetContainerEvents(
      Context*, const cri::GetEventsRequest*) override {
    const MutexLock lock(mutex);
    EventStream* stream = streams.emplace_back(std::make_unique<EventStream>()).get();
    if (without_events) {
      stream->End({grpc::StatusCode::UNIMPLEMENTED, "unknown method GetContainerEvents"});
    } else {
      ++opened;
    }
    return stream;
  }

  grpc::ServerUnaryReactor* UpdateContainerResources(
      Context* context, const cri::UpdateContainerResourcesRequest* request,
      cri::UpdateContainerResourcesResponse*) override {
    Status result;
    {
      const MutexLock lock(mutex);
      result = CheckOnline(request->linux().cpuset_cpus());
      if (result.ok()) {
        updates.push_back(*request);
        result = update_result;
      }
    }
    return Finish(context,
                  grpc::Status(static_cast<grpc::StatusCode>(result.code()), MessageOf(result)));
  }

  grpc::ServerUnaryReactor* RunPodSandbox(Context* context,
                                          const cri::RunPodSandboxRequest* request,
                                          cri::RunPodSandboxResponse* response) override {
    const auto id = maker.run ? maker.run(*request) : NobodyMakes();
    response->set_pod_sandbox_id(id.value_or(""));
    return Finish(context, rpc::ToGrpc(id.status()));
  }
  grpc::ServerUnaryReactor* CreateContainer(Context* context,
                                            const cri::CreateContainerRequest* request,
                                            cri::CreateContainerResponse* response) override {
    const auto id = maker.create ? maker.create(*request) : NobodyMakes();
    response->set_container_id(id.value_or(""));
    return Finish(context, rpc::ToGrpc(id.status()));
  }
  grpc::ServerUnaryReactor* StartContainer(Context* context, const cri::StartContainerRequest*,
                                           cri::StartContainerResponse*) override {
    return Finish(context, grpc::Status::OK);  // its maker has started it
  }
  grpc::ServerUnaryReactor* StopPodSandbox(Context* context,
                                           const cri::StopPodSandboxRequest* request,
                                           cri::StopPodSandboxResponse*) override {
    const Status stopped =
        maker.stop ? maker.stop(request->pod_sandbox_id()) : NobodyMakes().status();
    return Finish(context, rpc::ToGrpc(stopped));
  }
  grpc::ServerUnaryReactor* RemovePodSandbox(Context* context,
                                             const cri::RemovePodSandboxRequest* request,
                                             cri::RemovePodSandboxResponse*) override {
    const Status removed =
        maker.remove ? maker.remove(request->pod_sandbox_id()) : NobodyMakes().status();
    return Finish(context, rpc::ToGrpc(removed));
  }
  static CriPodMaker::Id NobodyMakes() {
    return Errorf(StatusCode::kUnimplemented, "this runtime makes no pods");
  }

  Status CheckOnline(const std::string& cpus) const QRM_REQUIRES(mutex) {
    QRM_ASSIGN_OR_RETURN(const CpuSet wanted, CpuSet::Parse(cpus));
    return wanted.Intersects(offline)
               ? Errorf(StatusCode::kUnknown, "write {} to cpuset.cpus: invalid argument", cpus)
               : OkStatus();
  }

  EveryImage images;
  std::unique_ptr<grpc::Server> server;
  CriPodMaker maker;  // set before the first call for it
  Mutex mutex;
  std::map<std::string, cri::PodSandbox> pods QRM_GUARDED_BY(mutex);
  std::map<std::string, cri::Container> containers QRM_GUARDED_BY(mutex);
  std::vector<Update> updates QRM_GUARDED_BY(mutex);
  Status update_result QRM_GUARDED_BY(mutex);
  CpuSet offline QRM_GUARDED_BY(mutex);
  grpc::Status list_result QRM_GUARDED_BY(mutex);
  std::map<std::string, std::string> infos QRM_GUARDED_BY(mutex);
  std::map<std::string, cri::LinuxContainerResources> resources QRM_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<EventStream>> streams QRM_GUARDED_BY(mutex);
  bool without_events QRM_GUARDED_BY(mutex) = false;
  int opened QRM_GUARDED_BY(mutex) = 0;
  int lists QRM_GUARDED_BY(mutex) = 0;
  std::string name QRM_GUARDED_BY(mutex) = "containerd";
  std::string version QRM_GUARDED_BY(mutex) = "v1.7.24";
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
  builder.RegisterService(&impl_->images);
  builder.SetMaxSendMessageSize(-1);
  impl_->server = builder.BuildAndStart();
  QRM_CHECK(impl_->server != nullptr);
}

ScriptedCri::~ScriptedCri() {
  impl_->server->Shutdown(std::chrono::system_clock::now());
  impl_->server->Wait();
}

void ScriptedCri::MakePodsBy(CriPodMaker maker) {
  impl_->maker = std::move(maker);
}

void ScriptedCri::SetInfo(const std::string& id, const std::string& json) {
  const MutexLock lock(impl_->mutex);
  impl_->infos[id] = json;
}

void ScriptedCri::SetResources(const std::string& id, const cri::LinuxContainerResources& values) {
  const MutexLock lock(impl_->mutex);
  impl_->resources[id] = values;
}

void ScriptedCri::FailLists(const Status& status) {
  const MutexLock lock(impl_->mutex);
  impl_->list_result = {static_cast<grpc::StatusCode>(status.code()), MessageOf(status)};
}

void ScriptedCri::WithoutEvents() {
  const MutexLock lock(impl_->mutex);
  impl_->without_events = true;
}

bool ScriptedCri::SendEvent(cri::ContainerEventType type, const std::string& container_id) {
  cri::ContainerEventResponse event;
  event.set_container_id(container_id);
  event.set_container_event_type(type);
  const MutexLock lock(impl_->mutex);
  bool sent = false;
  for (const auto& stream : impl_->streams) {
    if (stream->open()) {
      stream->Send(event);
      sent = true;
    }
  }
  return sent;
}

void ScriptedCri::BreakEvents() {
  const MutexLock lock(impl_->mutex);
  for (const auto& stream : impl_->streams) {
    stream->End({grpc::StatusCode::UNAVAILABLE, "the runtime stops"});
  }
}

int ScriptedCri::event_streams() const {
  const MutexLock lock(impl_->mutex);
  return impl_->opened;
}

int ScriptedCri::lists() const {
  const MutexLock lock(impl_->mutex);
  return impl_->lists;
}

void ScriptedCri::PutPod(const cri::PodSandbox& pod) {
  const MutexLock lock(impl_->mutex);
  impl_->pods[pod.id()] = pod;
}

void ScriptedCri::RemovePod(const std::string& id) {
  const MutexLock lock(impl_->mutex);
  impl_->pods.erase(id);
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

std::size_t ScriptedCri::update_count() const {
  const MutexLock lock(impl_->mutex);
  return impl_->updates.size();
}

std::vector<std::pair<std::size_t, ScriptedCri::Update>> ScriptedCri::UpdatesOf(
    const std::string& container_id) const {
  const MutexLock lock(impl_->mutex);
  std::vector<std::pair<std::size_t, Update>> of_container;
  for (std::size_t i = 0; i < impl_->updates.size(); ++i) {
    if (impl_->updates[i].container_id() == container_id) {
      of_container.emplace_back(i, impl_->updates[i]);
    }
  }
  return of_container;
}

void ScriptedCri::FailUpdates(const Status& status) {
  const MutexLock lock(impl_->mutex);
  impl_->update_result = status;
}

void ScriptedCri::SetOffline(const CpuSet& cpus) {
  const MutexLock lock(impl_->mutex);
  impl_->offline = cpus;
}

void ScriptedCri::SetRuntime(const std::string& name, const std::string& version) {
  const MutexLock lock(impl_->mutex);
  impl_->name = name;
  impl_->version = version;
}

void ScriptedCri::SetDelay(std::chrono::milliseconds delay) {
  const MutexLock lock(impl_->mutex);
  impl_->delay = delay;
}

}  // namespace qrm::test
