// Connects advisors and the cpu plugin: advisors read the node's state and send advice.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/base/status.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "plugins/cpu/sizing/advice.h"

namespace qrm::cpu {

/// The node at one time, for advisors.
struct NodeSight {
  /// A container that uses an elastic pool.
  struct Container {
    ContainerKey key;
    std::string pool;         ///< or the instance's name
    int64_t milli_cpus = 0;   ///< requested
    int64_t milli_limit = 0;  ///< the most that it may use

    bool operator==(const Container&) const = default;
  };

  AdvisedNode advised;
  std::map<int, CpuSet> online;         ///< by NUMA node
  std::map<std::string, CpuSet> pools;  ///< elastic pools
  PoolSizes in_force;                   ///< the current advice
  std::vector<Container> containers;
  std::set<std::string> with_own_cpus;  ///< UIDs of pods whose containers have exclusive CPUs
  // Only for Katalyst's advisor.
  CpuSet reserved;
  std::map<ContainerKey, CpuSet> own_cpus;            ///< of containers that have exclusive CPUs
  std::map<ContainerKey, ContainerRequest> requests;  ///< of all containers

  bool operator==(const NodeSight&) const = default;
};

/// Keeps the latest state of the node and the advice. Threads: any; no call blocks.
class AdviceDesk {
 public:
  /// `clock` outlives the desk. `on_advice` is called when the advice changes; it must not block.
  AdviceDesk(AdvisorConfig config, const Clock& clock, std::function<void()> on_advice);

  // Calls of the plugin.

  /// Shows the node and sets its generation, which changes with the CPUs. Pools stay as long as the
  /// desk; instances of pools come and go with containers.
  void Show(NodeSight sight);
  /// CPUs by pool that are advised now.
  PoolSizes InForce();
  /// CPUs by pool that its containers need by their use, as NoteUse was called last.
  PoolSizes Used() const;

  // Calls of the server.

  const AdvisorConfig& config() const { return config_; }

  /// Null before the first Show.
  std::shared_ptr<const NodeSight> Sight() const;
  struct Answer {
    uint64_t generation = 0;
    std::vector<AdviceResult> results;
  };
  /// Errors: those of AdviceBook::Take; kUnavailable before the first Show.
  StatusOr<Answer> Advise(const AdviceCall& call);

  /// Notes what containers use. Calls `on_advice` if that changed.
  void NoteUse(PoolSizes used);

  /// Calls `listener` after each Show of a changed node, until Forget. It must not block, or call
  /// Listen or Forget of the desk.
  uint64_t Listen(std::function<void()> listener);
  /// The listener is no longer called when this returns.
  void Forget(uint64_t listener);

 private:
  const AdvisorConfig config_;
  const Clock& clock_;
  const std::function<void()> on_advice_;
  mutable Mutex mutex_;
  AdviceBook book_ QRM_GUARDED_BY(mutex_);
  PoolSizes used_ QRM_GUARDED_BY(mutex_);
  std::shared_ptr<const NodeSight> sight_ QRM_GUARDED_BY(mutex_);
  uint64_t generation_ QRM_GUARDED_BY(mutex_);
  Mutex listeners_mutex_;
  std::map<uint64_t, std::function<void()>> listeners_ QRM_GUARDED_BY(listeners_mutex_);
  uint64_t next_listener_ QRM_GUARDED_BY(listeners_mutex_) = 1;
};

}  // namespace qrm::cpu
