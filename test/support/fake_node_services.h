// A daemon's status that a test sets.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/base/mutex.h"
#include "manager/observability/node_services.h"

namespace qrm::test {

class FakeNodeServices final : public manager::NodeServices {
 public:
  // Set before the servers under test start.
  std::map<ContainerKey, std::string> runtime_ids;
  std::map<ContainerKey, std::chrono::system_clock::time_point> updated;
  std::map<ContainerKey, manager::ContainerRemarks> remarks;
  std::vector<manager::UnplacedContainer> unplaced;
  std::vector<checkpoint::DecisionTrace> decisions;
  std::vector<checkpoint::DecisionTrace> events;  ///< later than the decisions
  std::vector<checkpoint::NodeEvent> noted;       ///< read it when the answer has come
  StatusOr<manager::DryRunReport> dry_run = manager::DryRunReport();
  StatusOr<checkpoint::PluginRecords> records = checkpoint::PluginRecords();  ///< to forget
  /// The plugin to forget; read it when the answer has come.
  std::vector<std::pair<std::string, manager::Forget>> forgotten;
  qrm::Status disk;  ///< the result of trying the disk
  qrm::Status kept;  ///< the result of keeping plugins' values
  std::vector<std::string> stalled_loops;
  placement::Permissions permissions;
  std::vector<manager::ClassTypeStatus> classes;
  std::vector<manager::ClassChange> class_changes;      ///< read it when the answer has come
  StatusOr<std::string> class_changed = std::string();  ///< the result of a change
  std::string announced_pod;                            ///< the latest, serialized
  StatusOr<std::string> announced = std::string("default/pod0");  ///< AnnouncePod's answer
  std::vector<manager::PluginPolicy> policies;
  StatusOr<manager::ConfigTrial> config_trial = manager::ConfigTrial();
  std::string tried_config;  ///< the latest text; read it when its answer has come
  std::string tried_pod;     ///< the latest, serialized; read it when its answer has come

  manager::NodeStatus Status() const override {
    const MutexLock lock(mutex_);
    return status_;
  }
  std::vector<std::string> StalledLoops() override { return stalled_loops; }
  std::string RuntimeIdOf(const ContainerKey& key) const override {
    const auto found = runtime_ids.find(key);
    return found == runtime_ids.end() ? "" : found->second;
  }
  manager::ContainerRemarks RemarksOf(const checkpoint::PodRecord& pod,
                                      const std::string& name) const override {
    const auto found = remarks.find({pod.meta.uid, name});
    return found == remarks.end() ? manager::ContainerRemarks() : found->second;
  }
  std::vector<manager::UnplacedContainer> Unplaced() const override { return unplaced; }
  std::optional<std::chrono::system_clock::time_point> LastUpdateOf(
      const ContainerKey& key) const override {
    const auto found = updated.find(key);
    return found == updated.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<checkpoint::DecisionTrace> Decisions() const override { return decisions; }
  std::vector<checkpoint::DecisionTrace> Events() const override {
    std::vector<checkpoint::DecisionTrace> all = decisions;
    all.insert(all.end(), events.begin(), events.end());
    return all;
  }
  void NoteEvent(const checkpoint::NodeEvent& event) override { noted.push_back(event); }
  uint64_t DecisionCount() const override { return decisions.size(); }
  void ReconcileSoon(const std::string& resource) override {
    const MutexLock lock(mutex_);
    reconciles_.push_back(resource);
  }
  void ForgetPlugin(const std::string& resource, manager::Forget how,
                    manager::ForgetDone done) override {
    forgotten.emplace_back(resource, how);
    done(records);
  }
  void TryDisk(std::function<void(const qrm::Status& accepted)> done) override { done(disk); }
  void KeepPluginValues(std::function<void(const qrm::Status& kept)> done) override { done(kept); }
  placement::Permissions GetPermissions() const override { return permissions; }
  std::vector<manager::ClassTypeStatus> Classes() const override { return classes; }
  void SetClass(const manager::ClassChange& change, manager::ClassDone done) override {
    class_changes.push_back(change);
    done(class_changed);
  }
  void TryPod(std::string pod,
              const std::function<void(StatusOr<manager::DryRunReport>)>& done) override {
    tried_pod = std::move(pod);
    done(dry_run);
  }
  StatusOr<std::string> AnnouncePod(const std::string& pod) override {
    announced_pod = pod;
    return announced;
  }

  std::vector<manager::PluginPolicy> Policies() const override { return policies; }
  void TryConfig(const std::string& text, const std::string& /*name*/,
                 manager::TrialDone done) override {
    tried_config = text;
    done(config_trial);
  }

  void SetStatus(const manager::NodeStatus& status) {
    const MutexLock lock(mutex_);
    status_ = status;
  }
  /// The resources of requests for a reconcile, in order.
  std::vector<std::string> reconciles() const {
    const MutexLock lock(mutex_);
    return reconciles_;
  }

 private:
  mutable Mutex mutex_;
  manager::NodeStatus status_ QRM_GUARDED_BY(mutex_);
  std::vector<std::string> reconciles_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::test
