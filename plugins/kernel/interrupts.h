// The machine's interrupts, the claims that keep them off CPUs, and irqbalance, which gets the
// quiet CPUs: its bans are presented as a file, like the kernel's files.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/base/clock.h"
#include "api/base/file_descriptor.h"
#include "api/base/status.h"
#include "api/id_set.h"
#include "plugins/kernel/claim.h"
#include "plugins/kernel/kernel_files.h"
#include "plugins/kernel/kernel_values.h"

namespace qrm::kernel {

/// An interrupt that the kernel does not allow to be moved.
struct FixedInterrupt {
  std::string name;  ///< "36 virtio1-req.0"
  CpuSet cpus;       ///< the CPUs that handle it
};

/// A process that moves interrupts, such as irqbalance.
struct Balancer {
  std::string process;
  bool takes_bans = false;  ///< accepts a list of CPUs to avoid
};

/// A machine's interrupts, as far as this process may move them.
struct Interrupts {
  std::vector<std::string> movable;  ///< their directories below the root
  std::vector<FixedInterrupt> fixed;
  std::vector<Balancer> balancers;
};

/// Cost: some files for each interrupt and process. Source: the kernel's
/// core-api/irq/irq-affinity.
Interrupts ReadInterrupts(const KernelFiles& files);

/// Finds interrupts that only seem movable, such as kernel-managed interrupts before Linux 6.12, by
/// writing each interrupt's current CPUs.
void ProbeInterrupts(KernelFiles& files, Interrupts& interrupts);

/// The claims that keep `cpus` quiet, in the order of writing.
std::vector<Claim> QuietClaims(const CpuSet& cpus, const Interrupts& interrupts);

/// Whether only `cpus` handle the interrupt with the affinity file at `path`; false if unknown.
bool IsHandledBy(const CpuSet& cpus, const std::string& path, const KernelFiles& files);

/// The claim that keeps the balancer `process` off the quiet CPUs `cpus`.
Claim BanClaim(const std::string& process, const std::string& cpus);

/// The owners of quiet CPUs in `records`, with their CPUs.
std::map<std::string, std::string> QuietOwners(const JournalRecords& records);

/// The irqbalance processes, by their names below proc, such as "77".
std::vector<std::string> FindBalancers(const KernelFiles& files);

/// The virtual file with the CPUs that the irqbalance `process` keeps interrupts off, including
/// bans from its configuration. A restarted process has another file.
std::string BanFile(const std::string& process);
bool IsBanFile(const std::string& path);

/// Repeats the last bans in `records`. irqbalance shows a new ban only after its next balancing,
/// and the process that sent it may have been killed before. Bans sent since by other processes
/// stay. Call it once after a start, before any value is restored.
void RepeatBans(KernelFiles& files, const JournalRecords& records);

/// The machine's files, with irqbalance's bans as additional files. A ban file contains a CPU list
/// such as "2-3,6"; it is empty if only irqbalance's configuration applies. It is read and written
/// over the socket of its process.
///
/// Errors: those of KernelFiles; kUnavailable for a process that does not answer within a fraction
/// of a second; kFailedPrecondition for a process that does not apply a ban. Threads: as
/// KernelFiles. Source: irqbalance.c, sock_handle and init_socket; measured with 1.9.2.
class BalancerFiles final : public KernelFiles {
 public:
  /// `files`, which are the files below `root`, and `clock` must outlive it.
  BalancerFiles(KernelFiles& files, std::string root, const Clock& clock)
      : files_(files), root_(std::move(root)), clock_(clock) {}
  /// Waits some seconds for pending answers.
  ~BalancerFiles() override;
  BalancerFiles(const BalancerFiles&) = delete;
  BalancerFiles& operator=(const BalancerFiles&) = delete;

  /// For a ban: the last sent value, until the process balances next and shows the result.
  StatusOr<std::string> Read(const std::string& path) const override;
  Status Write(const std::string& path, const std::string& value) override;
  std::vector<std::string> List(const std::string& directory) const override {
    return files_.List(directory);
  }
  /// For a ban: whether its process answers.
  bool MayWrite(const std::string& path) const override;

 private:
  /// A sent value that the process need not show yet.
  struct Told {
    std::string value;
    std::string before;  ///< what the process showed at that time
    std::chrono::steady_clock::time_point until;
  };
  /// A process's own report.
  struct Setup {
    std::chrono::seconds interval{0};  ///< between two balancings
    std::string banned;
  };

  StatusOr<Setup> Ask(const std::string& path) const;
  StatusOr<std::string> Send(const std::string& path, const std::string& request) const;

  KernelFiles& files_;
  const std::string root_;
  const Clock& clock_;
  std::map<std::string, Told> told_;
  /// Connections without an answer in time. They stay open: irqbalance dies of SIGPIPE when it
  /// answers on a closed connection.
  mutable std::map<std::string, std::unique_ptr<FileDescriptor>> unanswered_;
};

}  // namespace qrm::kernel
