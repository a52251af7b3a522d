// The sources for kubelet's pods and for its own pinning: the options, their defaults and keys.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "api/base/config_key.h"

namespace qrm::manager {

struct KubeletOptions {
  std::string state_dir = "/var/lib/kubelet";                           ///< empty: not read
  std::string pods_socket = "/var/lib/kubelet/pods-api/pods-api.sock";  ///< empty: not used
  std::string url;                                                      ///< empty: not used
  std::string token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
  std::string ca_file;
  std::string certificate_file;
  bool pin_first_use = false;
  bool allow_nodes_proxy = false;
  std::chrono::milliseconds poll_interval{1000};
  std::chrono::milliseconds pod_spec_wait{300};
  bool reads_slices = false;
  std::chrono::milliseconds claims_wait{200};
  std::vector<std::string> cdi_directories = {"/etc/cdi", "/var/run/cdi"};
  std::vector<std::string> node_attributes = {"dra.net/numaNode", "dra.cpu/numaNodeID", "numaNode",
                                              "numa"};
};

/// An empty text, or an https address such as `example`.
config::ConfigKey HttpsUrlKey(std::string name, std::string& place, const char* example,
                              std::string help);

inline std::vector<config::ConfigKey> KubeletKeys(KubeletOptions& options) {
  return {
      config::TextKey(
          "kubelet-state-dir", options.state_dir, "absolute path; empty: not read",
          "Kubelet's root directory. While kubelet's CPU or memory manager is static and "
          "qrmd has a plugin of that resource, qrmd is not ready and changes no "
          "container."),
      config::TextKey("kubelet-pods-socket", options.pods_socket, "absolute path; empty: not used",
                      "Kubelet's Pods API, for the exact requests of pods. Without it and "
                      "kubelet-url, requests are estimated from cgroup values."),
      HttpsUrlKey("kubelet-url", options.url, "https://127.0.0.1:10250/pods",
                  "Kubelet's list of pods. It is queried only for pods that the Pods API does not "
                  "report."),
      config::TextKey("kubelet-token-file", options.token_file, "path; empty: no token",
                      "The token for kubelet-url; its owner must be allowed to get nodes/pods. "
                      "Read again each time."),
      config::TextKey("kubelet-ca-file", options.ca_file, "path; empty: the system's authorities",
                      "The certificate authority, in PEM, for kubelet-url."),
      config::TextKey("kubelet-certificate-file", options.certificate_file,
                      "path; empty: kubelet-ca-file is used",
                      "The certificate, in PEM, that kubelet serves at kubelet-url, for a "
                      "self-signed one. Other certificates are rejected. Read again each time."),
      config::SwitchKey("kubelet-pin-first-use", options.pin_first_use,
                        "Without kubelet-certificate-file: trust the first certificate that "
                        "kubelet serves at kubelet-url, and reject others from then on. Its "
                        "fingerprint is kept in state-dir."),
      config::SwitchKey("kubelet-allow-nodes-proxy", options.allow_nodes_proxy,
                        "Allow qrmd to query kubelet with a token that has the `nodes/proxy` "
                        "permission. Anyone who steals that token can run commands in every "
                        "container. Kubelets before 1.33 need it."),
      config::DurationKey("kubelet-poll-interval", options.poll_interval, {"100ms", "1m"},
                          "The shortest interval between two queries to kubelet-url."),
      config::DurationKey("pod-spec-wait", options.pod_spec_wait, {"0s", "10s"},
                          "How long a container's creation waits for the spec of an unknown pod. "
                          "After that, its requests are estimated."),
      config::SwitchKey("resource-slices", options.reads_slices,
                        "Read the node's ResourceSlices from the API server (`kubeconfig`), for "
                        "the NUMA nodes of the devices of resource claims (DRA), and the claims "
                        "of network interfaces. Without it, they are found by the devices' CDI "
                        "specifications and the kernel."),
      config::DurationKey("claims-wait", options.claims_wait, {"0s", "5s"},
                          "How long a container's creation waits for the NUMA nodes of its claims' "
                          "devices. After that, it is placed as if they were unknown."),
      config::WordsKey("cdi-directories", options.cdi_directories, "list of directories",
                       "Where the specifications of CDI devices are, as the runtime has it. Of a "
                       "device that two directories have, the last one counts."),
      config::WordsKey("claims-node-attributes", options.node_attributes,
                       "list of attributes of devices in ResourceSlices",
                       "Which attributes show a device's NUMA node, besides "
                       "resource.kubernetes.io/numaNode, which is read first. A name without a "
                       "domain is one of the driver's own."),
  };
}

}  // namespace qrm::manager
