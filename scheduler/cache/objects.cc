// Compares pods.
#include "scheduler/cache/objects.h"

namespace qrm::scheduler {

bool SameButVersion(const Pod& a, const Pod& b) {
  return a.uid == b.uid && a.pod_namespace == b.pod_namespace && a.name == b.name &&
         a.node == b.node && a.finished == b.finished && a.qos_class == b.qos_class &&
         a.labels == b.labels && a.annotations == b.annotations && a.containers == b.containers &&
         a.overhead == b.overhead;
}

}  // namespace qrm::scheduler
