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
  /// Kubelet's own socket, whose devices and dynamic resources are added to our answers, and the
  /// pods that only kubelet knows; empty, or the same as `socket`: none. A call waits for it up to
  /// the timeout.
  std::string kubelet_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::chrono::milliseconds kubelet_timeout{1000};
  /// Off: the method answers as a kubelet in which its feature gate is off.
  bool allocatable_enabled = true;
  bool get_enabled = true;
  /// The annotations of pods that answers carry: those that say where a pod belongs.
  std::vector<std::string> annotations = {"katalyst.kubewharf.io/qos_level",
                                          "katalyst.kubewharf.io/cpu_enhancement",
                                          "katalyst.kubewharf.io/memory_enhancement",
                                          "katalyst.kubewharf.io/network_enhancement",
                                          "katalyst.kubewharf.io/pod_type",
                                          "kubernetes.io/pod-role",
                                          "kubernetes.io/resource-type"};
  /// Per process that calls. Source: kubelet's limit for all its clients together.
  int qps = 100;
  int burst = 10;
  std::optional<gid_t> group;                      ///< who besides root may use the socket
  std::chrono::milliseconds plugin_timeout{1000};  ///< of a call to a plugin
  /// Before a plugin that did not answer is asked again what its containers hold.
  std::chrono::milliseconds plugin_retry{10'000};
  /// A call that finds an older answer of the plugins gets it, and has them asked for the next one.
  std::chrono::milliseconds allocatable_max_age{5000};
};

config::ConfigKey GroupKey(std::string name, std::optional<gid_t>& place, std::string help);

inline std::vector<config::ConfigKey> PodResourcesKeys(PodResourcesOptions& options) {
  return {
      config::PathKey("pod-resources-socket", options.socket,
                      "Serves kubelet's PodResourcesLister for exporters and other readers."),
      config::TextKey("kubelet-pod-resources-socket", options.kubelet_socket,
                      "absolute path; empty: not asked",
                      "Kubelet's own socket: its devices and claims are added to our answers when "
                      "it is there."),
      config::SwitchKey("pod-resources-get", options.get_enabled,
                        "Whether Get answers; off, it fails as in a kubelet without it."),
      config::SwitchKey("pod-resources-allocatable", options.allocatable_enabled,
                        "Whether GetAllocatableResources answers; off, it fails as in a kubelet "
                        "without it."),
      config::WordsKey("pod-resources-annotations", options.annotations, "list of annotation keys",
                       "The annotations of pods that answers carry; others may hold anything that "
                       "a tenant wrote."),
      GroupKey("pod-resources-group", options.group,
               "Who besides root may use pod-resources-socket; by default qrmd's own group."),
  };
}

}  // namespace qrm::manager
