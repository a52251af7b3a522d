// The advisors of a node's pools: their view of the node, and the sizes that they advise.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "api/base/clock.h"
#include "plugins/cpu/config/config.h"
#include "plugins/cpu/sizing/pool_size.h"
#include "plugins/cpu/state.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::cpu {

class AdviceDesk;
class AdvisorServer;
class KatalystAdvisor;
class UseAdvisor;

/// Serves advisors on the configured socket, runs the built-in advisor, queries Katalyst's advisor,
/// and lets pools follow them. Threads: one; `on_advice` is called on others.
class Advisors {
 public:
  /// `config` and `clock` outlive the object. `remembered` is the advice from before a restart. It
  /// is in force for one more lease, or until an advisor replaces it. `on_advice` is called on new
  /// advice and must not block. If the socket cannot be opened, this is logged, and Follow tries
  /// again.
  Advisors(const CpuPluginConfig& config, const Clock& clock, PoolSizes remembered,
           std::function<void()> on_advice);
  ~Advisors();
  Advisors(const Advisors&) = delete;
  Advisors& operator=(const Advisors&) = delete;

  /// CPUs by pool that replace what its containers ask for. The reference stays valid.
  const PoolSizes& advised() const { return advised_; }

  /// CPUs that pools need by their use; null if nothing measures it. The pointer stays valid.
  const PoolSizes* used() const { return use_ == nullptr ? nullptr : &used_; }

  /// Goes a step towards the current advice, at most once a second. Returns whether advised()
  /// changed.
  bool Follow(const View& view);

  /// Shows the node to advisors; `grants` are all grants.
  void Show(const View& view, const sdk::Grants& grants);

  /// What the built-in advisor cannot measure, in one sentence; empty: nothing.
  std::string problem() const;

  /// CPUs by NUMA node that batch work can count on; empty when no advisor reports them.
  std::map<int, double> headroom() const;

 private:
  void Serve();
  void Recall();

  const CpuPluginConfig& config_;
  const Clock& clock_;
  PoolSizes advised_;
  PoolSizes used_;
  bool recalls_;  // advised_ is still the remembered advice, which the desk does not have
  std::optional<std::chrono::steady_clock::time_point> followed_at_;
  std::string problem_;  // why there is no socket
  std::unique_ptr<AdviceDesk> desk_;
  // These end before the desk.
  std::unique_ptr<AdvisorServer> server_;
  std::unique_ptr<UseAdvisor> use_;
  std::unique_ptr<KatalystAdvisor> katalyst_;
};

}  // namespace qrm::cpu
