// Runs the plugin that is checked, to kill it and start it again.
#pragma once

#include <string>
#include <utility>

#include <sys/types.h>

#include "api/base/status.h"

namespace qrm::manager {

/// A shell's command with all that it starts. Killed with the object.
///
/// Threads: one.
class PluginProcess {
 public:
  explicit PluginProcess(std::string command) : command_(std::move(command)) {}
  ~PluginProcess() { Kill(); }
  PluginProcess(const PluginProcess&) = delete;
  PluginProcess& operator=(const PluginProcess&) = delete;

  /// Errors: kInternal, when the shell cannot be started; what the command does is not known yet.
  Status Start();
  /// kill -9, and waits for the end.
  void Kill();

 private:
  const std::string command_;
  pid_t group_ = 0;  // 0: none runs
};

}  // namespace qrm::manager
