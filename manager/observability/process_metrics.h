// The standard process metrics of Prometheus' client libraries.
#pragma once

#include <vector>

#include <prometheus/metric_family.h>

namespace qrm::manager {

/// Adds the process_* metrics of this process, without those that the kernel does not provide.
/// Units: seconds, bytes. Threads: any. Source: Prometheus' client libraries, proc(5).
void AddProcess(std::vector<prometheus::MetricFamily>& families);

}  // namespace qrm::manager
