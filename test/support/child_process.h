// A program under test in a separate process.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/base/check.h"

namespace qrm::test {

/// Stops a child of this process, and returns once it is stopped: the signal wakes one of its
/// threads, and until that runs the others continue.
inline void StopChild(pid_t child) {
  ::kill(child, SIGSTOP);
  siginfo_t how = {};
  QRM_CHECK(::waitid(P_PID, static_cast<id_t>(child), &how, WSTOPPED | WEXITED | WNOWAIT) == 0);
}

/// Runs from construction until it exits, or is killed with the object.
class ChildProcess {
 public:
  /// `arguments` begin with the path of the program; what it prints goes to the file `output`.
  ChildProcess(const std::vector<std::string>& arguments, const std::string& output)
      : output_(output) {
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    QRM_CHECK(posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~ChildProcess() {
    if (pid_ > 0) {
      Signal(SIGKILL);
      Wait();
    }
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  void Signal(int signal) const { ::kill(pid_, signal); }

  /// The exit code, or minus the signal that ended it.
  int Wait() {
    int status = 0;
    QRM_CHECK(::waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  /// What it has printed so far.
  std::string Output() const {
    std::ostringstream text;
    text << std::ifstream(output_).rdbuf();
    return text.str();
  }

 private:
  std::string output_;
  pid_t pid_ = -1;
};

}  // namespace qrm::test
