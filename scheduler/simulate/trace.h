// A trace of nodes, custom resources and pods: what the simulator plays.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "scheduler/cache/feed.h"
#include "scheduler/cache/objects.h"

namespace qrm::scheduler {

/// A pod of the trace. Units: seconds since the beginning.
struct TracePod {
  double at = 0;
  std::optional<double> lifetime;  ///< once it runs; absent: it stays
  Pod pod;                         ///< with a node if another scheduler binds it there
};

/// Pods are in the order of their arrival.
struct Trace {
  std::vector<Node> nodes;
  std::map<std::string, std::vector<Object>> objects;  ///< by the plural name of their resource
  std::vector<TracePod> pods;
};

/// The trace of `text`, YAML or JSON: the lists `nodes` (of {replicas, node}), `objects` (by plural
/// name) and `pods` (of {at, lifetime, replicas, pod}), where node, object and pod are what the API
/// server has. Several replicas are named NAME-0, NAME-1 ...; a pod without a UID has
/// NAMESPACE/NAME for it. `file` is the text's name in errors.
/// Errors: kInvalidArgument with file, place, value and remedy.
StatusOr<Trace> ReadTrace(const std::string& text, const std::string& file);

}  // namespace qrm::scheduler
