// Implements NodeServices: the daemon as its servers see it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/io_context.h"
#include "manager/observability/loop_watch.h"
#include "manager/observability/node_services.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::checkpoint {
class DecisionLog;
}  // namespace qrm::checkpoint

namespace qrm::manager {

class CgroupReader;
class ClassKeeper;
struct Config;
class DryRuns;
class ForeignWrites;
class HealthWatch;
class KubeletSpecs;
class KubeletWatch;
class LiveConfig;
struct LiveContainer;
class LiveContainers;
class NodeChecks;
class Plugins;
class PodResourcesServer;
class Publisher;
class Reconciler;
class RuntimeFollower;
class StateLoop;

/// Joins the status of all parts. Threads: any.
class NodeView final : public NodeServices {
 public:
  /// All outlive the view. `warnings` must not change after the first call.
  struct Parts {
    boost::asio::io_context& io;
    StateLoop& state;
    Plugins& plugins;
    RuntimeFollower& follower;
    Reconciler& reconciler;
    checkpoint::DecisionLog& decisions;
    DryRuns& dry_runs;
    PodResourcesServer& pod_resources;
    const Publisher& publisher;
    const LiveContainers& live;
    const ForeignWrites& writes;
    const NodeChecks& checks;
    const CgroupReader& cgroups;
    ClassKeeper& classes;
    KubeletSpecs& specs;
    const KubeletWatch& kubelet;
    const Machine& machine;
    const std::vector<std::string>& warnings;
    const Config& config;
    const LiveConfig& live_config;
  };
  explicit NodeView(const Parts& parts);
  ~NodeView() override;
  NodeView(const NodeView&) = delete;
  NodeView& operator=(const NodeView&) = delete;

  NodeStatus Status() const override;
  std::vector<std::string> StalledLoops() override;
  std::string RuntimeIdOf(const ContainerKey& key) const override;
  ContainerRemarks RemarksOf(const checkpoint::PodRecord& pod,
                             const std::string& name) const override;
  std::vector<UnplacedContainer> Unplaced() const override;
  std::optional<std::chrono::system_clock::time_point> LastUpdateOf(
      const ContainerKey& key) const override;
  std::vector<checkpoint::DecisionTrace> Decisions() const override;
  std::vector<checkpoint::DecisionTrace> Events() const override;
  void NoteEvent(const checkpoint::NodeEvent& event) override;
  uint64_t DecisionCount() const override;
  void ReconcileSoon(const std::string& resource) override;
  void ForgetPlugin(const std::string& resource, Forget how, ForgetDone done) override;
  void TryDisk(std::function<void(const qrm::Status& accepted)> done) override;
  void KeepPluginValues(std::function<void(const qrm::Status& kept)> done) override;
  placement::Permissions GetPermissions() const override;
  std::vector<ClassTypeStatus> Classes() const override;
  void SetClass(const ClassChange& change, ClassDone done) override;
  void TryPod(std::string pod, const std::function<void(StatusOr<DryRunReport>)>& done) override;
  StatusOr<std::string> AnnouncePod(const std::string& pod) override;
  std::vector<PluginPolicy> Policies() const override;
  void TryConfig(const std::string& text, const std::string& name, TrialDone done) override;

 private:
  void AddUnserved(NodeStatus& status) const;
  void AddIncomplete(NodeStatus& status) const;
  void AddRequests(NodeStatus& status) const;
  void AddSubsystems(NodeStatus& status) const;
  std::string UnappliedOf(const checkpoint::ContainerRecord& record,
                          const LiveContainer& container) const;
  void AddPoolsAndNodes(NodeStatus& status) const;

  const Parts parts_;
  LoopWatch loops_;
  const std::unique_ptr<HealthWatch> health_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace qrm::manager
