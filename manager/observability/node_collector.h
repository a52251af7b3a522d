// Metrics that are read from the daemon's state at each scrape and stored nowhere else.
#pragma once

#include <vector>

#include <prometheus/collectable.h>

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

class NodeServices;
class Plugins;
class Snapshots;

/// Threads: any; never waits for an admission or a plugin.
class NodeCollector final : public prometheus::Collectable {
 public:
  /// The references outlive the collector.
  NodeCollector(const Snapshots& snapshots, const Plugins& plugins, const NodeServices& node,
                const Machine& machine)
      : snapshots_(snapshots), plugins_(plugins), node_(node), machine_(machine) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const Snapshots& snapshots_;
  const Plugins& plugins_;
  const NodeServices& node_;
  const Machine& machine_;
};

}  // namespace qrm::manager
