// The QoS annotations of Katalyst, as far as they say where a container belongs.
#pragma once

#include <string>

#include "api/base/status.h"
#include "api/resource.h"

namespace qrm::rules {

/// The annotation that names the level.
inline constexpr char kQosLevelKey[] = "katalyst.kubewharf.io/qos_level";
inline constexpr char kQosCpuKey[] = "katalyst.kubewharf.io/cpu_enhancement";
inline constexpr char kQosMemoryKey[] = "katalyst.kubewharf.io/memory_enhancement";

enum class QosLevel { kNone, kDedicated, kShared, kReclaimed, kSystem };

/// What a pod's QoS annotations ask for; absent annotations leave the defaults.
/// Source: katalyst.kubewharf.io/qos_level, cpu_enhancement and memory_enhancement (JSON objects
/// whose values are strings or booleans).
struct QosRequest {
  QosLevel level = QosLevel::kNone;
  std::string cpuset_pool;                     ///< cpu_enhancement
  bool full_pcpus_pairing = false;             ///< cpu_enhancement: whole cores only
  bool distribute_evenly_across_numa = false;  ///< cpu_enhancement
  bool numa_binding = false;                   ///< memory_enhancement
  bool numa_exclusive = false;                 ///< memory_enhancement: nobody else on its nodes
};

/// Reads them from a request's annotations; keys without meaning for placement are ignored.
/// Errors: kInvalidArgument naming the annotation, its value and the accepted ones.
StatusOr<QosRequest> ParseQosAnnotations(const StringMap& annotations);

}  // namespace qrm::rules
