// Where kubelet tells of its pods and of its own pinning: the options, their defaults and keys.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "api/base/config_key.h"

namespace qrm::manager {

struct KubeletOptions {
  std::string state_dir = "/var/lib/kubelet";                           ///< empty: not looked at
  std::string pods_socket = "/var/lib/kubelet/pods-api/pods-api.sock";  ///< empty: not asked
  std::string url;                                                      ///< empty: not asked
  std::string token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
  std::string ca_file;
  std::string certificate_file;
  bool pin_first_use = false;
  bool allow_nodes_proxy = false;
  std::chrono::milliseconds poll_interval{1000};
  std::chrono::milliseconds pod_spec_wait{300};
};

/// A text that is empty or an https address such as `example`.
config::ConfigKey HttpsUrlKey(std::string name, std::string& place, const char* example,
                              std::string help);

inline std::vector<config::ConfigKey> KubeletKeys(KubeletOptions& options) {
  return {
      config::TextKey("kubelet-state-dir", options.state_dir, "absolute path; empty: not looked at",
                      "Kubelet's root directory: while its CPU or memory manager is static, qrmd "
                      "is not ready and leaves containers alone."),
      config::TextKey("kubelet-pods-socket", options.pods_socket, "absolute path; empty: not asked",
                      "Kubelet's Pods API, which tells what pods request exactly. Without it and "
                      "kubelet-url, requests are estimated from cgroup values."),
      HttpsUrlKey("kubelet-url", options.url, "https://127.0.0.1:10250/pods",
                  "Where kubelet lists its pods, asked only for pods that the Pods API does not "
                  "tell."),
      config::TextKey("kubelet-token-file", options.token_file, "path; empty: no token",
                      "The token for kubelet-url; its owner must be allowed to get nodes/pods. "
                      "Read again each time."),
      config::TextKey("kubelet-ca-file", options.ca_file, "path; empty: the system's authorities",
                      "The authority, in PEM, of the certificate at kubelet-url."),
      config::TextKey("kubelet-certificate-file", options.certificate_file,
                      "path; empty: an authority's word counts",
                      "The certificate, in PEM, that kubelet itself serves at kubelet-url, for one "
                      "that is self-signed: no other is believed. Read again each time."),
      config::SwitchKey("kubelet-pin-first-use", options.pin_first_use,
                        "Without kubelet-certificate-file: whether the first certificate that is "
                        "met at kubelet-url is believed from then on, and no other. Its "
                        "fingerprint is kept in state-dir."),
      config::SwitchKey("kubelet-allow-nodes-proxy", options.allow_nodes_proxy,
                        "Whether kubelet is asked with a token that may nodes/proxy, with which "
                        "who steals it runs commands in every container. Kubelets before 1.33 take "
                        "no lesser one."),
      config::DurationKey("kubelet-poll-interval", options.poll_interval, {"100ms", "1m"},
                          "How long after one question to kubelet-url the next may follow."),
      config::DurationKey("pod-spec-wait", options.pod_spec_wait, {"0s", "10s"},
                          "How long a creation waits for the spec of a pod that is not known yet; "
                          "then its requests are estimated."),
  };
}

}  // namespace qrm::manager
