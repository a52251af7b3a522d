// A qrm-scheduler that an attack can reach while kube-scheduler calls.
#pragma once

#include <chrono>
#include <string>

#include "test/e2e/scheduler_process.h"
#include "test/support/temp_dir.h"
#include "test/ways_in/attacked_program.h"
#include "test/ways_in/memory_limit.h"
#include "test/ways_in/scheduler_attacks.h"

namespace qrm::test {

class AttackedScheduler final : public AttackedProgram {
 public:
  AttackedScheduler(SchedulerAttack attack, const std::string& bin_dir);

  Status Start() override;
  StatusOr<std::chrono::nanoseconds> Serve() override;
  Status Attack() override;
  bool Runs() override { return scheduler_.process().Running(); }
  pid_t pid() const override { return pid_; }

 private:
  void PutPlainPod(const std::string& name);

  const TempDir dir_;
  const SchedulerAttack attack_;
  const MemoryLimit limit_;
  SchedulerProcess scheduler_;
  pid_t pid_ = 0;
  int attacks_ = 0;
};

}  // namespace qrm::test
