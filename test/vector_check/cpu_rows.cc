// Rows about CPU assignment and the static CPU policy.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "test/vector_check/report.h"
#include "topology/static_cpu_policy.h"

namespace qrm::vectors {
namespace {

CpuSet CpusOf(const Json& list) {
  return list.is_null() ? CpuSet() : CpuSet::Parse(list.get<std::string>()).value();
}

/// A machine of the file with the sizes that it declares.
struct DeclaredMachine {
  explicit DeclaredMachine(const Json& topology)
      : machine(PartsOf(topology)), layout(machine, SizesOf(topology), OuterOf(topology)) {}

  static MachineParts PartsOf(const Json& topology) {
    MachineParts parts;
    std::map<int, int> package_of_node;
    for (const Json& cpu : topology.at("cpus")) {
      parts.cpus.push_back(
          {.id = cpu[0], .core = cpu[1], .l3 = cpu[4], .node = cpu[3], .package = cpu[2]});
      package_of_node.try_emplace(cpu[3].get<int>(), cpu[2].get<int>());
    }
    for (const auto& [node, package] : package_of_node) {
      parts.nodes.push_back({.id = node, .package = package});
    }
    return parts;
  }

  static CpuSizes SizesOf(const Json& topology) {
    const Json& declared = topology.at("declared");
    const int cpus = declared.at("num_cpus");
    const auto per = [cpus](int count) { return count == 0 ? 0 : cpus / count; };
    return {.per_core = per(declared.at("num_cores")),
            .per_package = per(declared.at("num_sockets")),
            .per_l3 = per(declared.value("num_uncore_cache", 0))};
  }

  static OuterLevel OuterOf(const Json& topology) {
    const Json& declared = topology.at("declared");
    return declared.at("num_sockets").get<int>() >= declared.at("num_numa_nodes").get<int>()
               ? OuterLevel::kNuma
               : OuterLevel::kPackage;
  }

  Machine machine;
  CpuLayout layout;
};

class CpuRows {
 public:
  explicit CpuRows(const Json& topologies) : topologies_(topologies) {}

  Difference Take(const Json& row) { return TakeExpecting(row, row.at("expected_cpus")); }

  Difference TakeFixed(const Json& row) {
    return TakeExpecting(row, row.at("expected_with_fixes"));
  }

  Difference TakeNear(const Json& row) {
    const DeclaredMachine& on = Find(row);
    return CompareCpus(
        TakeCpusLikeKubelet(on.layout, CpusOf(row.at("available")), row.at("num_cpus"),
                            MaskOf(row.at("affinity_numa")), OptionsOf(row)),
        row.at("expected_cpus"));
  }

  Difference AllocatePod(const Json& row);
  Difference Reuse(const Json& row);
  Difference Hints(const Json& row);
  Difference Validate(const Json& row);

 private:
  const DeclaredMachine& Find(const Json& row) {
    const std::string name = row.at("topology");
    std::unique_ptr<DeclaredMachine>& machine = machines_[name];
    if (machine == nullptr) {
      machine = std::make_unique<DeclaredMachine>(topologies_.at(name));
    }
    return *machine;
  }

  Difference TakeExpecting(const Json& row, const Json& expected) {
    const DeclaredMachine& on = Find(row);
    const CpuSet available = CpusOf(row.at("available"));
    const int count = row.at("num_cpus");
    const CpuOrder order =
        row.value("sorting", "packed") == "spread" ? CpuOrder::kSpread : CpuOrder::kPacked;
    const bool expects_error =
        row.contains("expected_error") && !row.at("expected_error").is_null();
    const L3Alignment l3 = row.value("prefer_align_by_uncorecache", false) ? L3Alignment::kPrefer
                                                                           : L3Alignment::kIgnore;
    const StatusOr<CpuSet> taken =
        row.at("algorithm") == "distributed"
            ? TakeDistributed(on.layout, available, count, row.at("cpu_group_size"), order)
            : TakePacked(on.layout, available, count, order, l3);
    if (expects_error) {
      return taken.ok() ? "took CPUs " + ToString(*taken) + ", expected an error" : "";
    }
    return CompareCpus(taken, expected);
  }

  static Difference CompareCpus(const StatusOr<CpuSet>& taken, const Json& expected) {
    return Compare(taken.ok() ? ToString(*taken) : MessageOf(taken.status()),
                   ToString(CpusOf(expected)));
  }

  static bool Option(const Json& row, const char* name) {
    if (!row.contains("policy_options") || !row.at("policy_options").contains(name)) {
      return false;
    }
    const Json& value = row.at("policy_options").at(name);
    return value.is_boolean() ? value.get<bool>() : value == "true";
  }

  static CpuAssignmentOptions OptionsOf(const Json& row) {
    return {.full_physical_cpus_only = Option(row, "full-pcpus-only"),
            .distribute_across_numa = Option(row, "distribute-cpus-across-numa"),
            .distribute_across_cores = Option(row, "distribute-cpus-across-cores"),
            .prefer_align_by_l3 = Option(row, "prefer-align-cpus-by-uncorecache"),
            .align_by_socket = Option(row, "align-by-socket")};
  }

  static StaticCpuPolicy PolicyOf(const DeclaredMachine& on, const Json& row, CpuSet reserved) {
    return {on.layout, StaticCpuConfig{.options = OptionsOf(row),
                                       .strict = Option(row, "strict-cpu-reservation")
                                                     ? StrictReservation::kYes
                                                     : StrictReservation::kNo,
                                       .reserved = std::move(reserved)}};
  }

  static StaticCpuState StateOf(const Json& row) {
    StaticCpuState state{.shared = CpusOf(row.at("default_cpuset"))};
    for (const auto& [pod, containers] : row.at("assignments").items()) {
      for (const auto& [container, cpus] : containers.items()) {
        state.assignments[pod][container] = CpusOf(cpus);
      }
    }
    return state;
  }

  StatusOr<CpuSet> ReservedOf(const DeclaredMachine& on, const Json& row) const {
    return ReservedCpus(on.layout, row.at("num_reserved"),
                        CpusOf(row.value("reserved_cpus", Json())), OptionsOf(row));
  }

  const Json& topologies_;
  std::map<std::string, std::unique_ptr<DeclaredMachine>> machines_;
};

struct PodContainer {
  std::string name;
  ContainerRole role = ContainerRole::kApp;
  int cpus = 0;  ///< exclusive ones; 0 for none
};

int ExclusiveCpus(const Json& container, bool guaranteed) {
  const int milli = container.at("request_millicpu");
  return guaranteed && milli % 1000 == 0 ? milli / 1000 : 0;
}

ContainerRole InitRole(const Json& container) {
  const bool stays =
      container.value("restartable", false) || container.value("restart_policy", "") == "Always";
  return stays ? ContainerRole::kSidecar : ContainerRole::kInit;
}

std::vector<PodContainer> ContainersOf(const Json& row) {
  const bool guaranteed = row.at("qos") == "Guaranteed";
  std::vector<PodContainer> containers;
  for (const Json& init : row.at("pod").value("init", Json::array())) {
    containers.push_back({init.at("name"), InitRole(init), ExclusiveCpus(init, guaranteed)});
  }
  for (const Json& app : row.at("pod").at("containers")) {
    containers.push_back({app.at("name"), ContainerRole::kApp, ExclusiveCpus(app, guaranteed)});
  }
  return containers;
}

std::string Text(const std::map<std::string, CpuSet>& cpus) {
  std::string text;
  for (const auto& [container, set] : cpus) {
    text += fmt::format("{}={};", container, ToString(set));
  }
  return text;
}

/// Compares what the pod's containers were given, and how that ended, with what the row expects.
Difference ComparePod(const Json& row, const Machine& machine, std::map<std::string, CpuSet> given,
                      const std::string& error) {
  const Json& expected = row.at("expected");
  const bool expects_error = expected.contains("error") && !expected.at("error").is_null();
  if (expects_error != !error.empty()) {
    return fmt::format("got error \"{}\", expected {}", error, expects_error ? "one" : "none");
  }
  if (expected.contains("cpus_first_container")) {
    const std::string first = row.at("pod").at("containers")[0].at("name");
    if (Difference wrong =
            Compare(ToString(given[first]), ToString(CpusOf(expected.at("cpus_first_container"))));
        !wrong.empty()) {
      return wrong;
    }
  }
  if (!expected.value("exclusive_allocation", true) && !given.empty()) {
    return "expected no exclusive CPUs, got " + Text(given);
  }
  if (expected.contains("uncore_cache_ids")) {
    std::set<int> l3s;
    for (const auto& [container, cpus] : given) {
      for (const int cpu : cpus) {
        l3s.insert(machine.FindCpu(cpu)->l3);
      }
    }
    if (l3s != expected.at("uncore_cache_ids").get<std::set<int>>()) {
      return fmt::format("CPUs {} are not in L3s {}", Text(given),
                         expected.at("uncore_cache_ids").dump());
    }
  }
  if (expected.contains("all_containers_model")) {
    std::map<std::string, CpuSet> wanted;
    for (const auto& [container, cpus] : expected.at("all_containers_model").items()) {
      wanted[container] = CpusOf(cpus);
    }
    return Compare(Text(given), Text(wanted));
  }
  return "";
}

Difference CpuRows::AllocatePod(const Json& row) {
  const DeclaredMachine& on = Find(row);
  const StatusOr<CpuSet> reserved = ReservedOf(on, row);
  if (!reserved.ok()) {
    return MessageOf(reserved.status());
  }
  if (row.contains("reserved_resolved")) {
    if (Difference wrong = CompareCpus(reserved, row.at("reserved_resolved")); !wrong.empty()) {
      return "reservation: " + wrong;
    }
  }
  const StaticCpuPolicy policy = PolicyOf(on, row, *reserved);
  const std::string pod = row.at("pod").at("uid");
  const std::vector<PodContainer> containers = ContainersOf(row);
  StaticCpuState state = StateOf(row);
  std::map<std::string, CpuSet> given;
  std::string error;
  for (const PodContainer& container : containers) {
    const StatusOr<StaticCpuState> next =
        policy.Allocate(state, {.pod = pod,
                                .container = container.name,
                                .role = container.role,
                                .count = container.cpus,
                                .affinity = MaskOf(row.at("affinity_numa"))});
    if (!next.ok()) {
      error = MessageOf(next.status());
      break;
    }
    state = *next;
    if (container.cpus > 0) {
      given[container.name] = state.assignments[pod][container.name];
    }
  }
  return ComparePod(row, on.machine, given, error);
}

Difference CpuRows::Reuse(const Json& row) {
  const DeclaredMachine& on = Find(row);
  const StaticCpuPolicy policy = PolicyOf(on, row, CpusOf(row.value("reserved", Json())));
  const std::string pod = row.value("pod", "pod");
  StaticCpuState state{.shared = CpusOf(row.at("default_before"))};
  for (const Json& step : row.at("steps")) {
    const std::string op = step.at("op");
    CpuSet got = state.shared;
    if (op == "allocate") {
      const std::string container = step.at("container");
      const std::string type = step.at("type");
      const ContainerRole role = type == "init"  ? ContainerRole::kInit
                                 : type == "app" ? ContainerRole::kApp
                                                 : ContainerRole::kSidecar;
      const StatusOr<StaticCpuState> next = policy.Allocate(
          state, {.pod = pod, .container = container, .role = role, .count = step.at("cpus")});
      if (!next.ok()) {
        return MessageOf(next.status());
      }
      state = *next;
      got = state.assignments[pod][container];
    } else if (op == "remove") {
      state = policy.Remove(state, pod, step.at("container"));
    }
    if (step.contains("expect")) {
      if (Difference wrong = Compare(ToString(got), ToString(CpusOf(step.at("expect"))));
          !wrong.empty()) {
        return op + ": " + wrong;
      }
    }
  }
  return "";
}

/// Hints in an order that does not depend on who made them.
std::string Text(const HintList& hints) {
  if (hints.IsNoPreference()) {
    return "no preference";
  }
  std::set<std::string> sorted;
  for (const TopologyHint& hint : hints.hints()) {
    sorted.insert(ToString(hint));
  }
  return fmt::format("{}", fmt::join(sorted, "; "));
}

Difference CpuRows::Hints(const Json& row) {
  const DeclaredMachine& on = Find(row);
  const StaticCpuPolicy policy = PolicyOf(on, row, CpusOf(row.value("reserved", Json())));
  StaticCpuState state{.shared = CpusOf(row.at("default_cpuset"))};
  if (const CpuSet held = CpusOf(row.value("already_allocated", Json())); !held.Empty()) {
    state.assignments["pod"]["container"] = held;
  }
  const HintList got =
      policy.Hints(state, {.pod = "pod", .container = "container", .count = row.at("request")});
  const Json& expected = row.at("expected_hints");
  if (expected.is_null() && got.hints().empty()) {
    return "";  // kubelet's list without hints may be nil or empty; its tests take both
  }
  std::vector<TopologyHint> hints;
  for (const Json& hint : expected) {
    hints.push_back({.nodes = MaskOf(hint.at("numa")), .preferred = hint.at("preferred")});
  }
  return Compare(Text(got), Text(HintList(std::move(hints))));
}

Difference CpuRows::Validate(const Json& row) {
  const DeclaredMachine& on = Find(row);
  const StatusOr<CpuSet> reserved = ReservedOf(on, row);
  const StatusOr<StaticCpuState> started =
      reserved.ok() ? PolicyOf(on, row, *reserved).Start(StateOf(row)) : reserved.status();
  if (row.contains("expected_error") && !row.at("expected_error").is_null()) {
    return started.ok() ? "started, expected an error" : "";
  }
  if (!started.ok()) {
    return MessageOf(started.status());
  }
  return row.contains("expected_default_cpuset")
             ? Compare(ToString(started->shared),
                       ToString(CpusOf(row.at("expected_default_cpuset"))))
             : "";
}

}  // namespace

void CheckCpu(const Json& file, Report& report) {
  CpuRows rows(file.at("topologies"));
  using Check = Difference (CpuRows::*)(const Json&);
  const auto check = [&rows](Check method) {
    return [&rows, method](const Json& row) { return (rows.*method)(row); };
  };
  report.Section(file, "take_by_topology", check(&CpuRows::Take));
  report.Section(file, "allocate_with_affinity", check(&CpuRows::TakeNear));
  report.Section(file, "static_policy_allocate", check(&CpuRows::AllocatePod));
  report.Section(file, "init_container_reuse", check(&CpuRows::Reuse));
  report.Section(file, "topology_hints", check(&CpuRows::Hints));
  report.Section(file, "validate_state", check(&CpuRows::Validate));
  if (file.contains("upstream_defects")) {
    report.Section(file.at("upstream_defects"), "rows", check(&CpuRows::TakeFixed));
  }
}

}  // namespace qrm::vectors
