// What the nodes of a simulation do with the pods that come to them, whatever the filters thought.
#pragma once

#include <map>
#include <string>

#include "api/base/status.h"
#include "plugins/placement/walk.h"
#include "scheduler/cache/objects.h"

namespace qrm::scheduler {

/// Each node admits by its own record of what it gave, in the order in which pods come. Nodes
/// without a configuration of qrmd take every pod. The whole-node amounts are checked too.
class NodeJudge {
 public:
  /// Errors: those of ReadNodeModel.
  Status AddNode(const Node& node);

  /// Whether the amounts of `pod` fit what is left of the node's allocatable, as a scheduler
  /// without us sees it. Source: Kubernetes, NodeResourcesFit.
  bool FitsWhole(const std::string& node, const Pod& pod) const;

  /// The pod starts on the node. Errors: the node's rejection; it holds nothing then.
  Status Admit(const std::string& node, const Pod& pod);
  void Remove(const std::string& node, const Pod& pod);

  /// Amounts of `resource` in all nodes' allocatable, and what admitted pods request of it.
  double Allocatable(const std::string& resource) const;
  double Requested(const std::string& resource) const;
  /// CPUs that could still be given to a container alone, and those of them that are on the NUMA
  /// node of their node that has most.
  struct FreeCpus {
    int all = 0;
    int in_largest = 0;
  };
  FreeCpus Free() const;

 private:
  struct Judged {
    Amounts allocatable;
    Amounts requested;
    placement::NodeModelPtr model;  // null: takes every pod
    placement::NodeHoldings held;
    FreeCpus free;  // of held
  };
  static FreeCpus FreeOf(const Judged& node);

  std::map<std::string, Judged> nodes_;
  std::map<std::string, placement::NodeModelPtr> models_;  // by configuration
};

}  // namespace qrm::scheduler
