// Serves kubelet's Pods API from a test's pods.
#include "test/support/scripted_kubelet.h"

#include <chrono>
#include <map>
#include <set>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "api/base/check.h"
#include "api/base/cond_var.h"
#include "api/base/mutex.h"
#include "api/proto/core/v1/pod.pb.h"
#include "api/proto/pods/v1alpha1/api.grpc.pb.h"
#include "api/rpc/grpc_lifetime.h"

namespace qrm::test {
namespace {

namespace pods = ::v1alpha1;

constexpr std::chrono::milliseconds kCancelPoll{5};

pods::WatchPodsEvent Event(int type, const std::string& pod) {
  pods::WatchPodsEvent event;
  event.set_type(static_cast<pods::EventType>(type));
  event.set_pod(pod);
  return event;
}

}  // namespace

std::string PodMessage(const std::string& uid, const std::string& name, const std::string& cpus) {
  ::k8s::io::api::core::v1::Pod pod;
  pod.mutable_metadata()->set_uid(uid);
  pod.mutable_metadata()->set_namespace_("default");
  pod.mutable_metadata()->set_name(name);
  auto& container = *pod.mutable_spec()->add_containers();
  container.set_name("main");
  (*container.mutable_resources()->mutable_requests())["cpu"].set_string(cpus);
  return pod.SerializeAsString();
}

struct ScriptedKubelet::Impl final : pods::Pods::Service {
  grpc::Status GetPod(grpc::ServerContext* context, const pods::GetPodRequest* request,
                      pods::GetPodResponse* response) override {
    const MutexLock lock(mutex);
    ++lookups;
    while (held_lookups.contains(request->poduid()) && !context->IsCancelled()) {
      changed.WaitUntil(
          mutex, std::chrono::steady_clock::now() + kCancelPoll,
          [&]() QRM_REQUIRES(mutex) { return !held_lookups.contains(request->poduid()); });
    }
    const auto found = pods_by_uid.find(request->poduid());
    if (found == pods_by_uid.end()) {
      return {grpc::StatusCode::NOT_FOUND, "pod not found"};
    }
    response->set_pod(found->second);
    return grpc::Status::OK;
  }

  // One thread for each watcher: waits for events beyond those it has sent.
  grpc::Status WatchPods(grpc::ServerContext* context, const pods::WatchPodsRequest*,
                         grpc::ServerWriter<pods::WatchPodsEvent>* writer) override {
    std::vector<pods::WatchPodsEvent> ready;
    std::size_t sent = 0;
    int my_drop = 0;
    bool begun = false;
    {
      const MutexLock lock(mutex);
      ++watches;
      sent = events.size();
      my_drop = drops;
    }
    while (!context->IsCancelled()) {
      {
        const MutexLock lock(mutex);
        changed.WaitUntil(mutex, std::chrono::steady_clock::now() + kCancelPoll,
                          [&]() QRM_REQUIRES(mutex) {
                            return drops != my_drop || (!held && (!begun || sent < events.size()));
                          });
        if (drops != my_drop) {
          return drop_status;
        }
        if (!held && !begun) {
          begun = true;
          for (const auto& [uid, pod] : pods_by_uid) {
            ready.push_back(Event(pods::EVENT_TYPE_ADDED, pod));
          }
          ready.push_back(Event(pods::EVENT_TYPE_INITIAL_SYNC_COMPLETE, ""));
        }
        for (; !held && sent < events.size(); ++sent) {
          ready.push_back(events[sent]);
        }
      }
      for (const pods::WatchPodsEvent& event : ready) {
        writer->Write(event);
      }
      ready.clear();
    }
    return grpc::Status::CANCELLED;
  }

  std::unique_ptr<grpc::Server> server;
  mutable Mutex mutex;
  CondVar changed;
  std::map<std::string, std::string> pods_by_uid QRM_GUARDED_BY(mutex);
  std::vector<pods::WatchPodsEvent> events QRM_GUARDED_BY(mutex);
  bool held QRM_GUARDED_BY(mutex) = false;
  int drops QRM_GUARDED_BY(mutex) = 0;
  grpc::Status drop_status QRM_GUARDED_BY(mutex);
  int lookups QRM_GUARDED_BY(mutex) = 0;
  std::set<std::string> held_lookups QRM_GUARDED_BY(mutex);  // by pod UID
  int watches QRM_GUARDED_BY(mutex) = 0;
};

ScriptedKubelet::ScriptedKubelet(const std::string& socket) : impl_(std::make_unique<Impl>()) {
  KeepGrpcCallbackThreads();
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(impl_.get());
  builder.SetMaxSendMessageSize(-1);
  impl_->server = builder.BuildAndStart();
  QRM_CHECK(impl_->server != nullptr);
}

ScriptedKubelet::~ScriptedKubelet() {
  impl_->server->Shutdown(std::chrono::system_clock::now());
  impl_->server->Wait();
}

void ScriptedKubelet::Put(const std::string& uid, const std::string& pod) {
  const MutexLock lock(impl_->mutex);
  impl_->pods_by_uid[uid] = pod;
}

void ScriptedKubelet::Forget(const std::string& uid) {
  const MutexLock lock(impl_->mutex);
  impl_->pods_by_uid.erase(uid);
}

void ScriptedKubelet::HoldSync() {
  const MutexLock lock(impl_->mutex);
  impl_->held = true;
}

void ScriptedKubelet::Sync() {
  const MutexLock lock(impl_->mutex);
  impl_->held = false;
  impl_->changed.NotifyAll();
}

void ScriptedKubelet::HoldLookups(const std::string& uid) {
  const MutexLock lock(impl_->mutex);
  impl_->held_lookups.insert(uid);
}

void ScriptedKubelet::ReleaseLookups() {
  const MutexLock lock(impl_->mutex);
  impl_->held_lookups.clear();
  impl_->changed.NotifyAll();
}

void ScriptedKubelet::Send(int type, const std::string& pod) {
  const MutexLock lock(impl_->mutex);
  impl_->events.push_back(Event(type, pod));
  impl_->changed.NotifyAll();
}

void ScriptedKubelet::Drop(const Status& status) {
  const MutexLock lock(impl_->mutex);
  ++impl_->drops;
  impl_->drop_status =
      grpc::Status(static_cast<grpc::StatusCode>(status.code()), MessageOf(status));
  impl_->changed.NotifyAll();
}

int ScriptedKubelet::lookups() const {
  const MutexLock lock(impl_->mutex);
  return impl_->lookups;
}

int ScriptedKubelet::watches() const {
  const MutexLock lock(impl_->mutex);
  return impl_->watches;
}

}  // namespace qrm::test
