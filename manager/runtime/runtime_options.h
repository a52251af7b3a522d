// The container runtime's sockets, and the limits of calls: the options, their defaults and keys.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "api/base/config_key.h"
#include "manager/runtime/nri/nri_answer.h"

namespace qrm::manager {

struct NriOptions {
  std::string socket = "/var/run/nri/nri.sock";
  std::string name = "qrm";
  /// Two digits; plugins with a lower index are called first.
  std::string index = "90";
  /// From connecting to the last Synchronize. Long, because a runtime registers its plugins one by
  /// one, and a silent plugin delays the others by 5 s.
  std::chrono::milliseconds handshake_timeout{15000};
  /// How long a reply of RuntimeEvents may take before the runtime gets an answer without it. The
  /// runtime's own limit, minus a margin, when that is less.
  std::chrono::milliseconds reply_timeout{1800};
  /// The waits between attempts double from the first to the last value. The first attempt is
  /// immediate, and so is the first after a connection that lasted longer than the first value.
  std::chrono::milliseconds backoff_first{200};
  std::chrono::milliseconds backoff_last{5000};
  /// Runs on the I/O loop with every such answer; it must not block.
  std::function<void(const NriAnswer&)> on_answer = [](const NriAnswer&) {};
};

struct CriOptions {
  std::string socket = "/run/containerd/containerd.sock";
  std::chrono::milliseconds timeout{2000};  ///< of each call
};

struct RuntimeOptions {
  NriOptions nri;
  CriOptions cri;
  std::string cgroup_root = "/sys/fs/cgroup";
};

/// A text of two digits.
config::ConfigKey NriIndexKey(std::string name, std::string& place, std::string help);

inline std::vector<config::ConfigKey> RuntimeKeys(RuntimeOptions& options) {
  return {
      config::PathKey("nri-socket", options.nri.socket, "The container runtime's NRI socket."),
      config::TextKey("nri-plugin-name", options.nri.name, "letters, digits, `_.+-`",
                      "The name under which qrmd registers with the runtime."),
      NriIndexKey("nri-plugin-index", options.nri.index,
                  "qrmd's index among the runtime's NRI plugins; lower ones are called first."),
      config::DurationKey("nri-retry-max", options.nri.backoff_last, {"100ms", "5m"},
                          "The longest wait between two attempts to attach to nri-socket. The "
                          "first attempts follow sooner."),
      config::PathKey("cri-socket", options.cri.socket, "The container runtime's CRI socket."),
      config::DurationKey("runtime-call-deadline", options.cri.timeout, {"10ms", "1m"},
                          "How long one CRI call may take."),
      config::PathKey(
          "cgroup-root", options.cgroup_root,
          "Where the kernel's cgroups are mounted. qrmd reads containers' cpusets there."),
  };
}

}  // namespace qrm::manager
