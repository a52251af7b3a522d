// Compares what containers ask for now with what they have.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "test/model/books.h"
#include "test/model/model_machine.h"
#include "test/model/records.h"

namespace qrm::test {
namespace {

using Kind = PlannedContainer::Kind;
using Told = PodPlan::Told;

/// What a runtime shows of CPUs is a number of shares.
constexpr double kShareCpus = 0.002;

double RecordedCpus(const v1::Container& record) {
  const auto cpus = record.requests().find("cpu");
  return cpus == record.requests().end() ? 0 : cpus->second;
}

bool RunsWithout(const v1::Container& record, std::string_view resource) {
  return std::any_of(record.runs_without().begin(), record.runs_without().end(),
                     [&](const std::string& lacked) { return lacked == resource; });
}

bool HasNic(const v1::Container& record) {
  return std::any_of(
      record.allocations().begin(), record.allocations().end(),
      [](const v1::Allocation& allocation) { return allocation.resource_name() == "NIC"; });
}

/// The CPUs that `record` gives the container for itself.
CpuSet OwnCpus(const v1::Container& record) {
  const v1::Allocation* const cpus = FindProperty(record, std::string(kCpusetCpus));
  return cpus == nullptr || !cpus->exclusive() ? CpuSet() : CpusOf(cpus->value());
}

}  // namespace

Status Books::CheckRequests(const Look& look, std::vector<Waiting>& waiting) {
  QRM_RETURN_IF_ERROR(CheckInits(look));
  if (!look.all_plugins_live) {
    return OkStatus();
  }
  const RecordsByKey records = ByKey(look.records);
  for (const Box& box : look.boxes) {
    if (box.state != Box::State::kRunning || !IsCurrent(box) ||
        pods_.at(box.key.pod_uid).imported) {
      continue;
    }
    if (const auto record = records.find(box.key); record != records.end()) {
      QRM_RETURN_IF_ERROR(CheckRequestsOf(box, *record->second, waiting));
      continue;
    }
    if (const PlannedContainer& plan = *FindPlan(box.key); plan.owns_cpus()) {
      WidenBaseline(box.key);
      PodPlan all = MakeGrowth(pods_.at(box.key.pod_uid).plan, plan, plan.whole_cpus());
      all.containers[0].spec.memory_bytes = plan.spec.memory_bytes;
      waiting.push_back({NameOf(box.key), "it is not on record", std::move(all)});
    }
  }
  return OkStatus();
}

Status Books::CheckRequestsOf(const Box& box, const v1::Container& record,
                              std::vector<Waiting>& waiting) const {
  const PlannedContainer& plan = *FindPlan(box.key);
  const bool waits = !record.pending().empty();
  const double cpus = static_cast<double>(plan.spec.milli_cpus) / 1000;
  if (!waits && std::abs(RecordedCpus(record) - cpus) > kShareCpus) {
    return Broken("{} asks for {} CPUs, and its record says {}", NameOf(box.key), cpus,
                  RecordedCpus(record));
  }
  const bool is_told = pods_.at(box.key.pod_uid).plan.told != Told::kNo;
  const bool lacks_nic = is_told && plan.nic_mbps > 0 && box.nic_address.empty();
  // A container that was recreated while qrmd was not running gets its NIC at its next creation.
  if (lacks_nic && !waits && !HasNic(record) && !RunsWithout(record, "NIC") &&
      !RunsWithout(record, kNicRequest)) {
    return Broken("{} runs without the NIC that it asks for, and is shown as complete",
                  NameOf(box.key));
  }
  if (plan.owns_cpus()) {
    return CheckOwnCount(box, record, waiting);
  }
  return waits && !lacks_nic ? Broken("{} has what it asks for, and waits for more: {}",
                                      NameOf(box.key), record.pending())
                             : OkStatus();
}

Status Books::CheckOwnCount(const Box& box, const v1::Container& record,
                            std::vector<Waiting>& waiting) const {
  const PlannedContainer& plan = *FindPlan(box.key);
  const PodPlan& pod = pods_.at(box.key.pod_uid).plan;
  const CpuSet own = OwnCpus(record);
  const std::set<int> counts = plan.own_counts();
  const bool waits = !record.pending().empty() || RunsWithout(record, "cpu");
  const int lacks = *counts.begin() - own.Count();
  if (waits && lacks > 0 && plan.bound_bytes > 0 && !own.Empty()) {
    const CpuSet node = CpusOfNode(own.First() / kCpusPerNode);  // it stays there
    const CpuSet free = (online_ - ReservedCpus() - owned_on_record_ - pool_on_record_) & node;
    return free.Count() >= lacks
               ? Broken("{} waits for {} CPUs more although {} of its NUMA node are free: {}",
                        NameOf(box.key), lacks, ToString(free), record.pending())
               : OkStatus();
  }
  if (waits && lacks > 0) {
    waiting.push_back({NameOf(box.key), record.pending(), MakeGrowth(pod, plan, lacks)});
    return OkStatus();
  }
  return waits || !counts.contains(own.Count())
             ? Broken("{} must have {} exclusive CPUs, has {}, and {}", NameOf(box.key),
                      fmt::join(counts, " or "), ToString(own),
                      waits ? "waits for more: " + record.pending() : "does not wait for more")
             : OkStatus();
}

// As many CPUs as its containers may use by their limits, while there are any.
Status Books::CheckPool(const Look& look) const {
  const CpuSet& pool = pool_on_record_;
  if (pool.Empty()) {
    return OkStatus();
  }
  int64_t least = 0;
  for (const Box& box : look.boxes) {
    if (box.state == Box::State::kRunning && IsCurrent(box) &&
        pods_.at(box.key.pod_uid).plan.is_pooled() && placed_.contains(box.key)) {
      least += FindPlan(box.key)->most_milli_cpus();
    }
  }
  int64_t most = 0;
  for (const v1::Pod& pod : look.records.pods()) {
    for (const v1::Container& container : pod.containers()) {
      const PlannedContainer* const plan = FindPlan({pod.uid(), container.name()});
      if (pod.role() == kPoolRole) {
        most += plan == nullptr ? int64_t{kMostInPool} * 1000 : plan->most_milli_cpus();
      }
    }
  }
  const CpuSet idle = online_ - ReservedCpus() - owned_on_record_ - pool;
  if (pool.Count() < PoolSizeFor(least) && !idle.Empty()) {
    return Broken(
        "the pool has CPUs {} of the {} that its containers' limits ask for, and {} are "
        "in no pool",
        ToString(pool), PoolSizeFor(least), ToString(idle));
  }
  return pool.Count() > PoolSizeFor(most)
             ? Broken("the pool has CPUs {}, and its containers' limits ask for {}", ToString(pool),
                      PoolSizeFor(most))
             : OkStatus();
}

Status Books::CheckInits(const Look& look) const {
  const RecordsByKey records = ByKey(look.records);
  for (const Box& box : look.boxes) {
    const PlannedContainer* const plan = FindPlan(box.key);
    if (plan == nullptr || !IsCurrent(box) || !IsPastInit(box) || !records.contains(box.key)) {
      continue;
    }
    const bool all_run = std::all_of(look.boxes.begin(), look.boxes.end(), [&](const Box& other) {
      return other.key.pod_uid != box.key.pod_uid || other.key.container == box.key.container ||
             !IsCurrent(other) || other.state == Box::State::kRunning;
    });
    if (all_run) {
      return Broken("init container {} has ended, and what it had is still on record",
                    NameOf(box.key));
    }
  }
  return OkStatus();
}

}  // namespace qrm::test
