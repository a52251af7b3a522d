// Whether pods fit nodes, and how well, by all registered resources.
#pragma once

#include <string>

#include "api/base/status.h"
#include "scheduler/cache/handle.h"
#include "scheduler/cache/snapshot.h"

namespace qrm::scheduler {

/// OK when `snapshot` may be judged by. Errors: kUnavailable naming what has not been listed yet.
Status CheckSynced(const Snapshot& snapshot);

/// Why `pod` does not fit `node`; empty when it does. One sentence without numbers: the scheduler
/// counts equal ones. A resource that the node has not reported rejects the pods that request it.
/// Threads: any. Cost: an AdmitPod for each type.
std::string RefusalOf(const Snapshot& snapshot, const HandleRegistry& handles, const Pod& pod,
                      const std::string& node);

/// How good a place `node` is for a pod that fits: 0 to 100, the mean over the resources that care;
/// 0 when none does. Threads: any.
int ScoreOf(const Snapshot& snapshot, const Pod& pod, const std::string& node);

/// What the resources of `node` decide for `pod`, as annotations. Errors: theirs; kInternal when
/// two decide about the same annotation.
StatusOr<StringMap> DecisionOf(const Snapshot& snapshot, const Pod& pod, const std::string& node);

}  // namespace qrm::scheduler
