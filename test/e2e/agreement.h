// Whether the runtime, the kernel and qrmd say the same about every container.
#pragma once

#include "api/base/status.h"
#include "test/e2e/kubelet.h"
#include "test/e2e/node.h"

namespace qrm::test {

/// OK when, at this moment,
///   - qrmd knows every container that CRI lists as made or running, by the id that CRI has for it,
///     and none that CRI does not list;
///   - pod-resources List has each of them;
///   - the cgroup of each that runs has the CPUs and memory nodes that qrmd reports, and List
///     reports those CPUs where they are the container's own.
/// Errors: the first difference; what could not be asked.
Status CompareAll(Kubelet& kubelet, const Node& node);

/// The same, once it holds: resynchronization takes two lists at most 10 s apart.
Status AwaitAgreement(Kubelet& kubelet, const Node& node,
                      std::chrono::milliseconds limit = std::chrono::seconds(20));

}  // namespace qrm::test
