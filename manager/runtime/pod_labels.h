// Tells which labels and annotations of a sandbox are the pod's own.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "api/resource.h"

namespace qrm::manager {

/// `all` without what kubelet and the runtime add to every sandbox for their own bookkeeping: it
/// repeats the sandbox's fields, and is in no pod's manifest.
/// Source: kubelet's labels.go; containerd's pkg/cri/annotations; CRI-O's pkg/annotations.
template <typename Map>
StringMap PodsOwn(const Map& all) {
  constexpr std::array<std::string_view, 6> kAdded = {
      "io.kubernetes.cri.",    "io.kubernetes.cri-o.",        "io.cri-containerd.",
      "io.kubernetes.pod.uid", "io.kubernetes.pod.namespace", "io.kubernetes.pod.name"};
  StringMap own;
  for (const auto& [key, value] : all) {
    bool is_own = true;
    for (const std::string_view prefix : kAdded) {
      is_own = is_own && !std::string_view(key).starts_with(prefix);
    }
    if (is_own) {
      own.emplace(key, value);
    }
  }
  return own;
}

}  // namespace qrm::manager
