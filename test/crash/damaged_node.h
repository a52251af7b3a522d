// A node whose databases are damaged between two runs, and what it must still do then.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include <sys/types.h>

#include "api/base/status.h"
#include "test/crash/file_damage.h"
#include "test/crash/pins.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/temp_dir.h"

namespace qrm::test {

enum class PluginsRun { kInside, kAsProcesses };

/// Runs pods with exclusive CPUs and pods that share the rest, all the time.
///
/// Threads: one.
class DamagedNode {
 public:
  /// `configs` is the directory of the configurations; `damage` outlives the node.
  DamagedNode(PluginsRun plugins, const std::string& configs, FileDamage& damage);

  Status Start();
  /// Both in the `round`-th way; return what was done. Errors: what does not hold.
  StatusOr<std::string> DamageCheckpoint(int round);
  /// Damages the cpu or the memory plugin, in turn: both must be processes.
  StatusOr<std::string> DamagePlugin(int round);

  /// What qrmd said last.
  std::string LogEnd() const;
  std::chrono::milliseconds slowest() const { return slowest_; }

 private:
  using Inodes = std::map<ino_t, std::string>;

  Status AddPod(const std::string& role);
  Status RemoveOldest();
  Status Replace();
  Pins OwnersRunning() const;
  Pins Running() const;
  Inodes FilesOfState() const;
  Status ExpectFiles(const Inodes& before) const;
  static bool IsReadyButForTheDisk(const v1::GetStatusResponse& status);
  Status StartOnDamage();
  Status ExpectNothingAdmitted();
  Status ExpectOwners() const;
  Status ExpectUnmoved(const Pins& before) const;
  Status ExpectAgreement();
  Status ExpectAdmissions();
  void TidyUp() const;

  const PluginsRun plugins_;
  const std::string configs_;
  FileDamage& damage_;
  const TempDir dir_ = TempDir::InMemory();
  SimulatedRuntime runtime_;
  Node node_;
  StringMap owners_;   // running pods with exclusive CPUs: UID -> name
  StringMap sharers_;  // the others
  int next_pod_ = 100000;
  std::chrono::milliseconds slowest_{0};
};

}  // namespace qrm::test
