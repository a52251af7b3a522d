// A store that counts and times its commits.
#pragma once

#include "checkpoint/store.h"
#include "manager/observability/metrics.h"

namespace qrm::manager {

/// `opened`, with every Commit recorded in `metrics`, which outlives it.
checkpoint::OpenedStore MeterStore(checkpoint::OpenedStore opened, StoreMetrics& metrics);

}  // namespace qrm::manager
