// Rows about CPUs, through the cpu plugin's service code.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/base/section.h"
#include "plugins/cpu/cpu_plugin.h"
#include "test/vector_check/cpu_row.h"
#include "test/vector_check/preset_plugin.h"
#include "test/vector_check/report.h"

namespace qrm::vectors {
namespace {

sdk::Grant GrantOf(const std::string& pod, const std::string& container, const CpuSet& cpus) {
  sdk::Grant grant{.request = GuaranteedRequest(cpu::kResource, pod, container),
                   .allocation = sdk::PinCpus(cpus)};
  grant.request.requests = {{"cpu", cpus.Count()}};
  grant.allocation.Edit().exclusive = true;
  return grant;
}

/// The plugin's `static` section, with the row's options by kubelet's names.
std::string StaticSection(const Json& row, int reserved_count) {
  std::string text = fmt::format("static: {{reserved-cpu-count: {}", reserved_count);
  const Json options = row.value("policy_options", Json::object());
  for (const auto& [name, value] : options.items()) {
    text += fmt::format(", {}: {}", name, Option(row, name.c_str()));
  }
  return text + "}";
}

/// The CPUs of kubelet's state, and the plugin in the same state.
struct CpuCase {
  std::string config;
  CpuSet shared;
  sdk::Grants grants;

  void Give(const std::string& pod, const std::string& container, const CpuSet& cpus) {
    if (!cpus.Empty()) {
      grants[{pod, container}] = GrantOf(pod, container, cpus);
    }
  }

  void Give(const Json& assignments) {
    for (const auto& [pod, containers] : assignments.items()) {
      for (const auto& [container, cpus] : containers.items()) {
        Give(pod, container, CpusOf(cpus));
      }
    }
  }

  CpuSet Owned() const {
    CpuSet owned;
    for (const auto& [key, grant] : grants) {
      owned |= CpuSet::Parse(grant.allocation->value).value();
    }
    return owned;
  }
};

StatusOr<std::unique_ptr<PresetPlugin>> Start(const CpuCase& test, const Machine& machine) {
  QRM_ASSIGN_OR_RETURN(const config::Section section,
                       config::Section::Parse(test.config, "cpu.yaml"));
  QRM_ASSIGN_OR_RETURN(const cpu::CpuPluginConfig config, cpu::ParseCpuConfig(section));
  QRM_ASSIGN_OR_RETURN(auto plugin, cpu::MakeCpuPlugin(config, machine));
  return PresetPlugin::Start(cpu::kResource, std::move(plugin), test.grants);
}

StatusOr<CpuSet> ReservedBy(PresetPlugin& plugin, const Machine& machine) {
  QRM_ASSIGN_OR_RETURN(const AllocatableByResource offered, plugin.driver().Allocatable());
  return machine.cpu_set() - offered.at("cpu").allocatable_cpus;
}

/// The same with the CPUs that are neither shared nor exclusive in the row, except reserved ones,
/// given to another container: the plugin shares all CPUs that are not exclusive.
StatusOr<std::unique_ptr<PresetPlugin>> StartBesideOthers(CpuCase test, const Machine& machine) {
  QRM_ASSIGN_OR_RETURN(const auto probe, Start({.config = test.config}, machine));
  QRM_ASSIGN_OR_RETURN(const CpuSet reserved, ReservedBy(*probe, machine));
  test.Give("elsewhere", "others", machine.cpu_set() - test.shared - test.Owned() - reserved);
  return Start(test, machine);
}

StatusOr<CpuSet> SharedBy(PresetPlugin& plugin) {
  QRM_ASSIGN_OR_RETURN(const std::vector<sdk::Pool> pools, plugin.driver().Pools());
  const auto shared = std::find_if(pools.begin(), pools.end(), [](const sdk::Pool& pool) {
    return pool.name == cpu::kDefaultPool;
  });
  return shared->cpus;
}

/// Some rows declare sizes that no machine has. The plugin computes them from the machine.
bool IsReal(const DeclaredMachine& on, const CpuAssignmentOptions& options) {
  const CpuLayout real = CpuLayout::LikeKubelet(on.machine);
  return real.outer() == on.layout.outer() && real.sizes().per_core == on.layout.sizes().per_core &&
         real.sizes().per_package == on.layout.sizes().per_package &&
         (!options.prefer_align_by_l3 || real.sizes().per_l3 == on.layout.sizes().per_l3);
}

class CpuPluginRows {
 public:
  explicit CpuPluginRows(const Json& topologies) : machines_(topologies) {}

  PluginOutcome Take(const Json& row) { return TakeExpecting(row, row.at("expected_cpus")); }

  PluginOutcome TakeFixed(const Json& row) {
    return TakeExpecting(row, row.at("expected_with_fixes"));
  }

  PluginOutcome TakeNear(const Json& row);
  PluginOutcome AllocatePod(const Json& row);
  PluginOutcome Reuse(const Json& row);
  PluginOutcome Hints(const Json& row);
  PluginOutcome Validate(const Json& row);

 private:
  PluginOutcome TakeExpecting(const Json& row, const Json& expected);

  DeclaredMachines machines_;
};

/// Kubelet does not run its static policy without a reservation, so some CPUs always stay shared;
/// rows of its inner functions leave nothing, which the plugin rejects.
bool LeavesNothing(double asked, const CpuSet& shared) {
  return asked >= shared.Count();
}

ContainerRequest Request(const std::string& container, double cpus, const NumaMask& affinity) {
  ContainerRequest request = GuaranteedRequest(cpu::kResource, "pod", container);
  request.requests = {{"cpu", cpus}};
  request.hint = TopologyHint{.nodes = affinity, .preferred = true};
  return request;
}

/// The container's exclusive CPUs; none for a container that shares.
StatusOr<CpuSet> Own(PresetPlugin& plugin, const ContainerRequest& request) {
  QRM_ASSIGN_OR_RETURN(const ResourceAllocation given, plugin.driver().Allocate(request));
  return given.exclusive ? CpuSet::Parse(given.value) : CpuSet();
}

/// The options that lead the plugin to the algorithm that a row names; absent when none do.
std::optional<CpuAssignmentOptions> OptionsFor(const Json& row, const CpuLayout& layout) {
  const bool distributed = row.at("algorithm") == "distributed";
  const bool grouped = distributed && row.at("cpu_group_size").get<int>() > 1;
  const CpuAssignmentOptions options = {
      .full_physical_cpus_only = grouped,
      .distribute_across_numa = distributed,
      .distribute_across_cores = row.value("sorting", "packed") == "spread",
      .prefer_align_by_l3 = row.value("prefer_align_by_uncorecache", false)};
  const int count = row.at("num_cpus");
  const int threads = ThreadsPerCore(layout);
  const bool whole = !grouped || (row.at("cpu_group_size") == threads && count % threads == 0);
  return whole && ValidateCpuAssignmentOptions(options).ok() ? std::optional(options)
                                                             : std::nullopt;
}

PluginOutcome CpuPluginRows::TakeExpecting(const Json& row, const Json& expected) {
  const DeclaredMachine& on = machines_.Of(row);
  const CpuSet available = CpusOf(row.at("available")) & on.machine.cpu_set();
  const int count = row.at("num_cpus");
  const bool expects_error = row.contains("expected_error") && !row.at("expected_error").is_null();
  const auto options = OptionsFor(row, on.layout);
  const bool possible = options && count > 0 && IsReal(on, *options) &&
                        (expects_error || !LeavesNothing(count, available));
  if (!possible) {
    return {.difference = TakeByFunction(on, row, expected), .through_plugin = false};
  }
  Json policy_options = {{"full-pcpus-only", options->full_physical_cpus_only},
                         {"distribute-cpus-across-numa", options->distribute_across_numa},
                         {"distribute-cpus-across-cores", options->distribute_across_cores},
                         {"prefer-align-cpus-by-uncorecache", options->prefer_align_by_l3}};
  const Json like_policy = {{"policy_options", std::move(policy_options)}};
  const auto plugin =
      StartBesideOthers({.config = StaticSection(like_policy, 0), .shared = available}, on.machine);
  if (!plugin.ok()) {
    return {MessageOf(plugin.status())};
  }
  const StatusOr<CpuSet> taken = Own(**plugin, Request("container", count, {}));
  if (expects_error) {
    return {taken.ok() ? "took CPUs " + ToString(*taken) + ", expected an error" : ""};
  }
  return {CompareCpus(taken, expected)};
}

PluginOutcome CpuPluginRows::TakeNear(const Json& row) {
  const DeclaredMachine& on = machines_.Of(row);
  const CpuSet available = CpusOf(row.at("available"));
  const int count = row.at("num_cpus");
  if (!IsReal(on, OptionsOf(row)) || LeavesNothing(count, available)) {
    return {.difference = TakeNearByFunction(on, row), .through_plugin = false};
  }
  const auto plugin =
      StartBesideOthers({.config = StaticSection(row, 0), .shared = available}, on.machine);
  if (!plugin.ok()) {
    return {MessageOf(plugin.status())};
  }
  return {CompareCpus(Own(**plugin, Request("container", count, MaskOf(row.at("affinity_numa")))),
                      row.at("expected_cpus"))};
}

PluginOutcome CpuPluginRows::AllocatePod(const Json& row) {
  const DeclaredMachine& on = machines_.Of(row);
  const bool keeps_reserved =
      row.at("num_reserved").get<int>() > 0 && !Option(row, "strict-cpu-reservation");
  double asked = 0;
  for (const PodContainer& container : ContainersOf(row)) {
    asked += container.cpus;
  }
  const Json& expected = row.at("expected");
  const bool expects_error = expected.contains("error") && !expected.at("error").is_null();
  CpuCase test{.shared = CpusOf(row.at("default_cpuset"))};
  const bool empties = !keeps_reserved && !expects_error && LeavesNothing(asked, test.shared);
  if (!IsReal(on, OptionsOf(row)) || empties) {
    return {.difference = AllocatePodByFunction(on, row), .through_plugin = false};
  }
  const CpuSet listed = CpusOf(row.value("reserved_cpus", Json()));
  test.config = fmt::format("{{reserved-cpus: '{}', {}}}", ToString(listed),
                            StaticSection(row, row.at("num_reserved")));
  test.Give(row.at("assignments"));
  const auto plugin = StartBesideOthers(test, on.machine);
  if (!plugin.ok()) {
    return {MessageOf(plugin.status())};
  }
  if (row.contains("reserved_resolved")) {
    if (Difference wrong =
            CompareCpus(ReservedBy(**plugin, on.machine), row.at("reserved_resolved"));
        !wrong.empty()) {
      return {"reservation: " + wrong};
    }
  }
  std::map<std::string, CpuSet> owned;
  std::string error;
  for (const PodContainer& container : ContainersOf(row)) {
    ContainerRequest request =
        Request(container.name, container.cpus, MaskOf(row.at("affinity_numa")));
    request.key.pod_uid = row.at("pod").at("uid").get<std::string>();
    request.type = container.type;
    request.index = static_cast<uint64_t>(container.index);
    request.native_qos_class = IsGuaranteed(row) ? "Guaranteed" : "Burstable";
    const StatusOr<CpuSet> cpus = Own(**plugin, request);
    if (!cpus.ok()) {
      error = MessageOf(cpus.status());
      break;
    }
    if (!cpus->Empty()) {
      owned[container.name] = *cpus;
    }
  }
  return {ComparePod(row, on.machine, std::move(owned), error)};
}

PluginOutcome CpuPluginRows::Reuse(const Json& row) {
  const DeclaredMachine& on = machines_.Of(row);
  CpuCase test{.shared = CpusOf(row.at("default_before"))};
  test.config = fmt::format("{{reserved-cpus: '{}', {}}}",
                            ToString(CpusOf(row.value("reserved", Json()))), StaticSection(row, 0));
  const auto plugin = StartBesideOthers(test, on.machine);
  if (!plugin.ok()) {
    return {MessageOf(plugin.status())};
  }
  uint64_t index = 0;
  for (const Json& step : row.at("steps")) {
    const std::string op = step.at("op");
    StatusOr<CpuSet> got = CpuSet();
    if (op == "allocate") {
      ContainerRequest request = Request(step.at("container"), step.at("cpus"), {});
      request.type = TypeOfStep(step);
      request.index = index++;
      got = Own(**plugin, request);
    } else if (op == "remove") {
      const Status removed =
          (*plugin)->driver().ReleaseContainer({"pod", step.at("container").get<std::string>()});
      got = removed.ok() ? SharedBy(**plugin) : removed;
    } else {
      got = SharedBy(**plugin);
    }
    if (!got.ok()) {
      return {MessageOf(got.status())};
    }
    if (step.contains("expect")) {
      if (Difference wrong = CompareCpus(got, step.at("expect")); !wrong.empty()) {
        return {fmt::format("{}: {}", op, wrong)};
      }
    }
  }
  return {};
}

PluginOutcome CpuPluginRows::Hints(const Json& row) {
  const DeclaredMachine& on = machines_.Of(row);
  const int count = row.at("request");
  const CpuSet reserved = CpusOf(row.value("reserved", Json()));
  const CpuSet held = CpusOf(row.value("already_allocated", Json()));
  CpuCase test{.shared = CpusOf(row.at("default_cpuset"))};
  const bool empties = held.Empty() && reserved.Empty() && count == test.shared.Count();
  if (!IsReal(on, OptionsOf(row)) || empties) {
    return {.difference = HintsByFunction(on, row), .through_plugin = false};
  }
  test.config =
      fmt::format("{{reserved-cpus: '{}', {}}}", ToString(reserved), StaticSection(row, 0));
  test.Give("pod", "container", held);
  const auto plugin = StartBesideOthers(test, on.machine);
  if (!plugin.ok()) {
    return {MessageOf(plugin.status())};
  }
  const StatusOr<HintList> hints = (*plugin)->driver().Hints(Request("container", count, {}));
  if (!hints.ok() && hints.status().code() != StatusCode::kResourceExhausted) {
    return {MessageOf(hints.status())};
  }
  // Where kubelet offers no hint, the plugin says in a sentence that there is no room.
  return {
      Compare(hints.ok() ? HintsText(*hints) : "", HintsText(HintsOf(row.at("expected_hints"))))};
}

/// Kubelet keeps the shared CPUs beside the assignments and does not start when they contradict
/// each other. The plugin derives them from the assignments, so a contradiction is a difference
/// between the two.
PluginOutcome CpuPluginRows::Validate(const Json& row) {
  const DeclaredMachine& on = machines_.Of(row);
  CpuCase test{.config = StaticSection(row, row.at("num_reserved"))};
  test.Give(row.at("assignments"));
  const auto plugin = Start(test, on.machine);
  if (!plugin.ok()) {
    return {MessageOf(plugin.status())};
  }
  const StatusOr<CpuSet> shared = SharedBy(**plugin);
  const StatusOr<CpuSet> reserved = ReservedBy(**plugin, on.machine);
  const CpuSet stated = CpusOf(row.at("default_cpuset"));
  const bool fresh = stated.Empty() && test.grants.empty();
  const bool repaired = std::any_of(test.grants.begin(), test.grants.end(), [&](const auto& given) {
    return (*plugin)->driver().grants().at(given.first).allocation->value !=
           given.second.allocation->value;
  });
  const bool contradicts =
      !fresh && (*shared != stated || repaired || test.Owned().Intersects(*reserved));
  const bool expects_error = row.contains("expected_error") && !row.at("expected_error").is_null();
  if (contradicts != expects_error) {
    return {fmt::format("shares CPUs {}, expected {}", ToString(*shared),
                        expects_error ? "a contradiction" : "none")};
  }
  const bool compares = !expects_error && row.contains("expected_default_cpuset");
  return {compares ? CompareCpus(shared, row.at("expected_default_cpuset")) : ""};
}

}  // namespace

void CheckCpuState(const Json& file, Report& report) {
  CpuPluginRows rows(file.at("topologies"));
  report.PluginSection(file, "init_container_reuse",
                       [&rows](const Json& row) { return rows.Reuse(row); });
  report.PluginSection(file, "validate_state",
                       [&rows](const Json& row) { return rows.Validate(row); });
}

void CheckCpuPlugin(const Json& file, Report& report) {
  CpuPluginRows rows(file.at("topologies"));
  using Check = PluginOutcome (CpuPluginRows::*)(const Json&);
  const auto check = [&rows](Check method) {
    return [&rows, method](const Json& row) { return (rows.*method)(row); };
  };
  report.PluginSection(file, "take_by_topology", check(&CpuPluginRows::Take));
  report.PluginSection(file, "allocate_with_affinity", check(&CpuPluginRows::TakeNear));
  report.PluginSection(file, "static_policy_allocate", check(&CpuPluginRows::AllocatePod));
  report.PluginSection(file, "topology_hints", check(&CpuPluginRows::Hints));
  if (file.contains("upstream_defects")) {
    report.PluginSection(file.at("upstream_defects"), "rows", check(&CpuPluginRows::TakeFixed),
                         "upstream_defects");
  }
  CheckCpuState(file, report);
}

}  // namespace qrm::vectors
