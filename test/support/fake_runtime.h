// A container runtime that takes, rejects or holds back updates, as a test says.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/base/errorf.h"
#include "api/base/mutex.h"
#include "manager/runtime/cri/cri_client.h"

namespace qrm::test {

/// Threads: any. Answers on the caller's thread, unless held back.
class FakeRuntime final : public manager::ContainerRuntime {
 public:
  /// Runs for each update that is taken, before it is answered.
  std::function<void(const manager::ContainerUpdate&)> on_update =
      [](const manager::ContainerUpdate&) {};

  /// By default the one of ScriptedRuntime.
  StatusOr<manager::RuntimeInfo> version = manager::RuntimeInfo{"containerd", "v1.7.24"};

  void GetVersion(VersionDone done) override { done(version); }
  void ListPods(PodsDone done) override { done(pods_); }
  void ListContainers(ContainersDone done) override { done(containers_); }
  void GetContainer(const manager::RuntimeContainer& listed, ContainerDone done) override {
    looked_at_.push_back(listed.id);
    done(listed);
  }
  std::unique_ptr<manager::EventWatch> WatchEvents(std::function<void()>,
                                                   UpdateDone on_end) override {
    on_end(Errorf(StatusCode::kUnimplemented, "no events"));
    return nullptr;
  }

  /// The containers that it lists; set them before the first call.
  void SetContainers(std::vector<manager::RuntimePod> pods,
                     std::vector<manager::RuntimeContainer> containers) {
    pods_ = std::move(pods);
    containers_ = std::move(containers);
  }

  void UpdateResources(const manager::ContainerUpdate& update, UpdateDone done) override {
    Status answer;
    {
      const MutexLock lock(mutex_);
      updates_.push_back(update);
      if (hold_) {
        waiting_.push_back(std::move(done));
        return;
      }
      if (const auto refused = refusals_.find(update.container_id); refused != refusals_.end()) {
        answer = refused->second;
      }
    }
    if (answer.ok()) {
      on_update(update);
    }
    done(std::move(answer));
  }

  /// The ids of the containers whose status was asked for.
  const std::vector<std::string>& looked_at() const { return looked_at_; }

  void Refuse(const std::string& container_id, Status status) {
    const MutexLock lock(mutex_);
    refusals_[container_id] = std::move(status);
  }
  void Accept(const std::string& container_id) {
    const MutexLock lock(mutex_);
    refusals_.erase(container_id);
  }
  /// Keeps every answer until Answer.
  void Hold() {
    const MutexLock lock(mutex_);
    hold_ = true;
  }
  /// Answers the oldest update that waits.
  void Answer(const Status& status = OkStatus()) {
    UpdateDone done;
    {
      const MutexLock lock(mutex_);
      done = std::move(waiting_.front());
      waiting_.erase(waiting_.begin());
    }
    done(status);
  }

  std::vector<manager::ContainerUpdate> updates() const {
    const MutexLock lock(mutex_);
    return updates_;
  }
  std::size_t waiting() const {
    const MutexLock lock(mutex_);
    return waiting_.size();
  }

 private:
  std::vector<manager::RuntimePod> pods_;
  std::vector<manager::RuntimeContainer> containers_;
  std::vector<std::string> looked_at_;
  mutable Mutex mutex_;
  bool hold_ QRM_GUARDED_BY(mutex_) = false;
  std::map<std::string, Status> refusals_ QRM_GUARDED_BY(mutex_);
  std::vector<manager::ContainerUpdate> updates_ QRM_GUARDED_BY(mutex_);
  std::vector<UpdateDone> waiting_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::test
