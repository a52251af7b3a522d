// Reads Katalyst's QoS annotations.
#include "plugins/placement/qos_annotations.h"

#include <algorithm>
#include <string_view>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "plugins/placement/flat_json.h"

namespace qrm::placement {
namespace {

/// The prefix of all these keys.
constexpr std::string_view kDomain = "katalyst.kubewharf.io/";

StatusOr<QosLevel> ParseLevel(const std::string& text) {
  if (text == "dedicated_cores") {
    return QosLevel::kDedicated;
  }
  if (text == "shared_cores") {
    return QosLevel::kShared;
  }
  if (text == "reclaimed_cores") {
    return QosLevel::kReclaimed;
  }
  if (text == "system_cores") {
    return QosLevel::kSystem;
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

bool IsTrue(const StringMap& values, const char* key) {
  const auto found = values.find(key);
  return found != values.end() && found->second == "true";
}

}  // namespace

StatusOr<QosRequest> ParseQosAnnotations(const StringMap& annotations) {
  QosRequest request;
  // Most pods have no such annotation, and each plugin checks each pod.
  if (std::none_of(annotations.begin(), annotations.end(),
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
  return request;
}

}  // namespace qrm::placement
