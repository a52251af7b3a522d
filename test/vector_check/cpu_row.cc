// Reads rows about CPUs.
#include "test/vector_check/cpu_row.h"

#include <set>
#include <utility>

#include <fmt/format.h>

namespace qrm::vectors {
namespace {

MachineParts PartsOf(const Json& topology) {
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

CpuSizes SizesOf(const Json& topology) {
  const Json& declared = topology.at("declared");
  const int cpus = declared.at("num_cpus");
  const auto per = [cpus](int count) { return count == 0 ? 0 : cpus / count; };
  return {.per_core = per(declared.at("num_cores")),
          .per_package = per(declared.at("num_sockets")),
          .per_l3 = per(declared.value("num_uncore_cache", 0))};
}

OuterLevel OuterOf(const Json& topology) {
  const Json& declared = topology.at("declared");
  return declared.at("num_sockets").get<int>() >= declared.at("num_numa_nodes").get<int>()
             ? OuterLevel::kNuma
             : OuterLevel::kPackage;
}

ContainerType InitType(const Json& container) {
  const bool stays =
      container.value("restartable", false) || container.value("restart_policy", "") == "Always";
  return stays ? ContainerType::kSidecar : ContainerType::kInit;
}

std::string Text(const std::map<std::string, CpuSet>& cpus) {
  std::string text;
  for (const auto& [container, set] : cpus) {
    text += fmt::format("{}={};", container, ToString(set));
  }
  return text;
}

}  // namespace

CpuSet CpusOf(const Json& list) {
  return list.is_null() ? CpuSet() : CpuSet::Parse(list.get<std::string>()).value();
}

DeclaredMachine::DeclaredMachine(const Json& topology)
    : machine(PartsOf(topology)), layout(machine, SizesOf(topology), OuterOf(topology)) {}

const DeclaredMachine& DeclaredMachines::Of(const Json& row) {
  const std::string name = row.at("topology");
  std::unique_ptr<DeclaredMachine>& machine = machines_[name];
  if (machine == nullptr) {
    machine = std::make_unique<DeclaredMachine>(topologies_.at(name));
  }
  return *machine;
}

bool Option(const Json& row, const char* name) {
  if (!row.contains("policy_options") || !row.at("policy_options").contains(name)) {
    return false;
  }
  const Json& value = row.at("policy_options").at(name);
  return value.is_boolean() ? value.get<bool>() : value == "true";
}

CpuAssignmentOptions OptionsOf(const Json& row) {
  return {.full_physical_cpus_only = Option(row, "full-pcpus-only"),
          .distribute_across_numa = Option(row, "distribute-cpus-across-numa"),
          .distribute_across_cores = Option(row, "distribute-cpus-across-cores"),
          .prefer_align_by_l3 = Option(row, "prefer-align-cpus-by-uncorecache"),
          .align_by_socket = Option(row, "align-by-socket")};
}

/// The manager calls the first app container the main one, and the others sidecars.
std::vector<PodContainer> ContainersOf(const Json& row) {
  const auto cpus = [](const Json& container) {
    return container.at("request_millicpu").get<double>() / 1000;
  };
  std::vector<PodContainer> containers;
  int index = 0;
  for (const Json& init : row.at("pod").value("init", Json::array())) {
    containers.push_back({init.at("name"), InitType(init), index++, cpus(init)});
  }
  index = 0;
  for (const Json& app : row.at("pod").at("containers")) {
    const ContainerType type = index == 0 ? ContainerType::kMain : ContainerType::kSidecar;
    containers.push_back({app.at("name"), type, index++, cpus(app)});
  }
  return containers;
}

bool IsGuaranteed(const Json& row) {
  return row.at("qos") == "Guaranteed";
}

ContainerType TypeOfStep(const Json& step) {
  const std::string type = step.at("type");
  return type == "init"  ? ContainerType::kInit
         : type == "app" ? ContainerType::kMain
                         : ContainerType::kSidecar;
}

Difference CompareCpus(const StatusOr<CpuSet>& taken, const Json& expected) {
  return Compare(taken.ok() ? ToString(*taken) : MessageOf(taken.status()),
                 ToString(CpusOf(expected)));
}

Difference ComparePod(const Json& row, const Machine& machine, std::map<std::string, CpuSet> owned,
                      const std::string& error) {
  const Json& expected = row.at("expected");
  const bool expects_error = expected.contains("error") && !expected.at("error").is_null();
  if (expects_error != !error.empty()) {
    return fmt::format("got error \"{}\", expected {}", error, expects_error ? "one" : "none");
  }
  if (expected.contains("cpus_first_container")) {
    const std::string first = row.at("pod").at("containers")[0].at("name");
    if (Difference wrong =
            Compare(ToString(owned[first]), ToString(CpusOf(expected.at("cpus_first_container"))));
        !wrong.empty()) {
      return wrong;
    }
  }
  if (!expected.value("exclusive_allocation", true) && !owned.empty()) {
    return "expected no exclusive CPUs, got " + Text(owned);
  }
  if (expected.contains("uncore_cache_ids")) {
    std::set<int> l3s;
    for (const auto& [container, cpus] : owned) {
      for (const int cpu : cpus) {
        l3s.insert(machine.FindCpu(cpu)->l3);
      }
    }
    if (l3s != expected.at("uncore_cache_ids").get<std::set<int>>()) {
      return fmt::format("CPUs {} are not in L3s {}", Text(owned),
                         expected.at("uncore_cache_ids").dump());
    }
  }
  if (expected.contains("all_containers_model")) {
    std::map<std::string, CpuSet> wanted;
    for (const auto& [container, cpus] : expected.at("all_containers_model").items()) {
      wanted[container] = CpusOf(cpus);
    }
    return Compare(Text(owned), Text(wanted));
  }
  return "";
}

}  // namespace qrm::vectors
