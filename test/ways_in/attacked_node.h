// A qrmd that an attack can reach while pods come and go.
#pragma once

#include <chrono>
#include <memory>
#include <shared_mutex>
#include <string>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/temp_dir.h"
#include "test/ways_in/attacked_program.h"
#include "test/ways_in/daemon_attacks.h"
#include "test/ways_in/memory_limit.h"

namespace qrm::test {

class AttackedNode final : public AttackedProgram {
 public:
  /// Prepares for `attack`; the programs are in `bin_dir`.
  AttackedNode(DaemonAttack attack, const std::string& bin_dir);

  /// Also runs pods that make the answers of its sockets large.
  Status Start() override;
  StatusOr<std::chrono::nanoseconds> Serve() override;
  Status Attack() override;
  bool Runs() override { return node_->DaemonRuns(); }
  pid_t pid() const override { return node_->daemon_pid(); }

 private:
  const TempDir dir_;
  const DaemonAttack attack_;
  std::shared_ptr<void> peer_;
  SimulatedRuntime runtime_{dir_.path(), std::chrono::seconds(60)};
  const MemoryLimit limit_;
  std::unique_ptr<Node> node_;
  std::shared_mutex connected_;
  int admitted_ = 0;
};

}  // namespace qrm::test
