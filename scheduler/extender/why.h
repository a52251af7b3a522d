// Why a pod waits, node by node.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "api/base/status.h"
#include "cluster/access.h"
#include "scheduler/cache/scheduler_cache.h"

namespace qrm::scheduler {

/// Where a pod is, by what `cache` knows now: `namespace`, `pod`, `uid`, `state` ("waits",
/// "is being bound" or "is bound"), `node`, and for one that waits `nodes`: by name, the sentence
/// by which the node rejects it, empty where it fits. `words` are a name, NAMESPACE/NAME or a UID.
///
/// Threads: any. Cost: that of a filter call about all nodes.
/// Errors: kUnavailable until every list has come; kNotFound for a pod that is not there, or is one
/// of several of that name.
StatusOr<nlohmann::json> WhyPodWaits(SchedulerCache& cache, const std::string& words);

/// The same by lists of its own: as another process judges that follows this cluster by
/// the handles of `make_handles`. Waits for the lists, a minute at most. Errors:
/// those of WhyPodWaits; kUnavailable with what keeps the lists from coming.
StatusOr<nlohmann::json> WhyPodWaits(const cluster::ClusterAccess& access,
                                     const MakeHandles& make_handles, const std::string& words);

}  // namespace qrm::scheduler
