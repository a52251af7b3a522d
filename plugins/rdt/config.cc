// Reads the rdt section.
#include "plugins/rdt/config.h"

#include <bit>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "api/base/number.h"
#include "api/base/section.h"
#include "api/id_set.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::rdt {
namespace {

using config::Section;

struct CacheKind {
  static constexpr std::string_view kName = "list of cache ids";
};
struct BitKind {
  static constexpr std::string_view kName = "list of bits";
};

constexpr int kMaskBits = 64;
constexpr char kAll[] = "all";

/// Where a share is written: a partition has no ranges.
enum class Level { kPartition, kClass };

std::optional<uint64_t> ParsePercent(std::string_view text) {
  const auto percent = ParseNumber<uint64_t>(text);
  return percent.has_value() && *percent <= 100 ? percent : std::nullopt;
}

std::optional<CacheShare> ParsePercents(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    const auto percent = ParsePercent(text);
    return percent.has_value() ? std::optional(CacheShare{.high = *percent}) : std::nullopt;
  }
  const auto low = ParsePercent(text.substr(0, dash));
  const auto high = ParsePercent(text.substr(dash + 1));
  if (!low.has_value() || !high.has_value() || *low > *high) {
    return std::nullopt;
  }
  return CacheShare{.form = CacheShare::Form::kRange, .low = *low, .high = *high};
}

std::optional<uint64_t> ParseMask(std::string_view text) {
  if (text.starts_with("0x")) {
    return ParseNumber<uint64_t>(text.substr(2), 16);
  }
  const auto bits = TypedIdSet<BitKind>::Parse(text);
  if (!bits.ok() || bits->Empty() || bits->Last() >= kMaskBits) {
    return std::nullopt;
  }
  return bits->words().front();
}

bool IsOneBlock(uint64_t mask) {
  const int shift = std::countr_zero(mask);
  return mask != 0 && std::popcount(mask) == std::countr_one(mask >> shift);
}

StatusOr<CacheShare> ParseShare(const Section& section, const std::string& key, Level level) {
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, ""));
  const std::string_view view = text;
  if (view.ends_with('%')) {
    const auto share = ParsePercents(view.substr(0, view.size() - 1));
    if (!share.has_value()) {
      return section.Error(key, fmt::format("is '{}', which is not a percentage", text),
                           "write one from 0% to 100%, or for a class a range such as 1-50%");
    }
    if (share->form == CacheShare::Form::kRange && level == Level::kPartition) {
      return section.Error(
          key, fmt::format("is '{}', a range, which is not allowed in a partition", text),
          "write one percentage; only classes have ranges");
    }
    if (share->high == 0 && level == Level::kClass) {
      return section.Error(key, fmt::format("is '{}', which is none of the cache", text),
                           "write at least 1%");
    }
    return *share;
  }
  const auto mask = ParseMask(view);
  if (!mask.has_value()) {
    return section.Error(key, fmt::format("is '{}', which is not a part of a cache", text),
                         "write one such as 60%, 0-5 or 0xff0");
  }
  if (!IsOneBlock(*mask)) {
    return section.Error(key, fmt::format("is '{}', which is not one block of ones", text),
                         "write contiguous bits, at least one");
  }
  return CacheShare{.form = CacheShare::Form::kMask, .mask = *mask};
}

StatusOr<CacheRequest> ParseCacheRequest(const Section& section, const std::string& key,
                                         Level level) {
  CacheRequest request;
  if (section.IsScalar(key)) {
    QRM_ASSIGN_OR_RETURN(request.unified, ParseShare(section, key, level));
    return request;
  }
  QRM_ASSIGN_OR_RETURN(const Section uses, section.Child(key));
  QRM_RETURN_IF_ERROR(uses.AllowKeys({"unified", "code", "data"}));
  if (!uses.Has("unified")) {
    return section.Error(key, "has no 'unified'",
                         "add it: it applies where code and data share the cache");
  }
  if (uses.Has("code") != uses.Has("data")) {
    return section.Error(key, "has only one of 'code' and 'data'", "write both or none");
  }
  QRM_ASSIGN_OR_RETURN(request.unified, ParseShare(uses, "unified", level));
  if (uses.Has("code")) {
    QRM_ASSIGN_OR_RETURN(request.code, ParseShare(uses, "code", level));
    QRM_ASSIGN_OR_RETURN(request.data, ParseShare(uses, "data", level));
  }
  return request;
}

StatusOr<BandwidthRequest> ParseBandwidthRequest(const Section& section, const std::string& key) {
  QRM_ASSIGN_OR_RETURN(const std::vector<std::string> words, section.Words(key));
  BandwidthRequest request;
  for (const std::string& word : words) {
    const std::string_view view = word;
    const bool percent = view.ends_with('%');
    const auto number = percent ? ParsePercent(view.substr(0, view.size() - 1))
                        : view.ends_with("MBps")
                            ? ParseNumber<uint64_t>(view.substr(0, view.size() - 4))
                            : std::nullopt;
    std::optional<uint64_t>& place = percent ? request.percent : request.mbps;
    if (!number.has_value() || *number > kUnlimitedMbps) {
      return section.Error(key, fmt::format("has '{}', which is not a bandwidth", word),
                           "write one such as 50% or 1000MBps");
    }
    if (place.has_value()) {
      return section.Error(key, fmt::format("has '{}' and another value in the same unit", word),
                           "keep one of them");
    }
    place = number;
  }
  if (words.empty()) {
    return section.Error(key, "is empty", "write a list such as [50%, 1000MBps]");
  }
  return request;
}

/// `{all: ..., 0,2-3: ...}`; `read` reads the value of one key.
template <typename Request, typename Read>
StatusOr<ByCacheId<Request>> ParseIds(const Section& section, Request fallback, Read read) {
  ByCacheId<Request> requests{.all = fallback};
  for (const std::string& key : section.Keys()) {
    QRM_ASSIGN_OR_RETURN(const Request request, read(section, key));
    if (key == kAll) {
      requests.all = request;
      continue;
    }
    const auto ids = TypedIdSet<CacheKind>::Parse(key);
    constexpr int kLargestId = 127;
    if (!ids.ok() || ids->Empty() || ids->Last() > kLargestId) {
      return section.Error(key, "is not a list of cache ids",
                           "write `all`, or ids up to 127 such as 0,2,4-7");
    }
    for (const int id : *ids) {
      if (!requests.by_id.emplace(id, request).second) {
        return section.Error(key, fmt::format("lists cache id {} twice", id), "list each id once");
      }
    }
  }
  return requests;
}

/// The requests for a resource; `fallback` is for the ids that a mapping leaves out.
template <typename Request, typename Read>
StatusOr<std::optional<ByCacheId<Request>>> ParseResource(const Section& section,
                                                          const std::string& key,
                                                          const Request& fallback, Read read) {
  std::optional<ByCacheId<Request>> requests;
  if (!section.Has(key)) {
    return requests;
  }
  const StatusOr<Section> ids = section.Child(key);
  if (section.IsScalar(key) || !ids.ok()) {  // no mapping: the short form
    QRM_ASSIGN_OR_RETURN(const Request request, read(section, key));
    requests.emplace(ByCacheId<Request>{.all = request});
  } else {
    QRM_ASSIGN_OR_RETURN(requests, ParseIds(*ids, fallback, read));
  }
  return requests;
}

StatusOr<Allocations> ParseAllocations(const Section& section, Level level) {
  const auto cache = [level](const Section& at, const std::string& key) {
    return ParseCacheRequest(at, key, level);
  };
  const BandwidthRequest unlimited{.percent = 100, .mbps = kUnlimitedMbps};
  Allocations allocations;
  QRM_ASSIGN_OR_RETURN(allocations.l2,
                       ParseResource(section, "l2Allocation", CacheRequest(), cache));
  QRM_ASSIGN_OR_RETURN(allocations.l3,
                       ParseResource(section, "l3Allocation", CacheRequest(), cache));
  QRM_ASSIGN_OR_RETURN(allocations.mb,
                       ParseResource(section, "mbAllocation", unlimited, ParseBandwidthRequest));
  return allocations;
}

StatusOr<PartitionConfig> ParsePartition(const Section& section, std::set<std::string>& names) {
  QRM_RETURN_IF_ERROR(
      section.AllowKeys({"exclusive", "l2Allocation", "l3Allocation", "mbAllocation", "classes"}));
  PartitionConfig partition;
  QRM_ASSIGN_OR_RETURN(partition.exclusive, section.Flag("exclusive", false));
  QRM_ASSIGN_OR_RETURN(partition.allocations, ParseAllocations(section, Level::kPartition));
  QRM_ASSIGN_OR_RETURN(const Section classes, section.Child("classes"));
  for (const std::string& name : classes.Keys()) {
    if (name != kRootClass && !sdk::IsClassName(name)) {
      return classes.Error(name, "is not a class name", sdk::kClassNameForm);
    }
    if (!names.insert(name).second) {
      return classes.Error(name, "is the name of two classes", "give each class a unique name");
    }
    QRM_ASSIGN_OR_RETURN(const Section keys, classes.Child(name));
    if (keys.Has("kubernetes")) {
      return keys.Error("kubernetes", "is not read here",
                        "set in `permissions` which namespaces may use the class");
    }
    QRM_RETURN_IF_ERROR(keys.AllowKeys({"l2Allocation", "l3Allocation", "mbAllocation"}));
    QRM_ASSIGN_OR_RETURN(partition.classes[name], ParseAllocations(keys, Level::kClass));
  }
  return partition;
}

StatusOr<bool> ParseOptional(const Section& options, const std::string& resource) {
  QRM_ASSIGN_OR_RETURN(const Section section, options.Child(resource));
  QRM_RETURN_IF_ERROR(section.AllowKeys({"optional"}));
  return section.Flag("optional", false);
}

}  // namespace

StatusOr<RdtConfig> ParseRdtConfig(const Section& section) {
  QRM_RETURN_IF_ERROR(section.AllowKeys({"options", "partitions"}));
  RdtConfig config;
  QRM_ASSIGN_OR_RETURN(const Section options, section.Child("options"));
  QRM_RETURN_IF_ERROR(options.AllowKeys({"l2", "l3", "mb"}));
  QRM_ASSIGN_OR_RETURN(config.l2_optional, ParseOptional(options, "l2"));
  QRM_ASSIGN_OR_RETURN(config.l3_optional, ParseOptional(options, "l3"));
  QRM_ASSIGN_OR_RETURN(config.mb_optional, ParseOptional(options, "mb"));

  std::set<std::string> classes;
  QRM_ASSIGN_OR_RETURN(const Section partitions, section.Child("partitions"));
  for (const std::string& name : partitions.Keys()) {
    QRM_ASSIGN_OR_RETURN(const Section keys, partitions.Child(name));
    QRM_ASSIGN_OR_RETURN(config.partitions[name], ParsePartition(keys, classes));
  }
  return config;
}

}  // namespace qrm::rdt
