// The annotation with a pod's priority.
#pragma once

namespace qrm::placement {

/// qrmd sets it to a pod's `spec.priority` if it knows the spec. A value of the pod itself is
/// dropped.
inline constexpr char kPodPriorityAnnotation[] = "qrm.io/pod-priority";

}  // namespace qrm::placement
