// A kubelet and a qrmd beside the containerd of scripts/containerd.sh.
#pragma once

#include <filesystem>
#include <string>

#include "test/e2e/kubelet.h"
#include "test/e2e/node.h"
#include "test/support/environment.h"

namespace qrm::test {

inline Kubelet::Options KubeletBesideContainerd() {
  return {.socket = FromEnvironment("QRM_CRI_SOCKET"),
          .image = FromEnvironment("QRM_IMAGE"),
          .cgroup_parent = FromEnvironment("QRM_CGROUP_PARENT"),
          .log_directory = FromEnvironment("QRM_WORK_DIR") + "/logs"};
}

/// `options` of a qrmd with a directory called `name` in the script's own, and NAME-qrmd.yaml
/// beside it; an NRI socket that is set stays.
inline Node::Options QrmdBesideContainerd(const std::string& name, Node::Options options) {
  const std::string work_dir = FromEnvironment("QRM_WORK_DIR");
  options.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path();
  options.work_dir = work_dir + "/" + name;
  options.config = work_dir + "/" + name + "-qrmd.yaml";
  options.cri_socket = FromEnvironment("QRM_CRI_SOCKET");
  if (options.nri_socket.empty()) {
    options.nri_socket = FromEnvironment("QRM_NRI_SOCKET");
  }
  options.flags.emplace_back("--kubelet-state-dir=");  // there is no kubelet
  return options;
}

}  // namespace qrm::test
