// XXH64 over the sorted hashes of the pods' names.
#include "manager/publish/pods_fingerprint.h"

#include <algorithm>

#include <xxhash.h>

#include <fmt/format.h>

namespace qrm::manager {

uint64_t HashOf(std::string_view bytes, uint64_t seed) {
  return ::XXH64(bytes.data(), bytes.size(), seed);
}

std::string PodsFingerprint(const std::vector<PodName>& pods) {
  std::vector<uint64_t> hashes;
  hashes.reserve(pods.size());
  for (const PodName& pod : pods) {
    hashes.push_back(HashOf(pod.name, HashOf(pod.pod_namespace)));
  }
  std::sort(hashes.begin(), hashes.end());
  std::string bytes;
  for (const uint64_t hash : hashes) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
      bytes += static_cast<char>(hash >> shift & 0xFFU);
    }
  }
  return fmt::format("pfp0v001{:016x}", HashOf(bytes));
}

}  // namespace qrm::manager
