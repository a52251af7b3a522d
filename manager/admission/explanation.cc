// Writes an Explanation as JSON.
#include "manager/admission/explanation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/foreign_text.h"

namespace qrm::manager {
namespace {

using Json = nlohmann::ordered_json;

/// The limit of one decision's document: a thousand of them are kept in memory and on disk.
constexpr std::size_t kMostTraceBytes = 32 << 10;
constexpr std::size_t kMostMessageBytes = 4096;

Json ToJson(const TopologyHint& hint) {
  Json nodes = Json::array();
  for (const int node : hint.nodes) {
    nodes.push_back(node);
  }
  return {{"nodes", nodes}, {"preferred", hint.preferred}};
}

Json ToJson(const HintList& hints) {
  if (hints.IsNoPreference()) {
    return "no preference";
  }
  if (hints.IsImpossible()) {
    return "impossible";
  }
  Json list = Json::array();
  for (const TopologyHint& hint : hints.hints()) {
    list.push_back(ToJson(hint));
  }
  return list;
}

void AddUnlessEmpty(Json& json, const char* name, Json value) {
  const auto* const text = value.get_ptr<const Json::string_t*>();
  if (text == nullptr ? !value.empty() : !text->empty()) {
    json[name] = std::move(value);
  }
}

Json ToJson(const ResourceAllocation& allocation) {
  Json json = Json::object();
  if (!allocation.oci_property.empty()) {
    json["property"] = allocation.oci_property;
    json["value"] = allocation.value;
  }
  if (allocation.is_scalar_resource) {
    json["quantity"] = allocation.quantity;
  }
  if (allocation.exclusive) {
    json["exclusive"] = true;
  }
  if (!allocation.may_share.empty()) {
    json["may_share"] = allocation.may_share;
    json["shares"] = allocation.shares;
    json["shares_of"] = allocation.shares_of;
  }
  AddUnlessEmpty(json, "grown", allocation.grown);
  AddUnlessEmpty(json, "envs", allocation.envs);
  AddUnlessEmpty(json, "annotations", allocation.annotations);
  AddUnlessEmpty(json, "pool", allocation.pool);
  AddUnlessEmpty(json, "decided_by", allocation.decided_by);
  return json;
}

template <typename Map>
Json ToJsonByName(const Map& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) {
    json[name] = ToJson(value);
  }
  return json;
}

std::string SourceOf(const std::string& name, double amount,
                     const placement::ContainerDemand& demand) {
  const bool configured = !demand.requests.contains(name) && amount > 0;
  return configured ? "configuration" : demand.source;
}

/// Null if pod and plugin use the same unit.
Json TimesJson(const Explanation& explanation, const std::string& name) {
  const auto scale = explanation.scales.find(name);
  return scale == explanation.scales.end() || scale->second == 1 ? Json() : Json(scale->second);
}

Json RequestsJson(const Explanation& explanation, const placement::ContainerDemand& demand) {
  Json json = Json::object();
  for (const auto& [name, amount] : explanation.requests) {
    json[name] = {{"amount", amount}, {"source", SourceOf(name, amount, demand)}};
    if (const auto mapped = explanation.mapped.find(name); mapped != explanation.mapped.end()) {
      json[name]["as"] = mapped->second;
      AddUnlessEmpty(json[name], "times", TimesJson(explanation, name));
    }
  }
  return json;
}

Json HintsJson(const Explanation& explanation) {
  Json json = ToJsonByName(explanation.hints);
  for (const auto& [resource, why] : explanation.refusals) {
    json[resource] = "none: " + why;
  }
  return json;
}

Json StepsJson(const Explanation& explanation) {
  Json json = Json::array();
  for (const auto& [name, took] : explanation.steps) {
    json.push_back(
        {{"step", name},
         {"microseconds", std::chrono::duration_cast<std::chrono::microseconds>(took).count()}});
  }
  return json;
}

/// `json` as text of up to `most` bytes. The largest parts are removed and named until it fits.
std::string Within(std::size_t most, Json json) {
  // Text of pods and plugins may be invalid UTF-8.
  const auto text = [](const Json& part) {
    return part.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string all = text(json);
  while (all.size() > most) {
    const auto largest = std::max_element(
        json.begin(), json.end(),
        [&](const Json& a, const Json& b) { return text(a).size() < text(b).size(); });
    std::string name = fmt::format("{} ({} bytes)", largest.key(), text(*largest).size());
    json.erase(largest);
    json["left_out"].push_back(std::move(name));  // may move all parts
    all = text(json);
  }
  return all;
}

Json ClassesJson(const ChosenClasses& classes) {
  Json json = Json::object();
  for (const auto& [type, chosen] : classes) {
    json[type] = {{"class", chosen.name}, {"by", chosen.by}};
  }
  return json;
}

Json DriverJson(const ExplainedDriver& driver) {
  Json json = Json::object();
  if (driver.name.empty()) {
    return json;
  }
  json["name"] = driver.name;
  json["by"] = driver.by;
  AddUnlessEmpty(json, "spec", Quoted(driver.spec));
  AddUnlessEmpty(json, "offered", driver.available);
  AddUnlessEmpty(json, "fallback", driver.fallback);
  for (const sdk::UnmetWish& wish : driver.unmet) {
    json["unmet"].push_back({{"wish", wish.token}, {"reason", wish.reason}});
  }
  AddUnlessEmpty(json, "warnings", driver.warnings);
  return json;
}

Json IgnoredKeysJson(const Explanation& explanation, const placement::ContainerDemand& demand) {
  Json json = Json::array();
  for (const rules::IgnoredQosKey& key :
       rules::IgnoredQosKeys(demand.pod.annotations, BindingOf(explanation))) {
    json.push_back(key.text);
  }
  return json;
}

const char* MomentOf(const Explanation& explanation) {
  if (explanation.dry_run) {
    return "dry run";
  }
  if (explanation.resized) {
    return "resize";
  }
  return explanation.after_the_fact ? "after the fact" : "creation";
}

}  // namespace

std::string NameOf(const placement::ContainerDemand& demand) {
  return fmt::format("container {} of pod {}/{}", Quoted(demand.container),
                     Quoted(demand.pod.pod_namespace), Quoted(demand.pod.name));
}

rules::NodeBinding BindingOf(const Explanation& explanation) {
  const bool is_bound =
      std::any_of(explanation.allocations.begin(), explanation.allocations.end(),
                  [](const auto& each) { return each.second->decided_by == rules::kByBinding; });
  return is_bound ? rules::NodeBinding::kBound : rules::NodeBinding::kNone;
}

std::string ToJson(const Explanation& explanation, const placement::ContainerDemand& demand) {
  Json json = {{"pod", Quoted(demand.pod.pod_namespace) + "/" + Quoted(demand.pod.name)},
               {"pod_uid", Quoted(demand.pod.uid)},
               {"container", Quoted(demand.container)},
               {"container_type", std::string(ToString(demand.type))},
               {"qos_class", demand.pod.qos_class},
               {"result", explanation.result},
               {"moment", MomentOf(explanation)}};
  AddUnlessEmpty(json, "role", Quoted(demand.pod.role));
  AddUnlessEmpty(json, "type", Quoted(demand.pod.type));
  AddUnlessEmpty(json, "message", Cut(explanation.message, kMostMessageBytes));
  AddUnlessEmpty(json, "equal_ones_before",
                 explanation.equal_ones_before == 0 ? Json() : Json(explanation.equal_ones_before));
  AddUnlessEmpty(json, "together_with", explanation.together);
  AddUnlessEmpty(json, "requests", RequestsJson(explanation, demand));
  AddUnlessEmpty(json, "annotation_keys_without_effect", IgnoredKeysJson(explanation, demand));
  AddUnlessEmpty(json, "requests_without_plugin", explanation.unserved);
  AddUnlessEmpty(json, "requests_awaiting_plugin", explanation.awaited);
  AddUnlessEmpty(json, "answered_from_record", explanation.kept);
  AddUnlessEmpty(json, "too_late_for", explanation.too_late);
  json["policy"] = explanation.policy;
  AddUnlessEmpty(json, "scope", explanation.for_pod ? Json("pod") : Json());
  AddUnlessEmpty(json, "hints", HintsJson(explanation));
  AddUnlessEmpty(json, "merged", ToJsonByName(explanation.merged));
  AddUnlessEmpty(json, "merge_reasons", explanation.merge_reasons);
  AddUnlessEmpty(json, "allocations", ToJsonByName(explanation.allocations));
  AddUnlessEmpty(json, "driver", DriverJson(explanation.driver));
  AddUnlessEmpty(json, "classes", ClassesJson(explanation.classes));
  AddUnlessEmpty(json, "conflicts", explanation.options.conflicts);
  AddUnlessEmpty(json, "applied", explanation.applied);
  AddUnlessEmpty(json, "steps", StepsJson(explanation));
  if (explanation.dry_run && explanation.result == "admitted") {
    json["steps_not_done"] = Json::array();
    if (!explanation.driver.name.empty() && explanation.driver.fallback.empty()) {
      json["steps_not_done"].push_back("driver");
    }
    for (const std::string& resource : explanation.untried) {
      json["steps_not_done"].push_back("allocate " + resource);
    }
    json["steps_not_done"].push_back("commit");
  }
  return Within(kMostTraceBytes, std::move(json));
}

}  // namespace qrm::manager
