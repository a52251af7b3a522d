// Child processes of the main job: they write to log files and always end with it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "api/base/status.h"

namespace qrm::test {

/// A program that runs in the background.
///
/// Threads: one; the thread that starts it must live as long as it should.
class Process {
 public:
  /// Starts `command`, whose first word is the program's path; output is appended to `log_file`.
  /// Errors: kNotFound when there is no such program.
  static StatusOr<std::unique_ptr<Process>> Start(const std::vector<std::string>& command,
                                                  const std::string& log_file);
  /// Kills it if it still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool Running();
  /// SIGKILL: the program cannot clean up.
  void Kill();
  /// SIGTERM, and waits. Errors: kDeadlineExceeded when it does not end, kInternal when it ends
  /// with an error; both with its last lines of output.
  Status Terminate(std::chrono::milliseconds limit = std::chrono::seconds(10));
  /// The end of its output, for error messages.
  std::string LastOutput() const;

 private:
  Process(pid_t pid, std::string name, std::string log_file);

  pid_t pid_;
  std::string name_;
  std::string log_file_;
  int exit_status_ = 0;  // as waitpid reports it, once pid_ is -1
};

/// The number right after the last `field` in a log; 0 without one.
int NumberInLog(const std::string& log_file, std::string_view field);

/// Runs `command` to its end and returns what it printed. Errors: kInternal with its output when it
/// fails.
StatusOr<std::string> RunCommand(const std::vector<std::string>& command);

}  // namespace qrm::test
