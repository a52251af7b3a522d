// Whether a node has what a pod requests of its allocatable, as kube-scheduler counts.
#pragma once

#include <string>
#include <vector>

#include "scheduler/cache/objects.h"

namespace qrm::scheduler {

/// What `pod` requests of a node as a whole, and one of "pods". Init containers run in turn, beside
/// the sidecars before them. Source: Kubernetes, requests of a pod.
Amounts WholeRequest(const Pod& pod);

/// What `node` has too little of for `pod` beside `others`: "cpu", "pods"; empty when it fits.
/// Resources that its allocatable does not name are not judged.
/// Source: kube-scheduler, plugin NodeResourcesFit.
std::string ShortOf(const Node& node, const Pod& pod, const std::vector<Pod>& others);

}  // namespace qrm::scheduler
