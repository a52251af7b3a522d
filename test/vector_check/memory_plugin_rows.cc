// Rows about memory, through the memory plugin's service code.
#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/container_turns.h"
#include "plugins/memory/memory_plugin.h"
#include "plugins/memory/state.h"
#include "test/vector_check/memory_row.h"
#include "test/vector_check/preset_plugin.h"
#include "test/vector_check/report.h"
#include "test/vector_check/type_names.h"

namespace qrm::vectors {
namespace {

/// The plugin in the state that a row describes.
struct MemoryCase {
  Machine machine;
  memory::MemoryPluginConfig config{.by_static_policy = true};
  sdk::Grants grants;
  std::string saved;
  TypeNames names;
};

StatusOr<std::unique_ptr<PresetPlugin>> Start(const MemoryCase& test) {
  QRM_ASSIGN_OR_RETURN(auto plugin, memory::MakeMemoryPlugin(test.config, test.machine));
  return PresetPlugin::Start(memory::kResource, std::move(plugin), test.grants, test.saved);
}

ContainerRequest Request(const std::string& pod, const std::string& name,
                         const MemoryContainer& container, const TypeNames& names) {
  ContainerRequest request = GuaranteedRequest(memory::kResource, pod, name);
  request.type = container.type;
  request.index = static_cast<uint64_t>(container.index);
  for (const auto& [type, bytes] : container.bytes) {
    request.requests.Edit()[names.ToPlugin(type)] = static_cast<double>(bytes);
  }
  return request;
}

/// Grants for the row's allocations; the row's own pod keeps its memory.
void Give(const Json& row, const MemoryAssignments& assignments, MemoryCase& test) {
  memory::Bindings inits;
  for (const auto& [pod, containers] : assignments) {
    const bool own = row.contains("pod") && row.at("pod").at("uid") == pod;
    for (const auto& [name, blocks] : containers) {
      MemoryContainer container = own ? ContainerOf(row, name) : MemoryContainer();
      container.bytes.clear();
      memory::Binding binding{.type = container.type};
      for (const MemoryBlock& block : blocks) {
        container.bytes[block.type] = block.bytes;
        binding.blocks.push_back(block);
        binding.blocks.back().type = test.names.ToPlugin(block.type);
      }
      const ContainerRequest request = Request(pod, name, container, test.names);
      test.grants[request.key] = {.request = request,
                                  .allocation = sdk::PinMemory(blocks.front().nodes, 0)};
      inits.emplace(request.key, std::move(binding));
    }
  }
  test.saved = memory::SaveInits(inits);
}

/// All types and nodes that the row mentions.
void AddTypes(const Json& row, const KubeletMemory& state, TypeNames& names) {
  constexpr uint64_t kDefaultSize = uint64_t{2} << 20;
  std::map<std::string, uint64_t> divisors;
  for (const auto& [id, node] : state.nodes) {
    for (const auto& [type, amounts] : node.types) {
      uint64_t& divisor = divisors[type];
      divisor = std::gcd(divisor, amounts.allocatable + amounts.system_reserved);
    }
  }
  for (const auto& [type, divisor] : divisors) {
    names.Add(type, divisor == 0 ? kDefaultSize : divisor);
  }
  for (const auto& [pod, containers] : state.assignments) {
    for (const auto& [name, blocks] : containers) {
      for (const MemoryBlock& block : blocks) {
        names.Add(block.type, kDefaultSize);
      }
    }
  }
  for (const char* list : {"init_containers", "containers"}) {
    for (const Json& container : row.value("pod", Json::object()).value(list, Json::array())) {
      for (const auto& [type, bytes] : container.at("requests").items()) {
        names.Add(type, kDefaultSize);
      }
    }
  }
}

/// A machine on which exactly what the row's nodes have is allocatable.
Machine MachineOf(const KubeletMemory& state, MemoryCase& test) {
  MachineParts parts;
  for (const auto& [id, node] : state.nodes) {
    NumaNode made{.id = id};
    for (const auto& [type, amounts] : node.types) {
      const uint64_t total = amounts.allocatable + amounts.system_reserved;
      made.memory_bytes += total;
      if (type != kOrdinaryMemory) {
        made.hugepages[test.names.SizeOf(type)] = total / test.names.SizeOf(type);
      }
      test.config.reserved_bytes[id][test.names.ToPlugin(type)] = amounts.system_reserved;
    }
    parts.nodes.push_back(std::move(made));
  }
  return Machine(std::move(parts));
}

/// Nodes that only assignments mention have room for them and for more.
void AddNodes(KubeletMemory& state) {
  constexpr uint64_t kPlenty = uint64_t{1} << 50;
  for (const auto& [pod, containers] : state.assignments) {
    for (const auto& [name, blocks] : containers) {
      for (const MemoryBlock& block : blocks) {
        for (const int id : block.nodes) {
          state.nodes[id].types.try_emplace(block.type,
                                            MemoryAmounts{.allocatable = kPlenty, .free = kPlenty});
        }
      }
    }
  }
}

MemoryCase CaseOf(const Json& row) {
  MemoryCase test;
  KubeletMemory state = StateOf(row);
  AddNodes(state);
  AddTypes(row, state, test.names);
  test.machine = MachineOf(state, test);
  Give(row, state.assignments, test);
  return test;
}

/// What the plugin exports, with the allocations by its grants.
KubeletMemory HeldBy(PresetPlugin& plugin, const TypeNames& names) {
  KubeletMemory state;
  const Json exported = Json::parse(plugin.driver().ExportState().value());
  for (const auto& [type, nodes] : exported.at("machineState").items()) {
    for (const auto& [id, amounts] : nodes.items()) {
      const auto read = [&amounts = amounts](const char* name) -> uint64_t {
        return std::stoull(amounts.at(name).get<std::string>());
      };
      NodeMemory& node = state.nodes[std::stoi(id)];
      node.cells = NumaMask{std::stoi(id)};
      node.types[names.ToRow(type)] = {.total = read("total"),
                                       .system_reserved = read("systemReserved"),
                                       .allocatable = read("allocatable"),
                                       .reserved = read("Allocated"),
                                       .free = read("free")};
    }
  }
  const memory::SavedInits inits = memory::LoadInits(plugin.saved()).value();
  for (const auto& [key, grant] : plugin.driver().grants()) {
    if (grant.allocation->oci_property != kCpusetMems) {
      continue;
    }
    const NumaMask nodes = NumaMask::Parse(grant.allocation->value).value();
    const auto init = inits.find(key);
    const MemoryBytes bytes =
        init == inits.end() ? memory::BytesOf(grant.request).value() : init->second;
    for (const auto& [type, amount] : bytes) {
      state.assignments[key.pod_uid][key.container].push_back(
          {.nodes = nodes, .type = names.ToRow(type), .bytes = amount});
      for (const int id : nodes) {
        ++state.nodes[id].assignments;
        state.nodes[id].cells = nodes;
      }
    }
  }
  return state;
}

/// The row's totals: the machine that was made for a row has what makes the same allocatable.
void TakeTotals(const KubeletMemory& from, KubeletMemory& state) {
  for (auto& [id, node] : state.nodes) {
    const auto other = from.nodes.find(id);
    if (other == from.nodes.end()) {
      continue;
    }
    std::erase_if(node.types,
                  [&](const auto& entry) { return !other->second.types.contains(entry.first); });
    for (auto& [type, amounts] : node.types) {
      amounts.total = other->second.types.at(type).total;
    }
  }
}

Difference CheckAllocate(const Json& row, const MemoryCase& test, PresetPlugin& plugin) {
  std::string error;
  for (const Json& entry : row.at("allocate_order")) {
    const std::string name = entry;
    Json guaranteed = row;
    guaranteed["qos_guaranteed"] = true;
    ContainerRequest request =
        Request(row.at("pod").at("uid"), name, ContainerOf(guaranteed, name), test.names);
    request.native_qos_class = row.value("qos_guaranteed", true) ? "Guaranteed" : "Burstable";
    request.hint = HintOf(row);
    const auto allocation = plugin.driver().Allocate(request);
    if (!allocation.ok()) {
      error = MessageOf(allocation.status());
      break;
    }
  }
  const Json& expected = row.at("expected");
  const bool expects_error = expected.contains("error") && !expected.at("error").is_null();
  if (expects_error != !error.empty()) {
    return fmt::format("got error \"{}\", expected {}", error, expects_error ? "one" : "none");
  }
  KubeletMemory got = HeldBy(plugin, test.names);
  TakeTotals(StateOf(row), got);
  return CompareState(got, expected);
}

Difference CheckRemove(const Json& row, const MemoryCase& test, PresetPlugin& plugin) {
  const Status removed = plugin.driver().ReleaseContainer(
      {row.at("pod_uid").get<std::string>(), row.at("container").get<std::string>()});
  if (!removed.ok()) {
    return MessageOf(removed);
  }
  KubeletMemory got = HeldBy(plugin, test.names);
  TakeTotals(StateOf(row), got);
  return CompareState(got, row.at("expected"));
}

Difference CheckHints(const Json& row, const MemoryCase& test, PresetPlugin& plugin) {
  const std::string name = row.at("pod").at("containers")[0].at("name");
  ContainerRequest request =
      Request(row.at("pod").at("uid"), name, ContainerOf(row, name), test.names);
  request.native_qos_class = row.value("qos_guaranteed", true) ? "Guaranteed" : "Burstable";
  const StatusOr<HintList> hints = plugin.driver().Hints(request);
  if (!hints.ok() && hints.status().code() != StatusCode::kResourceExhausted) {
    return MessageOf(hints.status());
  }
  // Where kubelet offers no hint, the plugin says in a sentence that there is no room.
  return CompareHints(row, hints.ok() ? HintsText(*hints) : "");
}

PluginOutcome CheckPolicy(const Json& row) {
  const MemoryCase test = CaseOf(row);
  const auto plugin = Start(test);
  if (!plugin.ok()) {
    return {MessageOf(plugin.status())};
  }
  const KubeletMemory stated = StateOf(row);
  KubeletMemory got = HeldBy(**plugin, test.names);
  TakeTotals(stated, got);
  if (!stated.nodes.empty() && !SameMemory(got.nodes, stated.nodes)) {
    // The row's amounts contradict its allocations.
    return {.difference = CheckPolicyByFunction(row), .through_plugin = false};
  }
  const std::string op = row.at("op");
  if (op == "allocate") {
    return {CheckAllocate(row, test, **plugin)};
  }
  if (op == "remove") {
    return {CheckRemove(row, test, **plugin)};
  }
  return {op == "hints" ? CheckHints(row, test, **plugin) : "unknown op " + op};
}

/// Kubelet keeps the amounts beside the assignments and does not start when they contradict each
/// other. The plugin derives them from the assignments, so a contradiction is a difference between
/// the two.
PluginOutcome CheckStart(const Json& row) {
  const MemoryMachine on(row);
  MemoryCase test{.machine = on.machine};
  test.config.reserved_bytes = on.reserved;
  const KubeletMemory stated = StateOf(row);
  Give(row, stated.assignments, test);
  const auto plugin = Start(test);
  bool contradicts = !plugin.ok();
  KubeletMemory got;
  if (plugin.ok()) {
    const bool fresh = stated.nodes.empty() && stated.assignments.empty();
    got = HeldBy(**plugin, test.names);
    const Json assignments = row.value("assignments", Json::object());
    const bool same = CompareState(got, {{"assignments", assignments}}).empty() &&
                      SameMemory(got.nodes, stated.nodes);
    contradicts = !fresh && !same;
  }
  if (contradicts == row.at("expected_error").is_null()) {
    return {contradicts ? "contradicts itself, expected a start"
                        : "starts, expected a contradiction"};
  }
  return {contradicts ? ""
                      : CompareState(got, {{"machine_state", row.at("expected_machine_state")}})};
}

/// A container is on each group, and another comes with the row's nodes as its hint.
PluginOutcome CheckGroupRule(const Json& row) {
  constexpr uint64_t kEnough = 1 << 20;
  KubeletMemory state;
  MemoryTable wanted;
  for (const auto& [id, cells] : row.at("cells").items()) {
    const int node = std::stoi(id);
    state.nodes[node].types[kOrdinaryMemory] = {.allocatable = kEnough, .free = kEnough};
    wanted[node] = {.assignments = row.at("assignments").at(id), .cells = MaskOf(cells)};
    const NumaMask group = MaskOf(cells);
    for (int i = 0; group.First() == node && i < wanted[node].assignments; ++i) {
      state.assignments[fmt::format("pod-{}-{}", node, i)]["container"] = {
          {.nodes = group, .type = kOrdinaryMemory, .bytes = 1}};
    }
  }
  MemoryCase test;
  test.machine = MachineOf(state, test);
  Give(row, state.assignments, test);
  const auto plugin = Start(test);
  if (!plugin.ok()) {
    return {MessageOf(plugin.status())};
  }
  const MemoryTable got = HeldBy(**plugin, test.names).nodes;
  const bool same = std::all_of(wanted.begin(), wanted.end(), [&got](const auto& entry) {
    const NodeMemory& node = got.at(entry.first);
    return node.assignments == entry.second.assignments &&
           (node.assignments == 0 || node.cells == entry.second.cells);
  });
  if (!same) {
    return {.difference = CheckGroupRuleByFunction(row), .through_plugin = false};
  }
  ContainerRequest request =
      Request("newcomer", "container", {.bytes = {{kOrdinaryMemory, 1}}}, test.names);
  request.hint = TopologyHint{.nodes = MaskOf(row.at("affinity")), .preferred = true};
  return {Compare((*plugin)->driver().Allocate(request).ok() ? "keeps" : "violates",
                  row.at("violates").get<bool>() ? "violates" : "keeps")};
}

/// The manager asks for this sum for a whole pod.
PluginOutcome CheckPodRequest(const Json& row) {
  std::vector<ContainerAmounts> containers;
  const auto add = [&containers](ContainerType type, const Json& container) {
    containers.push_back(
        {.type = type, .amounts = container.at("requests").get<std::map<std::string, double>>()});
  };
  for (const Json& init : row.at("pod").at("init_containers")) {
    add(init.value("restartable", false) ? ContainerType::kSidecar : ContainerType::kInit, init);
  }
  for (const Json& app : row.at("pod").at("containers")) {
    add(ContainerType::kMain, app);
  }
  const Json wanted = row.at("expected").get<std::map<std::string, double>>();
  return {.difference = Compare(Json(PodRequest(containers)).dump(), wanted.dump()),
          .through_plugin = false};
}

}  // namespace

void CheckMemoryState(const Json& file, Report& report) {
  report.PluginSection(file, "start_state", CheckStart);
  report.PluginSection(file, "pod_requested_resources", CheckPodRequest);
}

void CheckMemoryPlugin(const Json& file, Report& report) {
  report.PluginSection(file, "static_policy", CheckPolicy);
  report.PluginSection(file, "affinity_violation", CheckGroupRule);
  CheckMemoryState(file, report);
}

}  // namespace qrm::vectors
