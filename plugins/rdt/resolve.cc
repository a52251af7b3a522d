// Computes the masks of partitions and of the classes inside them.
#include "plugins/rdt/resolve.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "api/base/check.h"
#include "api/base/errorf.h"

namespace qrm::rdt {
namespace {

using Form = CacheShare::Form;
using CacheMember = std::optional<ByCacheId<CacheRequest>> Allocations::*;
/// Partition -> its mask of one cache.
using Masks = std::map<std::string, uint64_t>;

/// One level of cache, for messages and for finding its requests.
struct CacheLevel {
  const char* name;
  CacheMember member;
};

/// Where a mask is needed.
struct Place {
  CacheLevel level;
  CacheUse use;
  int id;
};

uint64_t Ones(uint64_t count) {
  constexpr uint64_t kBits = 64;
  return count >= kBits ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

std::optional<CacheShare> ShareOf(const CacheRequest& request, CacheUse use) {
  switch (use) {
    case CacheUse::kUnified:
      return request.unified;
    case CacheUse::kCode:
      return request.code;
    case CacheUse::kData:
      return request.data;
  }
  return std::nullopt;
}

const char* SuffixOf(CacheUse use) {
  return use == CacheUse::kCode ? "CODE" : use == CacheUse::kData ? "DATA" : "";
}

std::string NameOf(const Place& place) {
  return fmt::format("{}{} of cache id {}", place.level.name, SuffixOf(place.use), place.id);
}

/// Each partition's request at one place, sorted by name.
using Shares = std::vector<std::pair<std::string, CacheShare>>;

StatusOr<Shares> CollectShares(const RdtConfig& config, const Place& place) {
  Shares shares;
  std::vector<std::string> without;
  for (const auto& [name, partition] : config.partitions) {
    const auto& asked = partition.allocations.*place.level.member;
    const auto share = asked.has_value() ? ShareOf(asked->For(place.id), place.use) : std::nullopt;
    if (share.has_value()) {
      shares.emplace_back(name, *share);
    } else {
      without.push_back(name);
    }
  }
  if (!shares.empty() && !without.empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot divide {}: partitions {} request no part of it, but others do; add it to "
                  "each partition or to none",
                  NameOf(place), fmt::join(without, ", "));
  }
  return shares;
}

Status CheckMask(const Place& place, const std::string& name, uint64_t mask,
                 const CacheInfo& cache) {
  if (std::popcount(mask) < cache.least_bits) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot give {} mask {:x} in {}: it has fewer than {} bits; write more", name,
                  mask, NameOf(place), cache.least_bits);
  }
  if ((mask & ~cache.mask) != 0) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot give {} mask {:x} in {}: it is outside {:x}; write bits within it", name,
                  mask, NameOf(place), cache.mask);
  }
  return OkStatus();
}

StatusOr<Masks> DivideByMasks(const Shares& shares, const Place& place, const CacheInfo& cache) {
  Masks masks;
  uint64_t taken = 0;
  for (const auto& [name, share] : shares) {
    QRM_RETURN_IF_ERROR(CheckMask(place, "partition " + name, share.mask, cache));
    if ((taken & share.mask) != 0) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot give partition {} mask {:x} in {}: it overlaps another partition in "
                    "bits {:x}; choose other bits",
                    name, share.mask, NameOf(place), taken & share.mask);
    }
    taken |= share.mask;
    masks.emplace(name, share.mask);
  }
  return masks;
}

/// Computes how many bits each partition gets. The smallest request comes first, so that rounding
/// up to the machine's minimum costs the largest partitions. The last one gets the remaining bits.
StatusOr<Masks> CountBits(Shares shares, uint64_t total, const Place& place,
                          const CacheInfo& cache) {
  const auto least = static_cast<uint64_t>(cache.least_bits);
  const uint64_t bits = total * static_cast<uint64_t>(std::popcount(cache.mask)) / 100;
  std::ranges::stable_sort(
      shares, [](const auto& a, const auto& b) { return a.second.high < b.second.high; });
  Masks counts;
  uint64_t left = bits;
  for (const auto& [name, share] : shares) {
    if (left < least || left == 0) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot divide {}: no bits are left for partition {}, out of {}; use fewer "
                    "partitions or larger parts",
                    NameOf(place), name, bits);
    }
    const uint64_t percent_left = left * total / bits;
    uint64_t count = std::max(share.high * left / percent_left, least);
    if (count > left || counts.size() + 1 == shares.size()) {
      count = left;
    }
    counts.emplace(name, count);
    left -= count;
  }
  return counts;
}

StatusOr<Masks> DivideByPercent(const Shares& shares, const Place& place, const CacheInfo& cache) {
  uint64_t total = 0;
  for (const auto& [name, share] : shares) {
    total += share.high;
  }
  if (total > 100) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot divide {}: the partitions request {}% in total; write at most 100%",
                  NameOf(place), total);
  }
  QRM_ASSIGN_OR_RETURN(Masks masks, CountBits(shares, total, place, cache));
  uint64_t lowest = 0;
  for (auto& [name, mask] : masks) {
    const uint64_t count = mask;
    mask = Ones(count) << lowest;
    lowest += count;
  }
  return masks;
}

/// Each partition's mask; empty if there are no requests.
StatusOr<Masks> Divide(const RdtConfig& config, const Place& place, const CacheInfo& cache) {
  QRM_ASSIGN_OR_RETURN(const Shares shares, CollectShares(config, place));
  if (shares.empty()) {
    return Masks();
  }
  const auto absolute = static_cast<std::size_t>(std::ranges::count_if(
      shares, [](const auto& share) { return share.second.form == Form::kMask; }));
  if (absolute == shares.size()) {
    return DivideByMasks(shares, place, cache);
  }
  if (absolute != 0) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot divide {}: some partitions use percentages and some masks; use one form for all",
        NameOf(place));
  }
  return DivideByPercent(shares, place, cache);
}

/// The bits from `low` to `high` percent of `base`, rounded outwards. They are widened to `least`
/// bits, first at the low end.
uint64_t PartOf(uint64_t base, const CacheShare& share, uint64_t least) {
  QRM_CHECK(base != 0);
  const auto bits = static_cast<uint64_t>(std::popcount(base));
  const uint64_t from = share.form == Form::kRange ? std::max<uint64_t>(share.low, 1) : 1;
  const uint64_t to = std::max(share.high, from);
  uint64_t first = (from - 1) * bits / 100;
  uint64_t last = (to - 1) * bits / 100;
  if (last - first + 1 < least) {
    const uint64_t gap = least - (last - first + 1);
    const uint64_t below = std::min(gap, first);
    first -= below;
    last += gap - below;
  }
  return Ones(last - first + 1) << (first + static_cast<uint64_t>(std::countr_zero(base)));
}

StatusOr<uint64_t> ClassMask(const std::string& name, const CacheShare& share, uint64_t base,
                             const Place& place, const CacheInfo& cache) {
  if (share.form != Form::kMask) {
    return PartOf(base, share, static_cast<uint64_t>(cache.least_bits));
  }
  QRM_RETURN_IF_ERROR(CheckMask(place, "class " + name, share.mask, cache));
  const int shift = std::countr_zero(base);
  const uint64_t mask = share.mask << shift;
  if ((mask >> shift) != share.mask || (mask & ~base) != 0) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot give class {} mask {:x} in {}: shifted to its partition it is {:x}, which "
        "does not fit in {:x}; write a mask of up to {} bits from bit 0",
        name, share.mask, NameOf(place), mask, base, std::popcount(base));
  }
  return mask;
}

/// Adds the lines of one level and use to the schemata of each class.
class CacheResolver {
 public:
  CacheResolver(const RdtConfig& config, const CacheInfo& cache, CacheLevel level)
      : config_(config), cache_(cache), level_(level) {}

  Status AddTo(std::map<std::string, Schemata>& schemata, CacheUse use) const {
    const std::string line = std::string(level_.name) + SuffixOf(use);
    for (const int id : cache_.ids) {
      const Place place{.level = level_, .use = use, .id = id};
      QRM_ASSIGN_OR_RETURN(const Masks masks, MasksAt(place));
      for (const auto& [name, partition] : config_.partitions) {
        const auto base = masks.find(name);
        for (const auto& [class_name, asked] : partition.classes) {
          QRM_ASSIGN_OR_RETURN(
              schemata[class_name][line][id],
              MaskOf(class_name, asked, base == masks.end() ? 0 : base->second, place));
        }
      }
    }
    return OkStatus();
  }

 private:
  /// Partitions without code and data masks use the unified mask for both.
  StatusOr<Masks> MasksAt(const Place& place) const {
    QRM_ASSIGN_OR_RETURN(Masks masks, Divide(config_, place, cache_));
    if (masks.empty() && place.use != CacheUse::kUnified) {
      return Divide(config_, {.level = place.level, .use = CacheUse::kUnified, .id = place.id},
                    cache_);
    }
    return masks;
  }

  StatusOr<uint64_t> MaskOf(const std::string& name, const Allocations& allocations, uint64_t base,
                            const Place& place) const {
    const auto& asked = allocations.*level_.member;
    if (!asked.has_value()) {
      return base == 0 ? cache_.mask : base;
    }
    if (base == 0) {
      return Errorf(
          StatusCode::kInvalidArgument,
          "cannot give class {} a part of {}: its partition has none; add {}Allocation to "
          "each partition",
          name, level_.name, level_.name[1] == '2' ? "l2" : "l3");
    }
    const CacheRequest& request = asked->For(place.id);
    return ClassMask(name, ShareOf(request, place.use).value_or(request.unified), base, place,
                     cache_);
  }

  const RdtConfig& config_;
  const CacheInfo& cache_;
  CacheLevel level_;
};

/// OK if no partition or class requests the resource of `member`.
template <typename Member>
Status CheckUnasked(const RdtConfig& config, Member member, const char* resource) {
  for (const auto& [name, partition] : config.partitions) {
    const bool asked = (partition.allocations.*member).has_value() ||
                       std::ranges::any_of(partition.classes, [&](const auto& entry) {
                         return (entry.second.*member).has_value();
                       });
    if (asked) {
      return Errorf(StatusCode::kFailedPrecondition,
                    "cannot divide {} for partition {}: this machine cannot divide it, or resctrl "
                    "is mounted without it; remove it, or set options.{}.optional",
                    resource, name, resource);
    }
  }
  return OkStatus();
}

Status ResolveCache(const RdtConfig& config, const std::optional<CacheInfo>& cache,
                    CacheLevel level, bool optional, std::map<std::string, Schemata>& schemata) {
  if (!cache.has_value()) {
    return optional ? OkStatus()
                    : CheckUnasked(config, level.member, level.name[1] == '2' ? "l2" : "l3");
  }
  const CacheResolver resolver(config, *cache, level);
  if (!cache->code_and_data) {
    return resolver.AddTo(schemata, CacheUse::kUnified);
  }
  QRM_RETURN_IF_ERROR(resolver.AddTo(schemata, CacheUse::kCode));
  return resolver.AddTo(schemata, CacheUse::kData);
}

/// The bandwidth request of partition or class `name` at `id`, in the unit of the mount.
StatusOr<uint64_t> BandwidthOf(const Allocations& allocations, const std::string& name, int id,
                               const BandwidthInfo& mb) {
  if (!allocations.mb.has_value()) {
    return mb.in_mbps ? kUnlimitedMbps : 100;
  }
  const BandwidthRequest& request = allocations.mb->For(id);
  const std::optional<uint64_t>& value = mb.in_mbps ? request.mbps : request.percent;
  if (!value.has_value()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot limit the memory bandwidth of {} at cache id {}: mbAllocation has no "
                  "value in {}, the unit of this machine's resctrl; add one",
                  name, id, mb.in_mbps ? "MBps" : "%");
  }
  return *value;
}

Status ResolveBandwidth(const RdtConfig& config, const BandwidthInfo& mb,
                        std::map<std::string, Schemata>& schemata) {
  for (const int id : mb.ids) {
    for (const auto& [name, partition] : config.partitions) {
      QRM_ASSIGN_OR_RETURN(const uint64_t base, BandwidthOf(partition.allocations, name, id, mb));
      for (const auto& [class_name, asked] : partition.classes) {
        QRM_ASSIGN_OR_RETURN(const uint64_t value, BandwidthOf(asked, class_name, id, mb));
        schemata[class_name]["MB"][id] =
            mb.in_mbps ? std::min(value, base) : std::max(value * base / 100, mb.least_percent);
      }
    }
  }
  return OkStatus();
}

/// The line that gives the root group other ways than those of exclusive partitions.
std::string LineForRoot(const RdtConfig& config) {
  for (const auto& [name, partition] : config.partitions) {
    if (!partition.exclusive) {
      return fmt::format("add `{}: {{}}` to the classes of partition {}", kRootClass, name);
    }
  }
  return fmt::format(
      "leave ways to the root group, and add `rest: {{l3Allocation: 40%, classes: {{{}: {{}}}}}}` "
      "to the partitions, with the part that is left",
      kRootClass);
}

Status CheckExclusive(const RdtConfig& config, const std::map<std::string, Schemata>& schemata,
                      const RdtInfo& info) {
  for (const auto& [name, partition] : config.partitions) {
    for (const auto& [class_name, asked] : partition.classes) {
      if (!partition.exclusive || !SharesWithRoot(schemata, class_name, info)) {
        continue;
      }
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot make partition {} exclusive: the root group, which has all tasks "
                    "without a class, may use the ways of class {}, too; {}",
                    name, class_name, LineForRoot(config));
    }
  }
  return OkStatus();
}

}  // namespace

bool SharesWithRoot(const std::map<std::string, Schemata>& schemata, const std::string& name,
                    const RdtInfo& info) {
  const auto root = schemata.find(kRootClass);
  for (const auto& [line, masks] : schemata.at(name)) {
    const auto& cache = line.starts_with("L2") ? info.l2 : info.l3;
    if (!line.starts_with("L") || !cache.has_value() || name == kRootClass) {
      continue;
    }
    for (const auto& [id, mask] : masks) {
      const uint64_t of_root = root == schemata.end() ? cache->mask : root->second.at(line).at(id);
      if ((mask & of_root) != 0) {
        return true;
      }
    }
  }
  return false;
}

StatusOr<std::map<std::string, Schemata>> Resolve(const RdtConfig& config, const RdtInfo& info) {
  std::map<std::string, Schemata> schemata;
  for (const auto& [name, partition] : config.partitions) {
    for (const auto& [class_name, asked] : partition.classes) {
      schemata[class_name];
    }
  }
  QRM_RETURN_IF_ERROR(
      ResolveCache(config, info.l2, {"L2", &Allocations::l2}, config.l2_optional, schemata));
  QRM_RETURN_IF_ERROR(
      ResolveCache(config, info.l3, {"L3", &Allocations::l3}, config.l3_optional, schemata));
  if (info.mb.has_value()) {
    QRM_RETURN_IF_ERROR(ResolveBandwidth(config, *info.mb, schemata));
  } else if (!config.mb_optional) {
    QRM_RETURN_IF_ERROR(CheckUnasked(config, &Allocations::mb, "mb"));
  }
  QRM_RETURN_IF_ERROR(CheckExclusive(config, schemata, info));
  return schemata;
}

std::string RaisedBandwidth(const RdtConfig& config, const RdtInfo& info) {
  std::set<std::string> raised;
  if (!info.mb.has_value() || info.mb->in_mbps) {
    return "";
  }
  for (const auto& [name, partition] : config.partitions) {
    for (const auto& [class_name, asked] : partition.classes) {
      for (const int id : info.mb->ids) {
        const auto base = BandwidthOf(partition.allocations, name, id, *info.mb);
        const auto value = BandwidthOf(asked, class_name, id, *info.mb);
        if (base.ok() && value.ok() && *value * *base / 100 < info.mb->least_percent) {
          raised.insert(class_name);
        }
      }
    }
  }
  return raised.empty()
             ? ""
             : fmt::format(
                   "mbAllocation of {} is less than the {}% that this machine "
                   "gives at least: they get {}%",
                   fmt::join(raised, ", "), info.mb->least_percent, info.mb->least_percent);
}

Schemata AsShown(Schemata written, const RdtInfo& info) {
  const auto mb = written.find("MB");
  if (mb != written.end() && info.mb.has_value() && !info.mb->in_mbps) {
    const uint64_t granularity = std::max<uint64_t>(info.mb->granularity, 1);
    for (auto& [id, percent] : mb->second) {
      percent = (percent + granularity - 1) / granularity * granularity;
    }
  }
  return written;
}

}  // namespace qrm::rdt
