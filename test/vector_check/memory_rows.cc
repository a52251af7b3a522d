// Rows about memory assignment by kubelet's rules, by the functions themselves.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "test/vector_check/memory_row.h"
#include "test/vector_check/report.h"
#include "topology/static_memory_policy.h"

namespace qrm::vectors {
namespace {

Machine MachineOf(const MemoryTable& nodes) {
  MachineParts parts;
  for (const auto& [id, node] : nodes) {
    parts.nodes.push_back({.id = id});
  }
  return Machine(std::move(parts));
}

/// The nodes as they were before any allocation.
MemoryTable Unused(MemoryTable nodes) {
  for (auto& [id, node] : nodes) {
    node.assignments = 0;
    node.cells = NumaMask{id};
    for (auto& [type, amounts] : node.types) {
      amounts.reserved = 0;
      amounts.free = amounts.allocatable;
    }
  }
  return nodes;
}

StaticMemoryRequest RequestOf(const Json& row, const std::string& name,
                              const KubeletMemory& state) {
  StaticMemoryRequest request{.bytes = ContainerOf(row, name).bytes};
  const auto pod = state.assignments.find(row.at("pod").at("uid").get<std::string>());
  for (const std::string& init : EndedBefore(row, name)) {
    if (pod != state.assignments.end() && pod->second.contains(init)) {
      const std::vector<MemoryBlock>& blocks = pod->second.at(init);
      request.leftover.insert(request.leftover.end(), blocks.begin(), blocks.end());
    }
  }
  return request;
}

/// `state` with blocks for the container on `nodes`.
void Give(const Json& row, const std::string& name, const NumaMask& nodes, KubeletMemory& state) {
  auto& containers = state.assignments[row.at("pod").at("uid")];
  std::vector<MemoryBlock> blocks;
  for (const auto& [type, bytes] : ContainerOf(row, name).bytes) {
    const MemoryBlock block{.nodes = nodes, .type = type, .bytes = bytes};
    MemoryBlock fresh = block;
    for (const std::string& init : EndedBefore(row, name)) {
      if (const auto held = containers.find(init); held != containers.end()) {
        fresh.bytes -= UseAgain(fresh, held->second);
      }
    }
    Hold(fresh, state.nodes);
    blocks.push_back(block);
  }
  containers[name] = std::move(blocks);
}

Difference CheckAllocate(const Json& row, const StaticMemoryPolicy& policy, KubeletMemory state) {
  std::string error;
  const std::string pod = row.at("pod").at("uid");
  for (const Json& entry : row.at("allocate_order")) {
    const std::string name = entry;
    const StaticMemoryRequest request = RequestOf(row, name, state);
    const auto held = state.assignments.find(pod);
    if (request.bytes.empty() || (held != state.assignments.end() && held->second.contains(name))) {
      continue;
    }
    const StatusOr<NumaMask> nodes = policy.Choose(state.nodes, request, HintOf(row));
    if (!nodes.ok()) {
      error = MessageOf(nodes.status());
      break;
    }
    Give(row, name, *nodes, state);
  }
  const Json& expected = row.at("expected");
  const bool expects_error = expected.contains("error") && !expected.at("error").is_null();
  if (expects_error != !error.empty()) {
    return fmt::format("got error \"{}\", expected {}", error, expects_error ? "one" : "none");
  }
  return CompareState(state, expected);
}

Difference CheckRemove(const Json& row, KubeletMemory state) {
  auto& containers = state.assignments[row.at("pod_uid")];
  if (containers.erase(row.at("container").get<std::string>()) == 0) {
    return CompareState(state, row.at("expected"));
  }
  state.nodes = Unused(std::move(state.nodes));
  for (const auto& [pod, others] : state.assignments) {
    for (const auto& [container, blocks] : others) {
      for (const MemoryBlock& block : blocks) {
        Hold(block, state.nodes);
      }
    }
  }
  return CompareState(state, row.at("expected"));
}

Difference CheckHints(const Json& row, const StaticMemoryPolicy& policy,
                      const KubeletMemory& state) {
  const std::string name = row.at("pod").at("containers")[0].at("name");
  const StaticMemoryRequest request = RequestOf(row, name, state);
  std::vector<TopologyHint> got;
  const auto pod = state.assignments.find(row.at("pod").at("uid").get<std::string>());
  if (pod != state.assignments.end() && pod->second.contains(name)) {
    const std::vector<MemoryBlock>& held = pod->second.at(name);
    const bool same = held.size() == request.bytes.size() &&
                      std::all_of(held.begin(), held.end(), [&request](const MemoryBlock& block) {
                        const auto asked = request.bytes.find(block.type);
                        return asked != request.bytes.end() && asked->second == block.bytes;
                      });
    if (same) {
      got.push_back({.nodes = held.front().nodes, .preferred = true});
    }
  } else if (!request.bytes.empty()) {
    got = policy.Hints(state.nodes, request);
  }
  return CompareHints(row, HintsText(HintList(got)));
}

}  // namespace

Difference CompareHints(const Json& row, const std::string& got) {
  const Json& expected = row.at("expected").at("hints");
  if (expected.is_null() || expected.empty()) {
    return Compare(got, "");
  }
  for (const auto& [type, list] : expected.items()) {
    if (Difference wrong = Compare(got, HintsText(HintsOf(list))); !wrong.empty()) {
      return fmt::format("{}: {}", type, wrong);
    }
  }
  return "";
}

Difference CheckPolicyByFunction(const Json& row) {
  const KubeletMemory state = StateOf(row);
  const Machine machine = MachineOf(state.nodes);
  const StaticMemoryPolicy policy(machine);
  const std::string op = row.at("op");
  if (op == "allocate") {
    return CheckAllocate(row, policy, state);
  }
  if (op == "remove") {
    return CheckRemove(row, state);
  }
  if (op == "hints") {
    return CheckHints(row, policy, state);
  }
  return "unknown op " + op;
}

Difference CheckGroupRuleByFunction(const Json& row) {
  constexpr uint64_t kEnough = 1 << 20;
  MemoryTable nodes;
  for (const auto& [id, cells] : row.at("cells").items()) {
    nodes[std::stoi(id)].cells = MaskOf(cells);
    nodes[std::stoi(id)].types[kOrdinaryMemory] = {.allocatable = kEnough, .free = kEnough};
  }
  for (const auto& [id, count] : row.at("assignments").items()) {
    nodes[std::stoi(id)].assignments = count;
  }
  const Machine machine = MachineOf(nodes);
  const StatusOr<NumaMask> chosen =
      StaticMemoryPolicy(machine).Choose(nodes, {.bytes = {{kOrdinaryMemory, 1}}},
                                         {.nodes = MaskOf(row.at("affinity")), .preferred = true});
  return Compare(chosen.ok() ? "keeps" : "violates",
                 row.at("violates").get<bool>() ? "violates" : "keeps");
}

void CheckMemory(const Json& file, Report& report) {
  report.Section(file, "static_policy", CheckPolicyByFunction);
  report.Section(file, "affinity_violation", CheckGroupRuleByFunction);
  CheckMemoryState(file, report);
}

}  // namespace qrm::vectors
