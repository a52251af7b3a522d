// Detects whether kubelet pins containers as well.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace qrm::manager {

/// Looks at the states of kubelet's CPU and memory managers. A kubelet whose state names another
/// policy than its configuration does not start: the file tells what it runs with.
///
/// Threads: one. Cost: two stat calls; a file is read when it changed.
/// Source: kubelet's cpu_manager_state and memory_manager_state, "policyName".
class KubeletPolicy {
 public:
  /// `state_dir` is kubelet's root directory; empty: kubelet is not looked at.
  explicit KubeletPolicy(const std::string& state_dir);

  /// One sentence with the remedy for each manager that is static; none when there is no kubelet.
  std::vector<std::string> Conflicts();

  /// Whether a file was no longer the node's when Conflicts last looked: one that is mounted by
  /// itself stays what it was when kubelet puts a new one in its place.
  bool outdated() const { return outdated_; }

 private:
  struct Manager {
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
