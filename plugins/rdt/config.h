// The operator's rdt section: partitions of caches and memory bandwidth, and classes inside them,
// in goresctrl's format.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "api/base/status.h"

namespace qrm::config {
class Section;
}  // namespace qrm::config

namespace qrm::rdt {

/// The class of the root group, which has all tasks without a class.
inline constexpr char kRootClass[] = "system/default";

/// What a cache line contains; code and data are separate if resctrl is mounted with cdp or cdpl2.
enum class CacheUse { kUnified, kCode, kData };

/// A part of a cache: `60%`, `50-60%`, `0-5` or `0xff0`.
struct CacheShare {
  enum class Form { kPercent, kRange, kMask };
  Form form = Form::kPercent;
  uint64_t low = 1;     ///< kRange: percent
  uint64_t high = 100;  ///< kRange and kPercent: percent
  uint64_t mask = 0;    ///< kMask: one block of ones

  bool operator==(const CacheShare&) const = default;
};

struct CacheRequest {
  CacheShare unified;
  /// Both or none.
  std::optional<CacheShare> code;
  std::optional<CacheShare> data;
};

/// The kernel's value for no limit, in MB/s.
inline constexpr uint64_t kUnlimitedMbps = 4294967295;

/// `100%`, `4294967295MBps`: resctrl's mount options decide which of them applies.
struct BandwidthRequest {
  std::optional<uint64_t> percent;
  std::optional<uint64_t> mbps;
};

/// The request for each cache id.
template <typename Request>
struct ByCacheId {
  Request all;  ///< for ids that are not in `by_id`
  std::map<int, Request> by_id;

  const Request& For(int id) const {
    const auto found = by_id.find(id);
    return found == by_id.end() ? all : found->second;
  }
};

/// The requests of a partition or class for each resource.
struct Allocations {
  std::optional<ByCacheId<CacheRequest>> l2;
  std::optional<ByCacheId<CacheRequest>> l3;
  std::optional<ByCacheId<BandwidthRequest>> mb;
};

struct PartitionConfig {
  bool exclusive = false;  ///< its parts of caches are not the root group's, either
  Allocations allocations;
  std::map<std::string, Allocations> classes;  ///< within the partition's part
};

struct RdtConfig {
  /// The resource may be missing on this machine: requests for it are then ignored.
  bool l2_optional = false;
  bool l3_optional = false;
  bool mb_optional = false;
  std::map<std::string, PartitionConfig> partitions;
};

/// Reads `options` and `partitions`. Errors: kInvalidArgument with file, line, key, value and what
/// is allowed. Source: goresctrl's configuration of RDT, which has no `exclusive`; here, unknown
/// keys and units and repeated cache ids are errors.
StatusOr<RdtConfig> ParseRdtConfig(const config::Section& section);

}  // namespace qrm::rdt
