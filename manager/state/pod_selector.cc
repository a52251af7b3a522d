// Compares names.
#include "manager/state/pod_selector.h"

#include <vector>

#include "api/base/errorf.h"

namespace qrm::manager {

using checkpoint::NodeState;
using checkpoint::PodRecord;

bool IsMeant(const std::string& selector, const PodNames& names) {
  return selector == names.name || selector == names.uid ||
         selector == names.pod_namespace + "/" + names.name;
}

StatusOr<const PodRecord*> FindMeantPod(const NodeState& state, const std::string& selector) {
  std::vector<const PodRecord*> meant;
  state.ForEachPod([&](const PodRecord& pod) {
    if (IsMeant(selector, {pod.meta.uid, pod.meta.pod_namespace, pod.meta.name})) {
      meant.push_back(&pod);
    }
  });
  if (meant.empty()) {
    return Errorf(StatusCode::kNotFound, "no pod {} is admitted; qrmctl pods lists all pods",
                  selector);
  }
  if (meant.size() > 1) {
    return Errorf(StatusCode::kInvalidArgument,
                  "{} pods are called {}; write NAMESPACE/NAME or the UID", meant.size(), selector);
  }
  return meant.front();
}

}  // namespace qrm::manager
