// A real cgroup with real processes, for code that moves a container's threads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "api/base/status.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::test {

/// A cgroup where containers can be frozen; its processes end with it. Needs root.
class ContainerCgroup {
 public:
  /// At `path`, or at a new one. Errors: kFailedPrecondition where no cgroup can be created.
  static StatusOr<std::unique_ptr<ContainerCgroup>> Create(const std::string& path = NextPath());
  ~ContainerCgroup();
  ContainerCgroup(const ContainerCgroup&) = delete;
  ContainerCgroup& operator=(const ContainerCgroup&) = delete;

  const std::string& directory() const { return directory_; }
  sdk::ClassTarget Target() const {
    return {.key = {"pod", "c"}, .runtime_id = "c1", .cgroups_path = path_};
  }

  /// Forks a process inside that does `work`, which may use system calls only, and ends. Returns
  /// its id when it is inside.
  pid_t Run(const std::function<void()>& work);
  /// The present threads inside.
  std::vector<pid_t> Threads() const;

 private:
  static std::string NextPath();
  ContainerCgroup(std::string directory, std::string path)
      : directory_(std::move(directory)), path_(std::move(path)) {}

  std::string directory_;
  std::string path_;
  std::vector<pid_t> children_;
};

/// For ContainerCgroup::Run: waits until it is killed.
void Idle();
/// Forks `breeders` processes that fork a child a millisecond, which lives a few of them, until
/// they are killed.
void ForkStorm(int breeders);

}  // namespace qrm::test
