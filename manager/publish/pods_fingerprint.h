// The text by which readers of a NodeResourceTopology know which pods it has counted.
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

/// Of these pods, in any order: "pfp0v001" and 16 hexadecimal digits.
/// Source: k8stopologyawareschedwg/podfingerprint, version v001.
std::string PodsFingerprint(const std::vector<PodName>& pods);

/// Source: the xxHash specification, XXH64.
uint64_t Xxh64(std::string_view bytes, uint64_t seed);

}  // namespace qrm::manager
