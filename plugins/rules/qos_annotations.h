// Katalyst's QoS annotations, as far as they affect placement.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "api/resource.h"

namespace qrm::rules {

/// The strings and booleans ("true", "false") directly in the object `text`; other values are
/// skipped. Errors: kInvalidArgument with cause and remedy, such as "is not a JSON object; write
/// ..."; also for a key that is there twice, for escapes, and for objects and lists within.
StatusOr<StringMap> ParseFlatJson(std::string_view text);

/// The annotation that names the level.
inline constexpr char kQosLevelKey[] = "katalyst.kubewharf.io/qos_level";
inline constexpr char kQosCpuKey[] = "katalyst.kubewharf.io/cpu_enhancement";
inline constexpr char kQosMemoryKey[] = "katalyst.kubewharf.io/memory_enhancement";

enum class QosLevel { kNone, kDedicated, kShared, kReclaimed, kSystem };

/// What a pod's QoS annotations request; without annotations the defaults.
/// Source: katalyst.kubewharf.io/qos_level, cpu_enhancement and memory_enhancement (JSON objects
/// whose values are strings or booleans).
struct QosRequest {
  QosLevel level = QosLevel::kNone;
  std::string cpuset_pool;                     ///< cpu_enhancement
  bool full_pcpus_pairing = false;             ///< cpu_enhancement: whole cores only
  bool distribute_evenly_across_numa = false;  ///< cpu_enhancement
  bool numa_binding = false;                   ///< memory_enhancement
  bool numa_exclusive = false;  ///< memory_enhancement: no other container on its nodes
  NumaMask numa_ids;            ///< nodes that it asks for; empty: any
};

/// What decided an allocation that binds a container to NUMA nodes by its annotations.
inline constexpr char kByBinding[] = "annotation memory_enhancement";

/// Reads a request's annotations, and ignores keys that do not affect placement. Errors:
/// kInvalidArgument with the annotation, its value and the allowed values.
StatusOr<QosRequest> ParseQosAnnotations(const StringMap& annotations);

/// A key of a pod's QoS annotations that has no effect.
struct IgnoredQosKey {
  std::string_view label;  ///< of counters: Katalyst's key, or "other" for a key of no meaning
  std::string text;        ///< the key and why: "numa_binding at shared_cores"
};

/// Whether a container of shared_cores is bound to a NUMA node, as the plugins' configuration says.
enum class NodeBinding { kNone, kBound };

/// The keys of readable annotations that the pod's level does not have, whose value is not allowed,
/// or that qrm does not know. A key that is "false" asks for nothing.
std::vector<IgnoredQosKey> IgnoredQosKeys(const StringMap& annotations, NodeBinding binding);

}  // namespace qrm::rules
