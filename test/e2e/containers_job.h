// The main job on real containers: pods that are created through CRI, placed, placed again and
// reported.
#pragma once

#include <chrono>
#include <string>

#include "api/base/status.h"

namespace qrm::test {

struct ContainersOptions {
  std::string bin_dir;
  std::string work_dir;  ///< private; short, since sockets go below it
  std::string cri_socket;
  std::string nri_socket;
  std::string image;
  std::string cgroup_parent;
  std::chrono::milliseconds reconcile_period{3000};
};

/// Runs the whole job and prints what it sees. Errors: the first thing that is not as it should be.
Status PlayContainers(const ContainersOptions& options);

}  // namespace qrm::test
