// The worst legal input of each way into qrmd.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/temp_dir.h"

namespace qrm::test {

/// What qrmd is started with.
struct DaemonSetup {
  std::string dir;
  std::string config;
  std::vector<std::string> flags;
  std::shared_ptr<void> peer;  ///< lives as long as qrmd; harmless until the attack
};

/// qrmd while it is attacked.
struct AttackedDaemon {
  std::string dir;
  Node& node;
  SimulatedRuntime& runtime;
  void* peer;                    ///< the setup's
  std::shared_mutex& connected;  ///< no pod comes while an attack holds it
};

struct DaemonAttack {
  std::function<void(DaemonSetup&)> prepare;  ///< empty: nothing to do
  std::function<void(AttackedDaemon&)> run;
};

/// By the names in docs/ways-in.md.
const std::map<std::string, DaemonAttack>& DaemonAttacks();

}  // namespace qrm::test
