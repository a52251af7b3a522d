// Reads rows about memory.
#include "test/vector_check/memory_row.h"

#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace qrm::vectors {
namespace {

MemoryTable NodesOf(const Json& state) {
  MemoryTable nodes;
  if (state.is_null()) {
    return nodes;
  }
  for (const auto& [id, node] : state.items()) {
    NodeMemory& memory = nodes[std::stoi(id)];
    memory.assignments = node.at("number_of_assignments");
    memory.cells = MaskOf(node.at("cells"));
    if (memory.cells.Empty()) {
      memory.cells.Add(std::stoi(id));
    }
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

MachineParts MemoryPartsOf(const Json& machine_info) {
  MachineParts parts;
  for (const Json& node : machine_info) {
    NumaNode read{.id = node.at("numa"), .memory_bytes = node.at("memory")};
    for (const Json& pages : node.at("hugepages")) {
      read.hugepages[pages.at("page_size_kb").get<uint64_t>() * 1024] = pages.at("num_pages");
    }
    parts.nodes.push_back(std::move(read));
  }
  return parts;
}

/// Assignments as text, blocks in any order.
std::string AssignmentsText(const MemoryAssignments& assignments) {
  std::set<std::string> lines;
  for (const auto& [pod, containers] : assignments) {
    for (const auto& [container, blocks] : containers) {
      for (const MemoryBlock& block : blocks) {
        lines.insert(fmt::format("{}/{}: {} of {} on {}", pod, container, block.bytes, block.type,
                                 ToString(block.nodes)));
      }
    }
  }
  return fmt::format("{}", fmt::join(lines, "; "));
}

std::string NodesText(const MemoryTable& nodes) {
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

bool Stays(const Json& init) {
  return init.value("restartable", false);
}

}  // namespace

MemoryBytes BytesOf(const Json& amounts) {
  MemoryBytes bytes;
  for (const auto& [type, amount] : amounts.items()) {
    bytes[type] = amount.get<uint64_t>();
  }
  return bytes;
}

KubeletMemory StateOf(const Json& row) {
  KubeletMemory state{.nodes = NodesOf(row.value("machine_state", Json()))};
  const Json assignments = row.value("assignments", Json::object());
  for (const auto& [pod, containers] : assignments.items()) {
    for (const auto& [container, blocks] : containers.items()) {
      for (const Json& block : blocks) {
        state.assignments[pod][container].push_back({.nodes = MaskOf(block.at("numa")),
                                                     .type = block.at("type"),
                                                     .bytes = block.at("size")});
      }
    }
  }
  return state;
}

MemoryContainer ContainerOf(const Json& row, const std::string& name) {
  const Json& pod = row.at("pod");
  const bool guaranteed = row.value("qos_guaranteed", true);
  int index = 0;
  for (const Json& init : pod.at("init_containers")) {
    if (init.at("name") == name) {
      return {.type = Stays(init) ? ContainerType::kSidecar : ContainerType::kInit,
              .index = index,
              .bytes = guaranteed ? BytesOf(init.at("requests")) : MemoryBytes()};
    }
    ++index;
  }
  index = 0;
  for (const Json& app : pod.at("containers")) {
    if (app.at("name") == name) {
      return {.type = index == 0 ? ContainerType::kMain : ContainerType::kSidecar,
              .index = index,
              .bytes = guaranteed ? BytesOf(app.at("requests")) : MemoryBytes()};
    }
    ++index;
  }
  return {};
}

std::vector<std::string> EndedBefore(const Json& row, const std::string& name) {
  std::vector<std::string> ended;
  for (const Json& init : row.at("pod").at("init_containers")) {
    if (init.at("name") == name) {
      break;
    }
    if (!Stays(init)) {
      ended.push_back(init.at("name"));
    }
  }
  return ended;
}

TopologyHint HintOf(const Json& row) {
  if (!row.contains("affinity_hint") || row.at("affinity_hint").is_null()) {
    return {};
  }
  return {.nodes = MaskOf(row.at("affinity_hint").at("numa")),
          .preferred = row.at("affinity_hint").at("preferred")};
}

bool SameMemory(const MemoryTable& a, const MemoryTable& b) {
  if (a.size() != b.size()) {
    return false;
  }
  for (const auto& [id, node] : a) {
    const auto other = b.find(id);
    if (other == b.end() || node.assignments != other->second.assignments ||
        node.cells != other->second.cells || node.types.size() != other->second.types.size()) {
      return false;
    }
    for (const auto& [type, amounts] : node.types) {
      const auto same = other->second.types.find(type);
      if (same == other->second.types.end() || amounts.total != same->second.total ||
          amounts.system_reserved != same->second.system_reserved ||
          amounts.allocatable != same->second.allocatable ||
          Sum(a, node.cells, type, &MemoryAmounts::free) !=
              Sum(b, node.cells, type, &MemoryAmounts::free) ||
          Sum(a, node.cells, type, &MemoryAmounts::reserved) !=
              Sum(b, node.cells, type, &MemoryAmounts::reserved)) {
        return false;
      }
    }
  }
  return true;
}

Difference CompareState(const KubeletMemory& got, const Json& expected) {
  if (expected.contains("assignments")) {
    const KubeletMemory wanted = StateOf(expected);
    if (Difference wrong =
            Compare(AssignmentsText(got.assignments), AssignmentsText(wanted.assignments));
        !wrong.empty()) {
      return wrong;
    }
  }
  if (expected.contains("machine_state") && !expected.at("machine_state").is_null()) {
    const MemoryTable wanted = NodesOf(expected.at("machine_state"));
    if (!SameMemory(got.nodes, wanted)) {
      return Compare(NodesText(got.nodes), NodesText(wanted) + " ");
    }
  }
  return "";
}

MemoryMachine::MemoryMachine(const Json& row) : machine(MemoryPartsOf(row.at("machine_info"))) {
  for (const auto& [node, amounts] : row.at("system_reserved").items()) {
    reserved[std::stoi(node)] = BytesOf(amounts);
  }
}

}  // namespace qrm::vectors
