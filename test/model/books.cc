// Adds up CPUs, memory and bandwidth.
#include "test/model/books.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "test/model/model_machine.h"
#include "test/model/records.h"

namespace qrm::test {
namespace {

constexpr std::chrono::seconds kMayBeRemembered{15};

/// The CPUs and the memory of each node that are free.
struct Free {
  CpuSet cpus;
  std::map<int, int64_t> bytes_by_node;
  std::map<std::string, int> mbps_by_nic;
};

Free Everything(const CpuSet& online) {
  Free free{.cpus = online - ReservedCpus()};
  for (int node = 0; node < kModelNodes; ++node) {
    free.bytes_by_node[node] = kBytesPerNode;
    free.mbps_by_nic[NicAddress(node)] = kNicMbps;
  }
  return free;
}

void Take(const PlannedContainer& plan, const Box& box, Free& free) {
  if (plan.owns_cpus()) {
    free.cpus = free.cpus - CpusOf(box.cpus);
  }
  const NumaMask nodes = NumaMask::Parse(box.mems).value_or(NumaMask());
  if (plan.bound_bytes > 0 && nodes.Count() == 1) {
    free.bytes_by_node[nodes.First()] -= plan.bound_bytes;
  }
  if (!box.nic_address.empty()) {
    free.mbps_by_nic[box.nic_address] -= plan.nic_mbps;
  }
}

/// The container of that key, or null.
template <typename Pods>
auto FindIn(Pods& pods, const ContainerKey& key)
    -> decltype(&pods.begin()->second.plan.containers[0]) {
  const auto pod = pods.find(key.pod_uid);
  if (pod == pods.end()) {
    return nullptr;
  }
  auto& containers = pod->second.plan.containers;
  const auto found = std::find_if(containers.begin(), containers.end(), [&](const auto& container) {
    return container.spec.name == key.container.str();
  });
  return found == containers.end() ? nullptr : &*found;
}

}  // namespace

const PlannedContainer* Books::FindPlan(const ContainerKey& key) const {
  return FindIn(pods_, key);
}

bool Books::IsCurrent(const Box& box) const {
  const auto pod = pods_.find(box.key.pod_uid);
  if (pod == pods_.end() || pod->second.finished) {
    return false;
  }
  const auto latest = pod->second.boxes.find(box.key.container);
  return latest != pod->second.boxes.end() && latest->second == box.id;
}

// In a new sandbox, before those of the old one have ended, whose amounts it has.
bool Books::RunsInTurn(const Box& box, const std::vector<Box>& boxes) const {
  return IsInit(box.key) && std::any_of(boxes.begin(), boxes.end(), [&](const Box& other) {
           return other.key.pod_uid == box.key.pod_uid && Lives(other) && IsCurrent(other) &&
                  !IsInit(other.key);
         });
}

// Without a spec, one that was made again is not known to be an init container.
bool Books::IsPastInit(const Box& box) const {
  if (Lives(box) || !IsInit(box.key)) {
    return false;
  }
  const ModelPod& pod = pods_.at(box.key.pod_uid);
  return pod.boxes.size() == pod.plan.containers.size() && !pod.imported &&
         (pod.plan.told == PodPlan::Told::kFirst || FindPlan(box.key)->attempt == 0);
}

bool Books::IsInit(const ContainerKey& key) const {
  const PlannedContainer* plan = FindPlan(key);
  return plan != nullptr && plan->kind == PlannedContainer::Kind::kInit;
}

std::string Books::NameOf(const ContainerKey& key) const {
  const auto pod = pods_.find(key.pod_uid);
  return fmt::format("{}/{}", pod == pods_.end() ? key.pod_uid.str() : pod->second.plan.name,
                     key.container);
}

Status Books::NoteAnswer(const ModelPod& pod, const PlannedContainer& container, const Box& box,
                         Which which) {
  placed_.insert(box.key);
  const int count = CpusOf(box.told).Count();
  if (!container.owns_cpus()) {
    if (count == 0) {
      return Broken("{}/{} was created without a CPU set", pod.plan.name, container.spec.name);
    }
    return OkStatus();
  }
  if (which == Which::kFirst && !container.own_counts().contains(count)) {
    return Broken("{}/{} was to have {} exclusive CPUs and was created with {}", pod.plan.name,
                  container.spec.name, *container.own_counts().rbegin(), box.told);
  }
  if (which == Which::kFirst) {  // a recreated container that lost its CPUs may share as many
    owners_.insert(box.key);
  }
  return OkStatus();
}

void Books::SetOnline(const CpuSet& cpus, const std::vector<Box>& boxes) {
  online_ = cpus;
  may_lose_ = true;
  for (const Box& box : boxes) {
    const CpuSet left = CpusOf(box.cpus) & cpus;
    PlannedContainer* const plan = FindIn(pods_, box.key);
    if (left == CpusOf(box.cpus)) {
      continue;
    }
    owners_.erase(box.key);
    if (plan != nullptr && plan->owns_cpus()) {  // it gets again what it asks for, and no more
      plan->baselines.insert(std::max(left.Count(), 1));
    }
  }
}

// Before it was placed, with the first number that it asked for or with this one.
void Books::NoteResize(const ContainerKey& key) {
  if (owners_.erase(key) == 0) {
    WidenBaseline(key);
  }
}

void Books::WidenBaseline(const ContainerKey& key) {
  PlannedContainer& plan = *FindIn(pods_, key);
  if (plan.owns_cpus()) {
    plan.baselines.insert(plan.whole_cpus());
  }
}

Status Books::CheckBoxes(const std::vector<Box>& boxes) const {
  QRM_RETURN_IF_ERROR(CheckOwners(boxes));
  return CheckAmounts(boxes);
}

// Containers of a pod may use its init containers' CPUs again. A container that was made while qrmd
// did not run has nothing of its own before its first update, but leaves what new owners get.
Status Books::CheckOwners(const std::vector<Box>& boxes) const {
  std::map<int, ContainerKey> owner_of;
  for (const Box& box : boxes) {
    if (!Lives(box) || !owners_.contains(box.key) || box.told.empty()) {
      continue;
    }
    for (const int cpu : CpusOf(box.cpus)) {
      const auto [owner, fresh] = owner_of.emplace(cpu, box.key);
      const bool lent =
          owner->second.pod_uid == box.key.pod_uid && (IsInit(owner->second) || IsInit(box.key));
      if (!fresh && owner->second != box.key && !lent) {
        return Broken("CPU {} has two owners: {} and {}", cpu, NameOf(owner->second),
                      NameOf(box.key));
      }
    }
  }
  return OkStatus();
}

Status Books::CheckApart(const std::vector<Box>& boxes) const {
  CpuSet owned;
  for (const Box& box : boxes) {
    if (Lives(box) && owners_.contains(box.key)) {
      owned |= CpusOf(box.cpus);
    }
  }
  for (const Box& box : boxes) {
    const PlannedContainer* plan = FindPlan(box.key);
    if (Lives(box) && plan != nullptr && !plan->owns_cpus() && placed_.contains(box.key) &&
        CpusOf(box.cpus).Intersects(owned)) {
      return Broken("{} ({}) shares CPUs {} of which others own {}", NameOf(box.key), box.id,
                    box.cpus, ToString(CpusOf(box.cpus) & owned));
    }
  }
  return OkStatus();
}

Status Books::CheckTold(const v1::ListPodsResponse& records, const std::vector<Box>& boxes) {
  const auto by_key = ByKey(records);
  for (const Box& box : boxes) {
    const auto record = by_key.find(box.key);
    const v1::Allocation* cpus = record == by_key.end() || box.state != Box::State::kRunning
                                     ? nullptr
                                     : FindProperty(*record->second, std::string(kCpusetCpus));
    if (cpus != nullptr && CpusOf(cpus->value()) != CpusOf(box.told)) {
      return Broken("of {} the runtime knows CPUs \"{}\", and its record says \"{}\"", box.id,
                    box.told, cpus->value());
    }
  }
  return OkStatus();
}

Status Books::CheckAmounts(const std::vector<Box>& boxes) const {
  Free free = Everything(online_);
  std::map<std::string, std::string> users;  // of NICs
  for (const Box& box : boxes) {
    const PlannedContainer* plan = FindPlan(box.key);
    if (plan != nullptr && Lives(box) && IsCurrent(box) && !RunsInTurn(box, boxes)) {
      Take(*plan, box, free);
      users[box.nic_address] += fmt::format(" {} {}", NameOf(box.key), plan->nic_mbps);
    }
  }
  for (const auto& [node, bytes] : free.bytes_by_node) {
    if (bytes < 0) {
      return Broken("NUMA node {} has promised {} bytes more than its {}", node, -bytes,
                    kBytesPerNode);
    }
  }
  for (const auto& [nic, mbps] : free.mbps_by_nic) {
    if (mbps < 0) {
      return Broken("NIC {} has promised {} Mbit/s more than its {}, to{}", nic, -mbps, kNicMbps,
                    users[nic]);
    }
  }
  return OkStatus();
}

bool Books::SomebodyWaits(const std::vector<Box>& boxes) const {
  return std::any_of(boxes.begin(), boxes.end(), [this](const Box& box) {
    const PlannedContainer* known = FindPlan(box.key);
    if (known == nullptr || pods_.at(box.key.pod_uid).finished) {
      return false;
    }
    const bool is_short = CpusOf(box.cpus).Count() * int64_t{1000} < known->spec.milli_cpus;
    const bool waits = known->owns_cpus() && Lives(box) && (is_short || !owners_.contains(box.key));
    const bool was_told = pods_.at(box.key.pod_uid).plan.told == PodPlan::Told::kFirst;
    return waits || (was_told && known->nic_mbps > 0 && box.nic_address.empty());
  });
}

std::string Books::RoomFor(const PodPlan& plan, const std::vector<Box>& boxes) const {
  const bool unheard = std::any_of(ended_.begin(), ended_.end(), [](const auto& entry) {
    return entry.second.heard == Heard::kNo;
  });
  if (unheard || SomebodyWaits(boxes)) {
    return "";
  }
  Free free = Everything(online_);
  CpuSet pool;
  int64_t limits = 0;
  for (const Box& box : boxes) {
    const PlannedContainer* known = FindPlan(box.key);
    if (known == nullptr || pods_.at(box.key.pod_uid).finished || IsPastInit(box)) {
      continue;
    }
    Take(*known, box, free);
    if (pods_.at(box.key.pod_uid).plan.is_pooled()) {
      pool |= CpusOf(box.cpus);
      limits += known->most_milli_cpus();
    }
  }
  free.cpus = free.cpus - pool;
  int kept = plan.is_pooled() ? 2 : 0;
  if (limits > 0) {  // the pool may have grown since its containers got their CPUs
    kept = std::max(PoolSizeFor(limits) - pool.Count(), 0) + 1;
  }
  const auto fits_node = [&](const auto& entry) {
    return entry.second >= plan.bound_bytes() &&
           (free.cpus & CpusOfNode(entry.first)).Count() >= plan.own_cpus() + kept;
  };
  const bool cpus_fit = plan.bound_bytes() == 0 ? free.cpus.Count() >= plan.own_cpus() + kept
                                                : std::any_of(free.bytes_by_node.begin(),
                                                              free.bytes_by_node.end(), fits_node);
  const bool fits =
      cpus_fit && std::any_of(free.mbps_by_nic.begin(), free.mbps_by_nic.end(),
                              [&](const auto& entry) { return entry.second >= plan.nic_mbps(); });
  return fits ? fmt::format("CPUs {} are free, {} and {} bytes, and {} and {} Mbit/s",
                            ToString(free.cpus), free.bytes_by_node[0], free.bytes_by_node[1],
                            free.mbps_by_nic[NicAddress(0)], free.mbps_by_nic[NicAddress(1)])
              : "";
}

bool Books::HoldsAll(const PodPlan& plan, const std::vector<Box>& boxes) const {
  const bool lacks_nic = std::any_of(boxes.begin(), boxes.end(), [&](const Box& box) {
    const PlannedContainer* known = box.key.pod_uid == plan.uid ? FindPlan(box.key) : nullptr;
    return known != nullptr && known->nic_mbps > 0 && box.nic_address.empty();
  });
  if (lacks_nic) {
    return false;
  }
  return std::all_of(
      plan.containers.begin(), plan.containers.end(), [&](const PlannedContainer& container) {
        const ContainerKey key{plan.uid, container.spec.name};
        return container.kind != PlannedContainer::Kind::kInit && placed_.contains(key) &&
               (!container.owns_cpus() || owners_.contains(key));
      });
}

// The runtime's lists show that a sandbox exists, not that it has stopped.
void Books::NoteRestart(Time now) {
  for (auto& [uid, end] : ended_) {
    end = {.at = now, .heard = Heard::kNo};
  }
}

Status Books::CheckRecords(const Look& look) {
  QRM_RETURN_IF_ERROR(CheckKnown(look));
  QRM_RETURN_IF_ERROR(CheckRecordedOwners(look));
  QRM_RETURN_IF_ERROR(CheckRecordedAmounts(look));
  QRM_RETURN_IF_ERROR(CheckValues(look));
  if (look.all_plugins_live) {
    QRM_RETURN_IF_ERROR(CheckSharers(look));
    QRM_RETURN_IF_ERROR(CheckPool(look));
  }
  may_lose_ = false;
  return OkStatus();
}

// Only living pods are on record, and each running container is.
Status Books::CheckKnown(const Look& look) {
  const auto records = ByKey(look.records);
  placed_.clear();
  for (const auto& [key, record] : records) {
    placed_.insert(key);
  }
  for (auto& [uid, end] : ended_) {
    const auto record = records.lower_bound({uid, ""});
    if (record == records.end() || record->first.pod_uid != uid) {
      end = {.at = end.at, .heard = Heard::kYes, .forgotten = true};
    }
  }
  std::erase_if(ended_, [&](const auto& entry) {
    return entry.second.forgotten && !pods_.contains(entry.first);
  });
  for (const auto& [key, record] : records) {
    const auto pod = pods_.find(key.pod_uid);
    const auto ended = ended_.find(key.pod_uid);
    if (ended == ended_.end() && pod == pods_.end()) {
      return Broken("{} is on record and was never made", NameOf(key));
    }
    if (ended != ended_.end() && look.now - ended->second.at > kMayBeRemembered) {
      return Broken(
          "{} has ended {} s ago and is still on record", NameOf(key),
          std::chrono::duration_cast<std::chrono::seconds>(look.now - ended->second.at).count());
    }
  }
  for (const Box& box : look.boxes) {
    if (box.state == Box::State::kRunning && !records.contains(box.key) &&
        FindPlan(box.key) != nullptr && pods_.at(box.key.pod_uid).plan.asks_nothing_special() &&
        look.all_plugins_live) {
      return Broken("{} runs, asks nothing special, and is not on record", NameOf(box.key));
    }
  }
  return OkStatus();
}

Status Books::CheckRecordedOwners(const Look& look) {
  std::map<int, std::string> owner_of;  // pods: within one, init containers lend theirs
  owned_on_record_ = CpuSet();
  pool_on_record_ = PoolOnRecord(look.records);
  const std::set<ContainerKey> before = std::exchange(owners_, {});
  for (const v1::Pod& pod : look.records.pods()) {
    for (const v1::Container& container : pod.containers()) {
      const v1::Allocation* cpus = FindProperty(container, std::string(kCpusetCpus));
      const ContainerKey key{pod.uid(), container.name()};
      if (cpus == nullptr || !cpus->exclusive()) {
        if (before.contains(key) && !may_lose_) {
          return Broken("{} had exclusive CPUs and shares {} on record", NameOf(key),
                        cpus == nullptr ? "nothing" : cpus->value());
        }
        continue;
      }
      owners_.insert(key);
      owned_on_record_ |= CpusOf(cpus->value());
      for (const int cpu : CpusOf(cpus->value())) {
        const auto [owner, fresh] = owner_of.emplace(cpu, pod.uid());
        if (!fresh && owner->second != pod.uid()) {
          return Broken("CPU {} has two owners on record: {} and {}", cpu, owner->second,
                        pod.uid());
        }
      }
    }
  }
  return CheckBoxes(look.boxes);
}

Status Books::CheckRecordedAmounts(const Look& look) const {
  std::map<uint64_t, uint64_t> bytes;
  std::map<std::string, double> mbps;
  for (const auto& [key, record] : ByKey(look.records)) {
    if (record->type() == "INIT") {
      continue;  // lends its CPUs to containers that start later
    }
    for (const v1::Allocation& allocation : record->allocations()) {
      if (allocation.oci_property() == kCpusetMems) {
        for (const auto& [node, amount] : allocation.amount_by_node()) {
          bytes[node] += amount;
        }
      } else if (allocation.resource_name() == "NIC") {
        mbps[allocation.value()] += allocation.quantity();
      }
    }
  }
  for (const auto& [node, amount] : bytes) {
    if (amount > static_cast<uint64_t>(kBytesPerNode)) {
      return Broken("NUMA node {} has {} bytes on record, of {}", node, amount, kBytesPerNode);
    }
  }
  for (const auto& [nic, amount] : mbps) {
    if (amount > kNicMbps) {
      return Broken("NIC {} has {} Mbit/s on record, of {}", nic, amount, kNicMbps);
    }
  }
  return OkStatus();
}

Status Books::CheckValues(const Look& look) const {
  const auto records = ByKey(look.records);
  for (const Box& box : look.boxes) {
    const auto record = records.find(box.key);
    if (box.state != Box::State::kRunning || record == records.end()) {
      continue;
    }
    const v1::Allocation* const cpus = FindProperty(*record->second, std::string(kCpusetCpus));
    const CpuSet due = cpus == nullptr ? CpuSet() : DueCpus(*cpus, look);
    if (!due.Empty() && due != RunsOn(box)) {
      return Broken("{} ({}) runs with CPUs \"{}\" where its record says \"{}\"", NameOf(box.key),
                    box.id, box.cpus, ToString(due));
    }
    const v1::Allocation* const mems = FindProperty(*record->second, std::string(kCpusetMems));
    if (mems != nullptr && mems->value() != box.mems) {
      return Broken("{} ({}) runs with memory of nodes \"{}\" where its record says \"{}\"",
                    NameOf(box.key), box.id, box.mems, mems->value());
    }
  }
  return OkStatus();
}

// A plugin that is not running cannot be asked where containers go that shared CPUs which an owner
// got just before: they have left these CPUs, in the kernel.
CpuSet Books::DueCpus(const v1::Allocation& cpus, const Look& look) const {
  const bool is_current = cpus.exclusive() || look.all_plugins_live;
  return is_current ? CpusOf(cpus.value()) : CpusOf(cpus.value()) - owned_on_record_;
}

// No shared container runs on exclusive CPUs, and no CPU is lost to both, nor to a pool. Containers
// that got no CPUs when the plugin returned may use those of pools.
Status Books::CheckSharers(const Look& look) const {
  const auto records = ByKey(look.records);
  for (const Box& box : look.boxes) {
    if (box.state != Box::State::kRunning || owners_.contains(box.key) ||
        !records.contains(box.key)) {
      continue;
    }
    const auto pod = pods_.find(box.key.pod_uid);
    const bool is_pooled = pod != pods_.end() && pod->second.plan.is_pooled();
    const CpuSet left = is_pooled ? pool_on_record_ : online_ - owned_on_record_ - pool_on_record_;
    const bool has_cpus = FindProperty(*records.at(box.key), std::string(kCpusetCpus)) != nullptr;
    const CpuSet cpus = RunsOn(box);
    if (has_cpus ? cpus != left : cpus.Intersects(owned_on_record_)) {
      return Broken("{} shares CPUs {} where {} have no owner", NameOf(box.key), ToString(cpus),
                    ToString(left));
    }
  }
  return OkStatus();
}

}  // namespace qrm::test
