// Decides which labels and annotations of a sandbox are the pod's own, and how much of them is
// kept: on the node and, so that both see the same, in the scheduler.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "api/base/foreign_text.h"
#include "api/resource.h"

namespace qrm {

/// Of one label or annotation, and of all labels or all annotations of a pod. Kubernetes takes
/// 256 KiB of annotations; nothing that concerns us is longer than a few hundred bytes.
inline constexpr std::size_t kMostValueBytes = 4096;
inline constexpr std::size_t kMostTextBytes = 16 << 10;
/// How many are kept: a short one takes several times its bytes, in each copy of the pod.
inline constexpr std::size_t kMostTexts = 256;
/// The name of a compute driver, for a pod and, with the prefix, for one container.
inline constexpr char kPodDriver[] = "cci.qrm.io/driver";
inline constexpr char kContainerDriver[] = "driver.cci.qrm.io/container.";
/// A pod's text for a compute driver, for all its containers and, with the prefix, for one. The
/// bounds of each text and of all of them, which are counted apart from other annotations.
inline constexpr std::string_view kDriverSpec = "cci.qrm.io/spec";
inline constexpr std::string_view kDriverSpecOfContainer = "spec.cci.qrm.io/container.";
inline constexpr std::size_t kMostSpecBytes = 16 << 10;
inline constexpr std::size_t kMostBytesOfSpecs = 32 << 10;
/// What is kept of a longer value: messages quote it, with the length, unchanged.
inline constexpr std::size_t kKeptOfLongValue = 160;

/// `all` within bounds: a longer value is cut, so that its reader finds it invalid. Values beyond
/// the total, in the order of the keys, are left out.
template <typename Map>
StringMap Bounded(const Map& all) {
  std::map<std::string_view, std::string_view> sorted;
  for (const auto& [key, value] : all) {
    sorted.emplace(key, value);
  }
  StringMap kept;
  std::size_t bytes = 0;
  std::size_t bytes_of_specs = 0;
  std::size_t texts = 0;
  std::size_t specs = 0;
  for (const auto& [key, value] : sorted) {
    const bool is_spec = key == kDriverSpec || key.starts_with(kDriverSpecOfContainer);
    const bool is_long = value.size() > (is_spec ? kMostSpecBytes : kMostValueBytes);
    std::string text = is_long ? Cut(value, kKeptOfLongValue) : std::string(value);
    std::size_t& sum = is_spec ? bytes_of_specs : bytes;
    std::size_t& count = is_spec ? specs : texts;
    sum += key.size() + text.size();
    if (++count <= kMostTexts && sum <= (is_spec ? kMostBytesOfSpecs : kMostTextBytes)) {
      kept.emplace_hint(kept.end(), key, std::move(text));
    }
  }
  return kept;
}

/// Whether Bounded has cut `value`.
inline bool IsCut(std::string_view value) {
  constexpr std::size_t kLongestMark = 32;
  return value.size() > kKeptOfLongValue && value.size() <= kKeptOfLongValue + kLongestMark &&
         value.find("... (", kKeptOfLongValue - 4) != std::string_view::npos &&
         value.ends_with(" bytes)");
}

/// `all` within bounds and without what kubelet and the runtime add to every sandbox for their own
/// bookkeeping: it repeats the sandbox's fields, and is in no pod's manifest.
/// Source: kubelet's labels.go; containerd's pkg/cri/annotations; CRI-O's pkg/annotations.
template <typename Map>
StringMap PodsOwn(const Map& all) {
  constexpr std::array<std::string_view, 6> kAdded = {
      "io.kubernetes.cri.",    "io.kubernetes.cri-o.",        "io.cri-containerd.",
      "io.kubernetes.pod.uid", "io.kubernetes.pod.namespace", "io.kubernetes.pod.name"};
  std::map<std::string_view, std::string_view> own;
  for (const auto& [key, value] : all) {
    bool is_own = true;
    for (const std::string_view prefix : kAdded) {
      is_own = is_own && !std::string_view(key).starts_with(prefix);
    }
    if (is_own) {
      own.emplace(key, value);
    }
  }
  return Bounded(own);
}

}  // namespace qrm
