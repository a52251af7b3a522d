// A pod made over CRI, as kubelet makes one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "tools/qrmctl/pod_file.h"

namespace qrm::manager::cli {

/// Where the pod is made.
struct PlaceOfPlay {
  std::string runtime_socket;
  std::string cgroup_parent;  ///< empty: the runtime's own
};

/// On the host's network, which needs no CNI plugin, and without volumes, variables and logs.
class PlayedPod {
 public:
  /// `qos_class` as KubeletValues takes it. Opens no connection yet.
  PlayedPod(PodFile file, std::string_view qos_class, const PlaceOfPlay& place);
  /// Leaves the pod as it is.
  ~PlayedPod();
  PlayedPod(const PlayedPod&) = delete;
  PlayedPod& operator=(const PlayedPod&) = delete;

  /// Makes the sandbox, then makes and starts each container. Errors: kUnavailable without a
  /// runtime, kNotFound with a sentence on how to get an image that is not there, else the
  /// runtime's own, which quotes qrmd's rejection; what was created stays until Remove.
  Status Run();
  /// A sentence for each container that has ended, once each. Errors: the runtime's.
  StatusOr<std::vector<std::string>> NewlyEnded();
  /// Stops and removes what was made. Errors: the runtime's.
  Status Remove();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager::cli
