// The questions of kube-scheduler to an extender and their answers, as JSON.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "scheduler/cache/objects.h"

namespace qrm::scheduler {

/// Of filter and prioritize. Source: kube-scheduler, extender/v1 ExtenderArgs.
struct NodesQuestion {
  Pod pod;
  std::vector<std::string> nodes;  ///< in the order in which they were asked for
};
/// Errors: kInvalidArgument with what is missing; also for whole nodes in place of their names.
StatusOr<NodesQuestion> ParseNodesQuestion(const std::string& body);

/// Of bind. Source: ExtenderBindingArgs.
struct BindQuestion {
  std::string pod_namespace;
  std::string pod;
  std::string uid;
  std::string node;
};
/// Errors: kInvalidArgument with what is missing.
StatusOr<BindQuestion> ParseBindQuestion(const std::string& body);

/// Of preempt. Source: ExtenderPreemptionArgs.
struct PreemptQuestion {
  struct Victims {
    std::vector<std::string> uids;
    int violations = 0;  ///< of disruption budgets
  };
  Pod pod;
  std::map<std::string, Victims> victims;  ///< by node
};
/// Errors: as ParseNodesQuestion.
StatusOr<PreemptQuestion> ParsePreemptQuestion(const std::string& body);

/// The nodes that fit, and why others do not. A failure makes kube-scheduler try the pod again by
/// itself; a rejection makes it wait for a change.
struct FilterAnswer {
  std::vector<std::string> nodes;
  StringMap refused;       ///< by node
  StringMap unresolvable;  ///< the same, whatever pods end: no victims are looked for there
};
std::string WriteFilter(const FilterAnswer& answer);
std::string WriteFilterFailure(const Status& why);

struct NodeScore {
  std::string node;
  int score = 0;  ///< 0 to 10
};
std::string WriteScores(const std::vector<NodeScore>& scores);

/// OK: the pod is bound.
std::string WriteBind(const Status& outcome);

/// The nodes on which to preempt, with their victims as they were asked for.
std::string WritePreempt(const std::map<std::string, PreemptQuestion::Victims>& victims);

}  // namespace qrm::scheduler
