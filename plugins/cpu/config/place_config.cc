// Reads rules of place and of instances.
#include "plugins/cpu/config/place_config.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/section.h"
#include "api/id_set.h"

namespace qrm::cpu {
namespace {

using config::Section;

constexpr char kLabel[] = "label:";

/// `avoid: {share: l3, with: [other]}`.
Status ParseAvoid(const Section& place, PlaceRule& rule) {
  if (!place.Has("avoid")) {
    return OkStatus();
  }
  QRM_ASSIGN_OR_RETURN(const Section section, place.Child("avoid"));
  QRM_RETURN_IF_ERROR(section.AllowKeys({"share", "with"}));
  QRM_ASSIGN_OR_RETURN(const std::size_t share, section.Choice("share", 0, {"core", "l3"}));
  rule.avoided_share = static_cast<PlaceRule::Share>(share);
  QRM_ASSIGN_OR_RETURN(rule.avoid, section.WordOrWords("with"));
  if (rule.avoid.empty()) {
    return section.Error("with", "names no pool", "name the pools to keep apart from");
  }
  return OkStatus();
}

/// `require: [numa, core, near]`: wishes without which the container is rejected.
Status ParseRequire(const Section& place, PlaceRule& rule) {
  QRM_ASSIGN_OR_RETURN(const std::vector<std::string> required, place.WordOrWords("require"));
  for (const std::string& word : required) {
    const bool numa = word == "numa" && rule.numa == PlaceRule::Numa::kOne;
    const bool core = word == "core" && rule.core != PlaceRule::Core::kAny;
    const bool near = word == "near" && !rule.near.empty();
    if (!numa && !core && !near) {
      return place.Error("require", fmt::format("has '{}', which place does not set", word),
                         "write numa beside numa: one, core beside core: performance or "
                         "efficient, and near beside near");
    }
    (numa ? rule.numa_required : core ? rule.core_required : rule.near_required) = true;
  }
  return OkStatus();
}

/// `near: eth0` or `near: ["nvidia.com/*"]`.
Status ParseNear(const Section& place, PlaceRule& rule) {
  QRM_ASSIGN_OR_RETURN(rule.near, place.WordOrWords("near"));
  for (const std::string& glob : rule.near) {
    if ((glob.find('/') != std::string::npos) != rule.NearResources()) {
      return place.Error(
          "near",
          fmt::format(
              "has '{}' and '{}', but one is a resource and the other a device of the machine",
              rule.near.front(), glob),
          "name devices of one kind");
    }
  }
  return OkStatus();
}

StatusOr<InstanceRule> ParseBy(const Section& section) {
  QRM_ASSIGN_OR_RETURN(const std::string by, section.Text("by", ""));
  if (by.starts_with(kLabel) && by.size() > sizeof(kLabel) - 1) {
    return InstanceRule{.by = InstanceRule::By::kLabel, .label = by.substr(sizeof(kLabel) - 1)};
  }
  const std::pair<const char*, InstanceRule::By> words[] = {
      {"pod", InstanceRule::By::kPod},
      {"container", InstanceRule::By::kContainer},
      {"namespace", InstanceRule::By::kNamespace},
      {"numa-node", InstanceRule::By::kNode},
  };
  for (const auto& [word, value] : words) {
    if (by == word) {
      return InstanceRule{.by = value};
    }
  }
  return section.Error("by", fmt::format("is '{}', which does not group containers", by),
                       "write pod, container, namespace, numa-node or label:KEY");
}

}  // namespace

StatusOr<PlaceRule> ParsePlace(const Section& pool) {
  PlaceRule rule;
  if (!pool.Has("place")) {
    return rule;
  }
  if (!pool.Has("size")) {
    return pool.Error("place", "is for pools with a size only", "write size instead of cpus");
  }
  QRM_ASSIGN_OR_RETURN(const Section place, pool.Child("place"));
  QRM_RETURN_IF_ERROR(
      place.AllowKeys({"numa", "core", "near", "threads", "align-l3", "avoid", "require"}));
  QRM_ASSIGN_OR_RETURN(const std::size_t numa,
                       place.Choice("numa", 0, {"any", "one", "fewest", "even"}));
  rule.numa = static_cast<PlaceRule::Numa>(numa);
  QRM_ASSIGN_OR_RETURN(const std::size_t core,
                       place.Choice("core", 0, {"any", "performance", "efficient"}));
  rule.core = static_cast<PlaceRule::Core>(core);
  QRM_ASSIGN_OR_RETURN(const std::size_t threads,
                       place.Choice("threads", 0, {"all", "one-per-core", "whole-cores"}));
  rule.threads = static_cast<PlaceRule::Threads>(threads);
  QRM_ASSIGN_OR_RETURN(rule.align_l3, place.Flag("align-l3", false));
  QRM_RETURN_IF_ERROR(ParseNear(place, rule));
  QRM_RETURN_IF_ERROR(ParseAvoid(place, rule));
  QRM_RETURN_IF_ERROR(ParseRequire(place, rule));
  return rule;
}

StatusOr<std::optional<InstanceRule>> ParseInstances(const Section& pool) {
  if (!pool.Has("instances")) {
    return std::optional<InstanceRule>();
  }
  if (!pool.Has("size")) {
    return pool.Error("instances", "is for pools with a size only", "write size instead of cpus");
  }
  QRM_ASSIGN_OR_RETURN(const Section section, pool.Child("instances"));
  QRM_RETURN_IF_ERROR(section.AllowKeys({"by", "max", "fill"}));
  QRM_ASSIGN_OR_RETURN(InstanceRule rule, ParseBy(section));
  QRM_ASSIGN_OR_RETURN(const uint64_t most, section.Number("max", 0));
  rule.max = static_cast<int>(std::min<uint64_t>(most, CpuSet::kMaxIds));
  if (section.Has("max") && rule.max == 0) {
    return section.Error("max", "is '0', which admits no container", "write 1 or more");
  }
  QRM_ASSIGN_OR_RETURN(const std::size_t fill, section.Choice("fill", 0, {"packed", "balanced"}));
  rule.fill = static_cast<InstanceRule::Fill>(fill);
  return std::optional(std::move(rule));
}

}  // namespace qrm::cpu
