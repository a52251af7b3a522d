// Metrics that are read from the daemon's state at each scrape and stored nowhere else.
#pragma once

#include <vector>

#include <prometheus/metric_family.h>

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

class NodeServices;
class Plugins;
class Snapshots;

/// Threads: any; never waits for an admission or a plugin.
std::vector<prometheus::MetricFamily> CollectNode(const Snapshots& snapshots,
                                                  const Plugins& plugins, const NodeServices& node,
                                                  const Machine& machine);

/// Adds the process_* metrics of this process, without those that the kernel does not provide.
/// Units: seconds, bytes. Threads: any. Source: Prometheus' client libraries, proc(5).
void AddProcess(std::vector<prometheus::MetricFamily>& families);

}  // namespace qrm::manager
