// The fingerprint by which readers of a NodeResourceTopology check which pods it counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qrm::manager {

struct PodName {
  std::string pod_namespace;
  std::string name;
};

/// The fingerprint of `pods`, in any order: "pfp0v001" and 16 hexadecimal digits.
/// Source: k8stopologyawareschedwg/podfingerprint, version v001.
std::string PodsFingerprint(const std::vector<PodName>& pods);

/// XXH64: equal on all machines and after restarts.
uint64_t HashOf(std::string_view bytes, uint64_t seed = 0);

}  // namespace qrm::manager
