// Where advisors and the cpu plugin meet: what the node is like goes out, what is advised comes in.
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

/// The node at one moment, for advisors.
struct NodeSight {
  /// One that uses an elastic pool.
  struct Container {
    ContainerKey key;
    std::string pool;         ///< or the instance's name
    int64_t milli_cpus = 0;   ///< requested
    int64_t milli_limit = 0;  ///< the most that it may use

    bool operator==(const Container&) const = default;
  };

  AdvisedNode advised;
  std::map<int, CpuSet> online;         ///< by NUMA node
  std::map<std::string, CpuSet> pools;  ///< elastic ones
  PoolSizes in_force;                   ///< what is advised now
  std::vector<Container> containers;
  std::set<std::string> with_own_cpus;  ///< UIDs of pods of which containers have CPUs of their own
  // For those who are told more.
  CpuSet reserved;
  std::map<ContainerKey, CpuSet> own_cpus;            ///< of containers that have any
  std::map<ContainerKey, ContainerRequest> requests;  ///< of all of them

  bool operator==(const NodeSight&) const = default;
};

/// Keeps the last sight of the node and what was advised. Threads: any; nothing waits here.
class AdviceDesk {
 public:
  /// `clock` outlives the desk. `on_advice` is called when something else is advised; it must not
  /// block.
  AdviceDesk(AdvisorConfig config, const Clock& clock, std::function<void()> on_advice);

  // What the plugin does.

  /// Shows the node; its generation is set here: other CPUs make another one. Pools stay while the
  /// desk does, and instances of pools come and go with containers.
  void Show(NodeSight sight);
  /// CPUs by pool that are advised now.
  PoolSizes InForce();

  // What the server does.

  const AdvisorConfig& config() const { return config_; }

  /// Null before the first Show.
  std::shared_ptr<const NodeSight> Sight() const;
  struct Answer {
    uint64_t generation = 0;
    std::vector<AdviceResult> results;
  };
  /// Errors: those of AdviceBook::Take; kUnavailable before the first Show.
  StatusOr<Answer> Advise(const AdviceCall& call);

  /// `listener` is called after each Show of a node that is not as before, until Forget; it must
  /// not block or call the desk's Listen and Forget.
  uint64_t Listen(std::function<void()> listener);
  /// The listener is not called any more when this returns.
  void Forget(uint64_t listener);

 private:
  const AdvisorConfig config_;
  const Clock& clock_;
  const std::function<void()> on_advice_;
  mutable Mutex mutex_;
  AdviceBook book_ QRM_GUARDED_BY(mutex_);
  std::shared_ptr<const NodeSight> sight_ QRM_GUARDED_BY(mutex_);
  uint64_t generation_ QRM_GUARDED_BY(mutex_);
  Mutex listeners_mutex_;
  std::map<uint64_t, std::function<void()>> listeners_ QRM_GUARDED_BY(listeners_mutex_);
  uint64_t next_listener_ QRM_GUARDED_BY(listeners_mutex_) = 1;
};

}  // namespace qrm::cpu
