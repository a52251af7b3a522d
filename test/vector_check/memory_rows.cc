// Rows about memory assignment by kubelet's rules.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "test/vector_check/report.h"
#include "topology/memory_assignment.h"

namespace qrm::vectors {
namespace {

MemoryBytes BytesOf(const Json& amounts) {
  MemoryBytes bytes;
  for (const auto& [type, amount] : amounts.items()) {
    bytes[type] = amount.get<uint64_t>();
  }
  return bytes;
}

std::map<int, NodeMemory> NodesOf(const Json& state) {
  std::map<int, NodeMemory> nodes;
  if (state.is_null()) {
    return nodes;
  }
  for (const auto& [id, node] : state.items()) {
    NodeMemory& memory = nodes[std::stoi(id)];
    memory.assignments = node.at("number_of_assignments");
    memory.cells = MaskOf(node.at("cells"));
    for (const auto& [type, amounts] : node.at("memory").items()) {
      memory.types[type] = {.total = amounts.at("total"),
                            .system_reserved = amounts.at("system_reserved"),
                            .allocatable = amounts.at("allocatable"),
                            .reserved = amounts.at("reserved"),
                            .free = amounts.at("free")};
    }
  }
  return nodes;
}

MemoryState StateOf(const Json& row) {
  MemoryState state{.nodes = NodesOf(row.value("machine_state", Json()))};
  const Json assignments = row.value("assignments", Json::object());
  for (const auto& [pod, containers] : assignments.items()) {
    for (const auto& [container, blocks] : containers.items()) {
      for (const Json& block : blocks) {
        state.assignments[pod][container].push_back({.nodes = MaskOf(block.at("numa")),
                                                     .type = block.at("type"),
                                                     .bytes = block.at("size"),
                                                     .parts = {}});
      }
    }
  }
  return state;
}

Machine MachineOf(const std::map<int, NodeMemory>& nodes) {
  MachineParts parts;
  for (const auto& [id, node] : nodes) {
    parts.nodes.push_back({.id = id});
  }
  return Machine(std::move(parts));
}

/// Assignments as text, blocks in any order.
std::string AssignmentsText(const MemoryState& state) {
  std::set<std::string> lines;
  for (const auto& [pod, containers] : state.assignments) {
    for (const auto& [container, blocks] : containers) {
      for (const MemoryBlock& block : blocks) {
        lines.insert(fmt::format("{}/{}: {} of {} on {}", pod, container, block.bytes, block.type,
                                 ToString(block.nodes)));
      }
    }
  }
  return fmt::format("{}", fmt::join(lines, "; "));
}

std::string NodesText(const std::map<int, NodeMemory>& nodes) {
  std::string text;
  for (const auto& [id, node] : nodes) {
    text += fmt::format("node {} n={} cells={}", id, node.assignments, ToString(node.cells));
    for (const auto& [type, amounts] : node.types) {
      text += fmt::format(" {}:{}/{}", type, amounts.reserved, amounts.free);
    }
    text += "; ";
  }
  return text;
}

Difference CompareState(const MemoryState& got, const Json& expected) {
  if (expected.contains("assignments")) {
    const MemoryState wanted = StateOf(expected);
    if (Difference wrong = Compare(AssignmentsText(got), AssignmentsText(wanted)); !wrong.empty()) {
      return wrong;
    }
  }
  if (expected.contains("machine_state") && !expected.at("machine_state").is_null()) {
    const std::map<int, NodeMemory> wanted = NodesOf(expected.at("machine_state"));
    if (!SameMemory(got.nodes, wanted)) {
      return Compare(NodesText(got.nodes), NodesText(wanted) + " ");
    }
  }
  return "";
}

const Json* FindContainer(const Json& pod, const std::string& name) {
  for (const char* list : {"init_containers", "containers"}) {
    for (const Json& container : pod.at(list)) {
      if (container.at("name") == name) {
        return &container;
      }
    }
  }
  return nullptr;
}

/// The request of container `name`; the role and the ended init containers follow from the pod.
MemoryRequest RequestOf(const Json& row, const std::string& name) {
  const Json& pod = row.at("pod");
  MemoryRequest request{.pod = pod.at("uid"), .container = name};
  bool reached = false;
  for (const Json& init : pod.at("init_containers")) {
    const bool stays = init.value("restartable", false);
    if (init.at("name") == name) {
      request.role = stays ? ContainerRole::kSidecar : ContainerRole::kInit;
      reached = true;
    } else if (!reached && !stays) {
      request.ended_inits.push_back(init.at("name"));
    }
  }
  if (const Json* container = FindContainer(pod, name);
      container != nullptr && row.value("qos_guaranteed", true)) {
    request.bytes = BytesOf(container->at("requests"));
  }
  if (row.contains("affinity_hint") && !row.at("affinity_hint").is_null()) {
    request.hint = {.nodes = MaskOf(row.at("affinity_hint").at("numa")),
                    .preferred = row.at("affinity_hint").at("preferred")};
  }
  return request;
}

Difference CheckAllocate(const Json& row, const MemoryAssignment& memory, MemoryState state) {
  std::string error;
  for (const Json& name : row.at("allocate_order")) {
    const StatusOr<MemoryState> next = memory.Allocate(state, RequestOf(row, name));
    if (!next.ok()) {
      error = MessageOf(next.status());
      break;
    }
    state = *next;
  }
  const Json& expected = row.at("expected");
  const bool expects_error = expected.contains("error") && !expected.at("error").is_null();
  if (expects_error != !error.empty()) {
    return fmt::format("got error \"{}\", expected {}", error, expects_error ? "one" : "none");
  }
  return CompareState(state, expected);
}

std::string HintsText(const HintList& hints) {
  std::set<std::string> lines;
  for (const TopologyHint& hint : hints.hints()) {
    lines.insert(ToString(hint));
  }
  return fmt::format("{}", fmt::join(lines, "; "));
}

/// Our list stands for all types; none of the row means that there is no preference.
Difference CheckHints(const Json& row, const MemoryAssignment& memory, const MemoryState& state) {
  const std::string name = row.at("pod").at("containers")[0].at("name");
  const HintList got = memory.Hints(state, RequestOf(row, name));
  const Json& expected = row.at("expected").at("hints");
  if (expected.is_null() || expected.empty()) {
    return Compare(HintsText(got), "");
  }
  for (const auto& [type, list] : expected.items()) {
    std::vector<TopologyHint> hints;
    for (const Json& hint : list) {
      hints.push_back({.nodes = MaskOf(hint.at("numa")), .preferred = hint.at("preferred")});
    }
    if (Difference wrong = Compare(HintsText(got), HintsText(HintList(hints))); !wrong.empty()) {
      return type + ": " + wrong;
    }
  }
  return "";
}

Difference CheckPolicy(const Json& row) {
  const MemoryState state = StateOf(row);
  const Machine machine = MachineOf(state.nodes);
  const MemoryAssignment memory(machine, MemoryPolicy::kStatic, {});
  const std::string op = row.at("op");
  if (op == "allocate") {
    return CheckAllocate(row, memory, state);
  }
  if (op == "remove") {
    return CompareState(memory.Remove(state, row.at("pod_uid"), row.at("container")),
                        row.at("expected"));
  }
  if (op == "hints") {
    return CheckHints(row, memory, state);
  }
  return "unknown op " + op;
}

Difference CheckStart(const Json& row) {
  MachineParts parts;
  for (const Json& node : row.at("machine_info")) {
    NumaNode read{.id = node.at("numa"), .memory_bytes = node.at("memory")};
    for (const Json& pages : node.at("hugepages")) {
      read.hugepages[pages.at("page_size_kb").get<uint64_t>() * 1024] = pages.at("num_pages");
    }
    parts.nodes.push_back(std::move(read));
  }
  std::map<int, MemoryBytes> reserved;
  for (const auto& [node, amounts] : row.at("system_reserved").items()) {
    reserved[std::stoi(node)] = BytesOf(amounts);
  }
  const Machine machine(std::move(parts));
  const StatusOr<MemoryState> started =
      MemoryAssignment(machine, MemoryPolicy::kStatic, reserved).Start(StateOf(row));
  if (!row.at("expected_error").is_null()) {
    return started.ok() ? "started, expected an error" : "";
  }
  if (!started.ok()) {
    return MessageOf(started.status());
  }
  return CompareState(*started, {{"machine_state", row.at("expected_machine_state")}});
}

Difference CheckGroupRule(const Json& row) {
  std::map<int, NodeMemory> nodes;
  for (const auto& [id, cells] : row.at("cells").items()) {
    nodes[std::stoi(id)].cells = MaskOf(cells);
  }
  for (const auto& [id, count] : row.at("assignments").items()) {
    nodes[std::stoi(id)].assignments = count;
  }
  const bool breaks = BreaksGroupRule(nodes, MaskOf(row.at("affinity")));
  return Compare(breaks ? "violates" : "keeps",
                 row.at("violates").get<bool>() ? "violates" : "keeps");
}

Difference CheckPodRequest(const Json& row) {
  std::vector<ContainerMemory> containers;
  for (const Json& init : row.at("pod").at("init_containers")) {
    containers.push_back(
        {.role = init.value("restartable", false) ? ContainerRole::kSidecar : ContainerRole::kInit,
         .bytes = BytesOf(init.at("requests"))});
  }
  for (const Json& app : row.at("pod").at("containers")) {
    containers.push_back({.bytes = BytesOf(app.at("requests"))});
  }
  return Compare(Json(PodMemoryRequest(containers)).dump(),
                 Json(BytesOf(row.at("expected"))).dump());
}

}  // namespace

void CheckMemory(const Json& file, Report& report) {
  report.Section(file, "static_policy", CheckPolicy);
  report.Section(file, "start_state", CheckStart);
  report.Section(file, "affinity_violation", CheckGroupRule);
  report.Section(file, "pod_requested_resources", CheckPodRequest);
}

}  // namespace qrm::vectors
