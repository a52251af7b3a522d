// Reads Katalyst's QoS annotations.
#include "plugins/rules/qos_annotations.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_json.h"
#include "api/base/foreign_text.h"

namespace qrm::rules {
namespace {

/// Bounds of an annotation's object: all users who can create pods can write it. Of a key that is
/// there twice, other readers could take the other value.
constexpr JsonBounds kAnnotationBounds{
    .bytes = 4096, .depth = 4, .values = 64, .unique_keys = true};

/// The prefix of all these keys.
constexpr std::string_view kDomain = "katalyst.kubewharf.io/";

/// In the order of QosLevel, after kNone.
constexpr std::string_view kLevels[] = {"dedicated_cores", "shared_cores", "reclaimed_cores",
                                        "system_cores"};

StatusOr<QosLevel> ParseLevel(const std::string& text) {
  const auto level = std::ranges::find(kLevels, text);
  if (level != std::end(kLevels)) {
    return static_cast<QosLevel>(level - std::begin(kLevels) + 1);
  }
  return Errorf(StatusCode::kInvalidArgument,
                "cannot read annotation {}: '{}' is not a QoS level; write dedicated_cores, "
                "shared_cores, reclaimed_cores or system_cores",
                kQosLevelKey, Quoted(text));
}

/// The values of an enhancement annotation; none when it is absent.
StatusOr<StringMap> ParseEnhancement(const StringMap& annotations, const char* key) {
  const auto found = annotations.find(key);
  if (found == annotations.end()) {
    return StringMap();
  }
  StatusOr<StringMap> values = ParseFlatJson(found->second);
  if (!values.ok()) {
    return Errorf(StatusCode::kInvalidArgument, "cannot read annotation {}: '{}' {}", key,
                  Quoted(found->second), MessageOf(values.status()));
  }
  return values;
}

/// A key of Katalyst's annotations. Source: katalyst-api, consts/pod.go.
struct QosKey {
  std::string_view name;
  bool is_flag = false;          ///< it is "true" or "false"
  std::vector<QosLevel> levels;  ///< at which it has an effect here
  /// At shared_cores it has an effect if the container is bound to a node: then these values, or
  /// any if there are none.
  bool for_bound = false;
  std::vector<std::string_view> bound_values;
};

const std::vector<QosKey>& QosKeys() {
  using enum QosLevel;
  static const std::vector<QosKey> keys = {
      {.name = "cpuset_pool", .levels = {kShared, kReclaimed, kSystem}},
      {.name = "full_pcpus_pairing", .is_flag = true, .levels = {kDedicated}},
      {.name = "distribute_evenly_across_numa", .is_flag = true, .levels = {kDedicated}},
      {.name = "numa_binding", .is_flag = true, .levels = {kDedicated}, .for_bound = true},
      {.name = "numa_exclusive", .is_flag = true, .levels = {kDedicated}},
      {.name = "align_by_socket", .for_bound = true},
      {.name = "cpu_burst_percent"},
      {.name = "cpu_burst_policy"},
      {.name = "numa_ids", .for_bound = true},
      {.name = "numa_number", .for_bound = true, .bound_values = {"1"}},
      {.name = "numa_share"},
      {.name = "oom_priority"},
      {.name = "rss_overuse_threshold"},
      {.name = "suppression_tolerance_rate"},
  };
  return keys;
}

const QosKey* FindKey(const std::string& name) {
  const auto found =
      std::ranges::find_if(QosKeys(), [&](const QosKey& key) { return key.name == name; });
  return found == QosKeys().end() ? nullptr : &*found;
}

/// The node list of an annotation; empty if it cannot be read.
NumaMask NodesOf(const StringMap& annotations) {
  const auto found = annotations.find(std::string(kDomain) + "numa_ids");
  return found == annotations.end() ? NumaMask()
                                    : NumaMask::Parse(found->second).value_or(NumaMask());
}

/// Whether `key` with `value` has an effect on a container of shared_cores that is bound to a node.
bool BindsTo(const StringMap& annotations, const QosKey& key, const std::string& value) {
  if (key.name == "numa_ids") {
    return !NodesOf(annotations).Empty();
  }
  return key.for_bound && (!key.is_flag || value == "true") &&
         (key.bound_values.empty() ||
          std::ranges::find(key.bound_values, value) != key.bound_values.end());
}

/// A pod with QoS annotations.
struct Annotated {
  const StringMap& annotations;
  QosLevel level;
  NodeBinding binding;
};

/// Appends `name` with `value`, of `pod`, if it has no effect.
void AddIfIgnored(const Annotated& pod, const std::string& name, const std::string& value,
                  std::vector<IgnoredQosKey>& ignored) {
  const auto& [annotations, level, binding] = pod;
  const QosKey* const key = FindKey(name);
  if (key != nullptr && level == QosLevel::kShared && binding == NodeBinding::kBound &&
      BindsTo(annotations, *key, value)) {
    return;
  }
  if (key == nullptr || key->levels.empty()) {
    if (value != "false" && !value.empty()) {
      ignored.push_back({key == nullptr ? "other" : key->name, Quoted(name)});
    }
  } else if (key->is_flag && value != "true" && value != "false") {
    ignored.push_back({key->name, name + "=" + Quoted(value)});
  } else if (value != "false" && std::ranges::find(key->levels, level) == key->levels.end()) {
    ignored.push_back({key->name, level == QosLevel::kNone
                                      ? name + " without qos_level"
                                      : name + " at " + annotations.at(kQosLevelKey)});
  }
}

bool IsTrue(const StringMap& values, const char* key) {
  const auto found = values.find(key);
  return found != values.end() && found->second == "true";
}

}  // namespace

StatusOr<StringMap> ParseFlatJson(std::string_view text) {
  // The API server's policies compare the text: an escape could hide a key from them.
  if (text.find('\\') != std::string_view::npos) {
    return Errorf(StatusCode::kInvalidArgument,
                  "has a backslash; write keys and values without escapes");
  }
  const StatusOr<nlohmann::json> object = ParseJson(text, kAnnotationBounds);
  const bool is_twice = object.status().code() == StatusCode::kAlreadyExists;
  if (is_twice || object.status().code() == StatusCode::kResourceExhausted) {
    return Errorf(StatusCode::kInvalidArgument, "{}; remove {}", MessageOf(object.status()),
                  is_twice ? "one of them" : "unused keys");
  }
  if (!object.ok() || !object->is_object()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "is not a JSON object; write one such as {{\"numa_binding\": \"true\"}}");
  }
  StringMap values;
  for (const auto& [key, value] : object->items()) {
    if (value.is_structured()) {  // no reader of these annotations looks into it
      return Errorf(StatusCode::kInvalidArgument,
                    "has an object or a list in '{}'; write a string, true or false", Quoted(key));
    }
    if (value.is_string()) {
      values[key] = value.get<std::string>();
    } else if (value.is_boolean()) {
      values[key] = value.get<bool>() ? "true" : "false";
    }
  }
  return values;
}

StatusOr<QosRequest> ParseQosAnnotations(const StringMap& annotations) {
  QosRequest request;
  // Most pods have no such annotation, and each plugin checks each pod.
  if (std::ranges::none_of(annotations,
                           [](const auto& entry) { return entry.first.starts_with(kDomain); })) {
    return request;
  }
  if (const auto level = annotations.find(kQosLevelKey); level != annotations.end()) {
    QRM_ASSIGN_OR_RETURN(request.level, ParseLevel(level->second));
  }
  QRM_ASSIGN_OR_RETURN(StringMap cpu, ParseEnhancement(annotations, kQosCpuKey));
  request.cpuset_pool = cpu["cpuset_pool"];
  request.full_pcpus_pairing = IsTrue(cpu, "full_pcpus_pairing");
  request.distribute_evenly_across_numa = IsTrue(cpu, "distribute_evenly_across_numa");
  QRM_ASSIGN_OR_RETURN(const StringMap memory, ParseEnhancement(annotations, kQosMemoryKey));
  request.numa_binding = IsTrue(memory, "numa_binding");
  request.numa_exclusive = IsTrue(memory, "numa_exclusive");
  request.numa_ids = NodesOf(annotations);
  return request;
}

std::vector<IgnoredQosKey> IgnoredQosKeys(const StringMap& annotations, NodeBinding binding) {
  std::vector<IgnoredQosKey> ignored;
  const StatusOr<QosRequest> request = ParseQosAnnotations(annotations);
  if (!request.ok()) {
    return ignored;
  }
  const Annotated pod{annotations, request->level, binding};
  for (const char* const annotation : {kQosCpuKey, kQosMemoryKey}) {
    const StringMap values = ParseEnhancement(annotations, annotation).value_or(StringMap());
    for (const auto& [name, value] : values) {
      AddIfIgnored(pod, name, value, ignored);
    }
  }
  for (const char* const name :
       {"numa_ids", "numa_number"}) {  // they have annotations of their own
    if (const auto found = annotations.find(std::string(kDomain) + name);
        found != annotations.end()) {
      AddIfIgnored(pod, name, found->second, ignored);
    }
  }
  return ignored;
}

}  // namespace qrm::rules
