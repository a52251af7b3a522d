// How plugins are told a pod's priority.
#pragma once

namespace qrm::rules {

/// The annotation that qrmd sets to a pod's `spec.priority`, where it knows the spec; what a pod
/// says there itself is dropped.
inline constexpr char kPodPriorityAnnotation[] = "qrm.io/pod-priority";

}  // namespace qrm::rules
