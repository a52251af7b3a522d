// Gives the command a process group of its own, so that a kill reaches all of it.
#include "tools/plugin_check/plugin_process.h"

#include <array>
#include <csignal>
#include <cstring>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/base/errorf.h"

namespace qrm::manager {

Status PluginProcess::Start() {
  std::string shell = "sh";
  std::string option = "-c";
  std::string command = command_;
  const std::array<char*, 4> words = {shell.data(), option.data(), command.data(), nullptr};
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int error = ::posix_spawn(&group_, "/bin/sh", nullptr, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    group_ = 0;
    return Errorf(StatusCode::kInternal, "cannot run \"{}\": {}; check that /bin/sh can be run",
                  command_, std::strerror(error));
  }
  return OkStatus();
}

void PluginProcess::Kill() {
  if (group_ > 0) {
    ::kill(-group_, SIGKILL);
    ::waitpid(group_, nullptr, 0);
    group_ = 0;
  }
}

}  // namespace qrm::manager
