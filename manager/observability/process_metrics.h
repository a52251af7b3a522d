// The metrics that every program for Prometheus has of its process.
#pragma once

#include <vector>

#include <prometheus/metric_family.h>

namespace qrm::manager {

/// Adds process_* of this process; those that the kernel does not tell are left out.
/// Units: seconds, bytes. Threads: any. Source: Prometheus' client libraries, proc(5).
void AddProcess(std::vector<prometheus::MetricFamily>& families);

}  // namespace qrm::manager
