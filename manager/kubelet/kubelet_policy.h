// Detects whether kubelet pins containers itself.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace qrm::manager {

/// Reads the state files of kubelet's CPU and memory managers. Kubelet does not start if its state
/// has another policy than its configuration, so the file shows the policy in use.
///
/// Threads: one. Cost: two stat calls; a file is read when it has changed.
/// Source: kubelet's cpu_manager_state and memory_manager_state, "policyName".
class KubeletPolicy {
 public:
  /// `state_dir` is kubelet's root directory; empty: no file is read.
  explicit KubeletPolicy(const std::string& state_dir);

  /// One sentence with the remedy for each manager that is static, by the resource that it pins;
  /// none without a kubelet.
  std::map<std::string, std::string> Conflicts();

  /// Whether the latest Conflicts saw a file that the node has replaced: a file that is mounted by
  /// itself does not change when kubelet replaces it.
  bool outdated() const { return outdated_; }

 private:
  struct Manager {
    std::string resource;
    std::string file;
    std::string word;    ///< the policy that pins
    std::string what;    ///< "CPU", "memory"
    std::string remedy;  ///< the line of kubelet's configuration
    int64_t modified_nanos = -1;
    uint64_t inode = 0;
    std::string policy;
  };
  void Refresh(Manager& manager);

  std::vector<Manager> managers_;
  bool outdated_ = false;
};

}  // namespace qrm::manager
