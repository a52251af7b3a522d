// Tells irqbalance which CPUs are to be quiet: what it bans is a file like those of the kernel.
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
#include "plugins/host/host_files.h"
#include "plugins/host/journal.h"

namespace qrm::host {

/// The processes that move interrupts on their own, by their names below proc: "77".
std::vector<std::string> FindBalancers(const HostFiles& files);

/// The file with the CPUs that irqbalance, which is `process`, keeps interrupts off; a ban of its
/// own configuration is among them. A process that is started anew has another one.
std::string BanFile(const std::string& process);
bool IsBanFile(const std::string& path);

/// Says again what was said last by `records`: irqbalance shows what it was told only when it
/// balances next, and whoever told it may have been killed meanwhile. What somebody else told it
/// since stays. To be called once after a start, before anything is put back.
void RepeatBans(HostFiles& files, const JournalRecords& records);

/// The files of a machine, those with irqbalance's bans among them: "2-3,6", and nothing for what
/// its own configuration says. A ban file is read and written over the socket of its process.
///
/// Errors: beside those of HostFiles, kUnavailable for a process that does not answer within a
/// fraction of a second, kFailedPrecondition for one that does not do what it was told.
/// Threads: as HostFiles. Source: irqbalance.c, sock_handle and init_socket; measured with 1.9.2.
class BalancerFiles final : public HostFiles {
 public:
  /// `files`, which are those below `root`, and `clock` outlive it.
  BalancerFiles(HostFiles& files, std::string root, const Clock& clock)
      : files_(files), root_(std::move(root)), clock_(clock) {}
  /// Waits some seconds for what is not answered yet.
  ~BalancerFiles() override;
  BalancerFiles(const BalancerFiles&) = delete;
  BalancerFiles& operator=(const BalancerFiles&) = delete;

  /// Of a ban, what the process was told, until it balances next and shows what became of that.
  StatusOr<std::string> Read(const std::string& path) const override;
  Status Write(const std::string& path, const std::string& value) override;
  std::vector<std::string> List(const std::string& directory) const override {
    return files_.List(directory);
  }
  /// A ban whose process answers.
  bool MayWrite(const std::string& path) const override;

 private:
  /// What a process was told and need not show yet.
  struct Told {
    std::string value;
    std::string before;  ///< what it showed then
    std::chrono::steady_clock::time_point until;
  };
  /// What a process says of itself.
  struct Setup {
    std::chrono::seconds interval{0};  ///< between two times that it balances
    std::string banned;
  };

  StatusOr<Setup> Ask(const std::string& path) const;
  StatusOr<std::string> Send(const std::string& path, const std::string& request) const;

  HostFiles& files_;
  const std::string root_;
  const Clock& clock_;
  std::map<std::string, Told> told_;
  /// Connections with a question that came to no answer in time: irqbalance dies of SIGPIPE when it
  /// answers one that was closed.
  mutable std::map<std::string, std::unique_ptr<FileDescriptor>> unanswered_;
};

}  // namespace qrm::host
