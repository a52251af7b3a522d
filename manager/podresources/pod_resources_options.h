// How the pod-resources socket is served: the options, their defaults and their keys.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "api/base/config_key.h"

namespace qrm::manager {

struct PodResourcesOptions {
  std::string socket = "/var/lib/qrm/pod-resources/kubelet.sock";
  /// Kubelet's own socket. Answers also have its devices and dynamic resources, and the pods that
  /// only kubelet knows. Empty, or the same as `socket`: not queried. A call waits for it up to the
  /// timeout.
  std::string kubelet_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::chrono::milliseconds kubelet_timeout{1000};
  /// Off: the method answers like a kubelet without its feature gate.
  bool allocatable_enabled = true;
  bool get_enabled = true;
  /// The annotations of pods that answers have: those that determine where a pod belongs.
  std::vector<std::string> annotations = {"katalyst.kubewharf.io/qos_level",
                                          "katalyst.kubewharf.io/cpu_enhancement",
                                          "katalyst.kubewharf.io/memory_enhancement",
                                          "katalyst.kubewharf.io/network_enhancement",
                                          "katalyst.kubewharf.io/pod_type",
                                          "kubernetes.io/pod-role",
                                          "kubernetes.io/resource-type"};
  /// Per calling process. Source: kubelet's limit for all its clients together.
  int qps = 100;
  int burst = 10;
  std::optional<gid_t> group;                      ///< may use the socket, besides root
  std::chrono::milliseconds plugin_timeout{1000};  ///< of a call to a plugin
  /// Until a plugin that did not answer is asked about its containers again.
  std::chrono::milliseconds plugin_retry{10'000};
  /// A call that finds an older answer of the plugins returns it, and starts a refresh.
  std::chrono::milliseconds allocatable_max_age{5000};
  /// How long the last good answer of a plugin or of kubelet is used while it fails.
  std::chrono::milliseconds keep_answers{300'000};
};

config::ConfigKey GroupKey(std::string name, std::optional<gid_t>& place, std::string help);

inline std::vector<config::ConfigKey> PodResourcesKeys(PodResourcesOptions& options) {
  return {
      config::PathKey("pod-resources-socket", options.socket,
                      "Serves kubelet's PodResourcesLister for exporters and other readers."),
      config::TextKey(
          "kubelet-pod-resources-socket", options.kubelet_socket, "absolute path; empty: not used",
          "Kubelet's own socket. If it exists, qrmd adds kubelet's devices and claims to "
          "its answers."),
      config::SwitchKey("pod-resources-get", options.get_enabled,
                        "Whether Get is enabled. If not, it fails as in a kubelet without it."),
      config::SwitchKey("pod-resources-allocatable", options.allocatable_enabled,
                        "Whether GetAllocatableResources is enabled. If not, it fails as in a "
                        "kubelet without it."),
      config::DurationKey("pod-resources-keep-answers", options.keep_answers, {"0s", "24h"},
                          "How long allocatable resources stay listed while their plugin, or "
                          "kubelet, fails to report them."),
      config::WordsKey("pod-resources-annotations", options.annotations, "list of annotation keys",
                       "The annotations of pods that answers contain. Others are left out, since "
                       "tenants can write anything into them."),
      GroupKey("pod-resources-group", options.group,
               "The group that may use pod-resources-socket, besides root. The default is qrmd's "
               "own group."),
  };
}

}  // namespace qrm::manager
