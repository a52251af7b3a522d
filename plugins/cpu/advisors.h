// The advisors of a node's pools: what they see of it, and what pools ask for by them.
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

/// Serves advisors on the configured socket, has the one that is built in, asks Katalyst's, and
/// lets pools follow them. Threads: one; `on_advice` is called on others.
class Advisors {
 public:
  /// `config` and `clock` outlive it. `remembered` was advised before a restart: it counts for one
  /// more lease, or until an advisor says otherwise. `on_advice` is called when there is new
  /// advice; it must not block. A socket that cannot be opened is tried again by Follow, and said
  /// in the log.
  Advisors(const CpuPluginConfig& config, const Clock& clock, PoolSizes remembered,
           std::function<void()> on_advice);
  ~Advisors();
  Advisors(const Advisors&) = delete;
  Advisors& operator=(const Advisors&) = delete;

  /// CPUs by pool that are asked for now, instead of what containers ask for. Stays where it is.
  const PoolSizes& advised() const { return advised_; }

  /// Goes a step towards what is advised now, at most once a second. Returns whether advised() is
  /// another one then.
  bool Follow(const View& view);

  /// Shows the node as it is; `grants` are all that was given.
  void Show(const View& view, const sdk::Grants& grants);

  /// CPUs that batch work may count on by whoever advises, by NUMA node; empty: nobody says so.
  std::map<int, double> headroom() const;

 private:
  void Serve();
  void Recall();

  const CpuPluginConfig& config_;
  const Clock& clock_;
  PoolSizes advised_;
  bool recalls_;  // advised_ is what was remembered, and the desk does not know yet
  std::optional<std::chrono::steady_clock::time_point> followed_at_;
  std::string problem_;  // why there is no socket
  std::unique_ptr<AdviceDesk> desk_;
  // These end before the desk.
  std::unique_ptr<AdvisorServer> server_;
  std::unique_ptr<UseAdvisor> use_;
  std::unique_ptr<KatalystAdvisor> katalyst_;
};

}  // namespace qrm::cpu
