// Indexes a machine's CPUs by what they share.
#include "topology/cpu_layout.h"

#include <algorithm>
#include <map>
#include <utility>

namespace qrm {
namespace {

std::vector<CpuGroup> NodesWithCpus(const Machine& machine) {
  std::vector<CpuGroup> nodes;
  for (const NumaNode& node : machine.nodes()) {
    if (!node.cpus.Empty()) {
      nodes.push_back({.id = node.id, .cpus = node.cpus});
    }
  }
  return nodes;
}

/// The L3s of Cpu::l3, which stands for the package where none is known.
std::vector<CpuGroup> L3s(const Machine& machine) {
  std::map<int, CpuSet> by_id;
  for (const Cpu& cpu : machine.cpus()) {
    by_id[cpu.l3].Add(cpu.id);
  }
  std::vector<CpuGroup> l3s;
  l3s.reserve(by_id.size());
  for (auto& [id, cpus] : by_id) {
    l3s.push_back({.id = id, .cpus = std::move(cpus)});
  }
  return l3s;
}

OuterLevel OuterOf(const Machine& machine) {
  return machine.packages().size() >= NodesWithCpus(machine).size() ? OuterLevel::kNuma
                                                                    : OuterLevel::kPackage;
}

}  // namespace

CpuLayout::CpuLayout(const Machine& machine) : CpuLayout(machine, {}, OuterOf(machine)) {}

CpuLayout::CpuLayout(const Machine& machine, const CpuSizes& sizes, OuterLevel outer)
    : machine_(&machine), sizes_(sizes), outer_(outer) {
  AddElements(kCore, machine.cores());
  AddElements(kL3, L3s(machine));
  AddElements(kPackage, machine.packages());
  AddElements(kNode, NodesWithCpus(machine));
  Nest(kNode, kPackage);
  Nest(kNode, kL3);
  Nest(kNode, kCore);
  Nest(kPackage, kNode);
  Nest(kPackage, kCore);
  Nest(kL3, kCore);
}

CpuLayout CpuLayout::LikeKubelet(const Machine& machine) {
  const int cpus = machine.cpu_set().Count();
  const auto average = [cpus](std::size_t count) {
    return count == 0 ? 0 : cpus / static_cast<int>(count);
  };
  return CpuLayout(machine,
                   {.per_core = average(machine.cores().size()),
                    .per_package = average(machine.packages().size()),
                    .per_l3 = average(L3s(machine).size())},
                   OuterOf(machine));
}

void CpuLayout::AddElements(Level level, const std::vector<CpuGroup>& groups) {
  elements_[level] = groups;
  std::vector<int>& of = element_of_[level];
  of.assign(static_cast<std::size_t>(all().Last()) + 1, -1);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const int cpu : groups[i].cpus) {
      of[static_cast<std::size_t>(cpu)] = static_cast<int>(i);
    }
  }
}

void CpuLayout::Nest(Level outer, Level inner) {
  std::vector<std::vector<int>>& lists = within_[outer][inner];
  lists.assign(elements_[outer].size(), {});
  for (const int cpu : all()) {
    lists[static_cast<std::size_t>(ElementOf(outer, cpu))].push_back(ElementOf(inner, cpu));
  }
  for (std::vector<int>& list : lists) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
}

}  // namespace qrm
