// The CPUs and memory nodes of each container, by the runtime, the checkpoint and the plugins.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "api/base/status.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"

namespace qrm::test {

/// CPUs and memory nodes in list form.
struct Pinned {
  std::string cpus;
  std::string mems;
  bool operator==(const Pinned&) const = default;
};
using Pins = std::map<std::string, Pinned>;  // by pod UID

std::string ToString(const Pins& pins);

/// The values of the containers of these pods (UID -> name): nothing may contradict them.
Pins RunningPins(const SimulatedRuntime& runtime, const StringMap& name_by_uid);

/// The records of the checkpoint in `state_dir`, read beside a running qrmd.
StatusOr<Pins> CheckpointedPins(const std::string& state_dir);

/// The allocations in the cpu and memory plugins of `node`, which are processes.
StatusOr<Pins> GrantedPins(const Node& node);

/// Errors: kInternal when a CPU has two owners, or a pod has none.
Status ExpectOneOwner(const Pins& pins);

/// Waits until `others` say the same as `running`. Errors: how they differ after `limit`; the
/// latest error of a peer that cannot be asked.
Status AwaitAgreement(const std::function<Pins()>& running,
                      const std::map<std::string, std::function<StatusOr<Pins>()>>& others,
                      std::chrono::milliseconds limit);

}  // namespace qrm::test
