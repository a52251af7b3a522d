// Makes pods with several containers, real ones or simulated.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "test/e2e/kubelet.h"
#include "test/support/scripted_cri.h"
#include "test/support/scripted_runtime.h"

namespace qrm::test {

/// Threads: any; calls block.
class PodMaker {
 public:
  virtual ~PodMaker() = default;
  /// The pod of `spec` with `containers` instead of its single one. Errors: the first rejection.
  virtual Status Make(const PodSpec& spec, const std::vector<ContainerSpec>& containers) = 0;
};

/// Reports pods to qrmd as containerd does: one hook at a time on the whole node.
class ScriptedPodMaker final : public PodMaker {
 public:
  /// The two sockets are made in `directory`.
  explicit ScriptedPodMaker(const std::string& directory);

  const std::string& nri_socket() const { return nri_socket_; }
  const std::string& cri_socket() const { return cri_socket_; }

  Status Make(const PodSpec& spec, const std::vector<ContainerSpec>& containers) override;
  /// The CPUs that each container was created with, by "UID/name".
  std::map<std::string, std::string> cpus() const;

 private:
  Status MakeContainer(const nri::PodSandbox& pod, const PodSpec& spec,
                       const ContainerSpec& container);

  const std::string nri_socket_;
  const std::string cri_socket_;
  std::mutex hook_;  // containerd holds one around every hook
  mutable Mutex mutex_;
  std::map<std::string, std::string> cpus_ QRM_GUARDED_BY(mutex_);
  ScriptedRuntime::Inventory inventory_ QRM_GUARDED_BY(mutex_);
  ScriptedCri cri_;
  ScriptedRuntime nri_;  // last, for its threads ask the others
};

/// Real containers, of the containerd that scripts/containerd.sh runs.
class ContainerdPodMaker final : public PodMaker {
 public:
  explicit ContainerdPodMaker(Kubelet::Options options) : options_(std::move(options)) {}

  Status Make(const PodSpec& spec, const std::vector<ContainerSpec>& containers) override;

 private:
  const Kubelet::Options options_;
};

}  // namespace qrm::test
