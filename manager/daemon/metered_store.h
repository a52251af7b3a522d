// A store that counts and times its commits, and counts its repairs.
#pragma once

#include "checkpoint/store.h"
#include "manager/observability/metrics.h"

namespace qrm::manager {

/// `opened` with a store that records its repairs and writes in `metrics`, which outlives it.
checkpoint::OpenedStore MeterStore(checkpoint::OpenedStore opened, StoreMetrics& metrics);

}  // namespace qrm::manager
