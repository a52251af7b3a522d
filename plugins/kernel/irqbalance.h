// Sends irqbalance the quiet CPUs: its bans are presented as a file, like the kernel's files.
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
#include "plugins/kernel/kernel_files.h"
#include "plugins/kernel/kernel_values.h"

namespace qrm::kernel {

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
