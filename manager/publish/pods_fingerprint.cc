// XXH64 over the sorted hashes of the pods' names.
#include "manager/publish/pods_fingerprint.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include <fmt/format.h>

namespace qrm::manager {
namespace {

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4F;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5;
constexpr std::size_t kWord = 8;
constexpr std::size_t kHalfWord = 4;
constexpr std::size_t kStripe = 4 * kWord;

/// The first `size` bytes of `bytes`, which go away, as a little-endian number.
uint64_t TakeNumber(std::string_view& bytes, std::size_t size) {
  uint64_t number = 0;
  for (std::size_t i = size; i > 0; --i) {
    number = number << 8U | static_cast<unsigned char>(bytes[i - 1]);
  }
  bytes.remove_prefix(size);
  return number;
}

uint64_t Round(uint64_t lane, uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

uint64_t MixStripes(std::string_view& bytes, uint64_t seed) {
  uint64_t lanes[] = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
  while (bytes.size() >= kStripe) {
    for (uint64_t& lane : lanes) {
      lane = Round(lane, TakeNumber(bytes, kWord));
    }
  }
  uint64_t hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
                  std::rotl(lanes[3], 18);
  for (const uint64_t lane : lanes) {
    hash = (hash ^ Round(0, lane)) * kPrime1 + kPrime4;
  }
  return hash;
}

uint64_t Avalanche(uint64_t hash) {
  hash = (hash ^ hash >> 33U) * kPrime2;
  hash = (hash ^ hash >> 29U) * kPrime3;
  return hash ^ hash >> 32U;
}

}  // namespace

uint64_t Xxh64(std::string_view bytes, uint64_t seed) {
  const uint64_t length = bytes.size();
  uint64_t hash = length >= kStripe ? MixStripes(bytes, seed) : seed + kPrime5;
  hash += length;
  while (bytes.size() >= kWord) {
    hash = std::rotl(hash ^ Round(0, TakeNumber(bytes, kWord)), 27) * kPrime1 + kPrime4;
  }
  if (bytes.size() >= kHalfWord) {
    hash = std::rotl(hash ^ TakeNumber(bytes, kHalfWord) * kPrime1, 23) * kPrime2 + kPrime3;
  }
  while (!bytes.empty()) {
    hash = std::rotl(hash ^ TakeNumber(bytes, 1) * kPrime5, 11) * kPrime1;
  }
  return Avalanche(hash);
}

std::string PodsFingerprint(const std::vector<PodName>& pods) {
  std::vector<uint64_t> hashes;
  hashes.reserve(pods.size());
  for (const PodName& pod : pods) {
    hashes.push_back(Xxh64(pod.name, Xxh64(pod.pod_namespace, 0)));
  }
  std::sort(hashes.begin(), hashes.end());
  std::string bytes;
  for (const uint64_t hash : hashes) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
      bytes += static_cast<char>(hash >> shift & 0xFFU);
    }
  }
  return fmt::format("pfp0v001{:016x}", Xxh64(bytes, 0));
}

}  // namespace qrm::manager
