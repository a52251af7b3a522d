// Rows about CPU assignment and the static CPU policy, by the functions themselves.
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "test/vector_check/cpu_row.h"
#include "test/vector_check/report.h"

namespace qrm::vectors {
namespace {

/// The exclusive CPUs of a pod's containers while they are placed one after another.
struct PodCpus {
  CpuSet shared;
  CpuSet of_inits;
  CpuSet of_others;
  std::map<std::string, CpuSet> owned;

  StaticCpuRoom RoomBeside(const CpuSet& reserved) const {
    return {.free = shared - reserved, .reusable = of_inits - of_others};
  }

  void Give(const PodContainer& container, const CpuSet& cpus) {
    shared -= cpus;
    (container.type == ContainerType::kInit ? of_inits : of_others) |= cpus;
    owned[container.name] = cpus;
  }
};

}  // namespace

Difference TakeByFunction(const DeclaredMachine& on, const Json& row, const Json& expected) {
  const CpuSet available = CpusOf(row.at("available"));
  const int count = row.at("num_cpus");
  const CpuOrder order =
      row.value("sorting", "packed") == "spread" ? CpuOrder::kSpread : CpuOrder::kPacked;
  const bool expects_error = row.contains("expected_error") && !row.at("expected_error").is_null();
  const L3Alignment l3 =
      row.value("prefer_align_by_uncorecache", false) ? L3Alignment::kPrefer : L3Alignment::kIgnore;
  const StatusOr<CpuSet> taken =
      row.at("algorithm") == "distributed"
          ? TakeDistributed(on.layout, available, count, row.at("cpu_group_size"), order)
          : TakePacked(on.layout, available, count, order, l3);
  if (expects_error) {
    return taken.ok() ? "took CPUs " + ToString(*taken) + ", expected an error" : "";
  }
  return CompareCpus(taken, expected);
}

Difference TakeNearByFunction(const DeclaredMachine& on, const Json& row) {
  return CompareCpus(TakeCpusLikeKubelet(on.layout, CpusOf(row.at("available")), row.at("num_cpus"),
                                         MaskOf(row.at("affinity_numa")), OptionsOf(row)),
                     row.at("expected_cpus"));
}

Difference AllocatePodByFunction(const DeclaredMachine& on, const Json& row) {
  const StatusOr<CpuSet> reserved =
      ReservedCpus(on.layout, row.at("num_reserved"), CpusOf(row.value("reserved_cpus", Json())),
                   OptionsOf(row));
  if (!reserved.ok()) {
    return MessageOf(reserved.status());
  }
  if (row.contains("reserved_resolved")) {
    if (Difference wrong = CompareCpus(reserved, row.at("reserved_resolved")); !wrong.empty()) {
      return "reservation: " + wrong;
    }
  }
  const StaticCpuPolicy policy(on.layout, OptionsOf(row), *reserved);
  const Json before =
      row.at("assignments").value(row.at("pod").at("uid").get<std::string>(), Json::object());
  PodCpus pod{.shared = CpusOf(row.at("default_cpuset"))};
  std::string error;
  for (const PodContainer& container : ContainersOf(row)) {
    if (!IsGuaranteed(row) || container.cpus < 1 || std::floor(container.cpus) != container.cpus) {
      continue;
    }
    if (before.contains(container.name)) {
      pod.owned[container.name] = CpusOf(before.at(container.name));
      continue;
    }
    const StatusOr<CpuSet> cpus =
        policy.Take(pod.RoomBeside(*reserved), static_cast<int>(container.cpus),
                    MaskOf(row.at("affinity_numa")));
    if (!cpus.ok()) {
      error = MessageOf(cpus.status());
      break;
    }
    pod.Give(container, *cpus);
  }
  return ComparePod(row, on.machine, std::move(pod.owned), error);
}

Difference HintsByFunction(const DeclaredMachine& on, const Json& row) {
  const StaticCpuPolicy policy(on.layout, OptionsOf(row), CpusOf(row.value("reserved", Json())));
  const int count = row.at("request");
  const CpuSet held = CpusOf(row.value("already_allocated", Json()));
  const StaticCpuRoom room = {.free = CpusOf(row.at("default_cpuset")) - policy.reserved()};
  const HintList got = count == 0     ? HintList::NoPreference()
                       : held.Empty() ? policy.Hints(room, count)
                                      : policy.HeldHints(held, count);
  // Kubelet's list without hints may be nil or empty; its tests take both.
  return Compare(HintsText(got), HintsText(HintsOf(row.at("expected_hints"))));
}

void CheckCpu(const Json& file, Report& report) {
  DeclaredMachines machines(file.at("topologies"));
  using Check = Difference (*)(const DeclaredMachine&, const Json&);
  const auto check = [&machines](Check function) {
    return [&machines, function](const Json& row) { return function(machines.Of(row), row); };
  };
  const auto take = [&machines](const char* expected) {
    return [&machines, expected](const Json& row) {
      return TakeByFunction(machines.Of(row), row, row.at(expected));
    };
  };
  report.Section(file, "take_by_topology", take("expected_cpus"));
  report.Section(file, "allocate_with_affinity", check(TakeNearByFunction));
  report.Section(file, "static_policy_allocate", check(AllocatePodByFunction));
  report.Section(file, "topology_hints", check(HintsByFunction));
  if (file.contains("upstream_defects")) {
    report.Section(file.at("upstream_defects"), "rows", take("expected_with_fixes"));
  }
  CheckCpuState(file, report);
}

}  // namespace qrm::vectors
