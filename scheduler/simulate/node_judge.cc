// Keeps its own record of each node, apart from the cache that it checks.
#include "scheduler/simulate/node_judge.h"

#include <algorithm>
#include <utility>

#include "api/base/errorf.h"
#include "plugins/cpu/state.h"
#include "scheduler/cache/node_fit.h"
#include "scheduler/topology/placement_note.h"
#include "scheduler/topology/resource_types.h"

namespace qrm::scheduler {
namespace {

double AmountOf(const Amounts& amounts, const std::string& name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? 0 : found->second;
}

}  // namespace

Status NodeJudge::AddNode(const Node& node) {
  Judged judged{.allocatable = node.allocatable};
  if (const auto config = node.annotations.find(kNodeConfig); config != node.annotations.end()) {
    placement::NodeModelPtr& model = models_[config->second];
    if (model == nullptr) {
      QRM_ASSIGN_OR_RETURN(
          model, placement::ReadNodeModel(config->second, fmt::format("annotation {} of node {}",
                                                                      kNodeConfig, node.name)));
    }
    judged.model = model;
    judged.held = placement::NothingHeld(*model);
    judged.free = FreeOf(judged);
  }
  nodes_[node.name] = std::move(judged);
  return OkStatus();
}

bool NodeJudge::FitsWhole(const std::string& node, const Pod& pod) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) {
    return false;
  }
  const Amounts whole = WholeRequest(pod);
  return std::all_of(whole.begin(), whole.end(), [&](const auto& request) {
    const auto& [name, amount] = request;
    const bool counted = name != "pods" || found->second.allocatable.contains(name);
    return !counted || amount == 0 ||
           AmountOf(found->second.requested, name) + amount <=
               AmountOf(found->second.allocatable, name);
  });
}

Status NodeJudge::Admit(const std::string& node, const Pod& pod) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) {
    return Errorf(StatusCode::kNotFound,
                  "cannot place pod {}/{} on node {}: the trace has no such node; correct its "
                  "spec.nodeName",
                  pod.pod_namespace, pod.name, node);
  }
  Judged& judged = found->second;
  if (judged.model != nullptr) {
    QRM_ASSIGN_OR_RETURN(
        placement::PlacedPod placed,
        placement::PlacePod(*judged.model, DemandsOf(*judged.model, pod), judged.held));
    judged.held = std::move(placed.after);
    judged.free = FreeOf(judged);
  }
  for (const auto& [name, amount] : WholeRequest(pod)) {
    judged.requested[name] += amount;
  }
  return OkStatus();
}

void NodeJudge::Remove(const std::string& node, const Pod& pod) {
  Judged& judged = nodes_.at(node);
  placement::DropPod(pod.uid, judged.held);
  if (judged.model != nullptr) {
    judged.free = FreeOf(judged);
  }
  for (const auto& [name, amount] : WholeRequest(pod)) {
    judged.requested[name] -= amount;
  }
}

double NodeJudge::Allocatable(const std::string& resource) const {
  double sum = 0;
  for (const auto& [name, node] : nodes_) {
    sum += AmountOf(node.allocatable, resource);
  }
  return sum;
}

double NodeJudge::Requested(const std::string& resource) const {
  double sum = 0;
  for (const auto& [name, node] : nodes_) {
    sum += AmountOf(node.requested, resource);
  }
  return sum;
}

NodeJudge::FreeCpus NodeJudge::Free() const {
  FreeCpus sum;
  for (const auto& [name, node] : nodes_) {
    sum.all += node.free.all;
    sum.in_largest += node.free.in_largest;
  }
  return sum;
}

NodeJudge::FreeCpus NodeJudge::FreeOf(const Judged& node) {
  const Machine& machine = node.model->machine;
  const CpuSet free =
      machine.cpu_set() - node.model->cpu.reserved - cpu::ExclusiveCpus(node.held.cpu);
  FreeCpus cpus{.all = free.Count()};
  for (const NumaNode& numa : machine.nodes()) {
    cpus.in_largest = std::max(cpus.in_largest, (numa.cpus & free).Count());
  }
  return cpus;
}

}  // namespace qrm::scheduler
