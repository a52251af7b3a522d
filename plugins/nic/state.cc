// Finds the NICs and keeps account of their users.
#include "plugins/nic/state.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/container_turns.h"

namespace qrm::nic {
namespace {

std::optional<int> NodeOf(const Machine& machine, const std::string& interface) {
  for (const Nic& nic : machine.parts().nics) {
    if (nic.name == interface) {
      return nic.node;
    }
  }
  return std::nullopt;
}

/// What NICs are built from.
struct Sources {
  const NicPluginConfig& config;
  const Machine& machine;
  const NicFacts& facts;
  const std::vector<NicInfo>& before;
};

/// Null when nothing is known about the namespace.
const NamespaceFacts* NamespaceOf(const Sources& sources, const NicId& nic) {
  const auto found = sources.facts.find(nic.netns);
  return found == sources.facts.end() ? nullptr : &found->second;
}

const InterfaceFacts* InterfaceOf(const Sources& sources, const NicId& nic) {
  const NamespaceFacts* const around = NamespaceOf(sources, nic);
  if (around == nullptr) {
    return nullptr;
  }
  const auto found = around->interfaces.find(nic.interface);
  return found == around->interfaces.end() ? nullptr : &found->second;
}

bool Has(const std::vector<std::string>& addresses, const std::string& address) {
  return std::ranges::find(addresses, address) != addresses.end();
}

/// Why no container should get `nic`, whose state in the kernel is `seen`.
std::string ProblemOf(const NicConfig& declared, const NamespaceFacts& around,
                      const InterfaceFacts* seen) {
  if (!around.exists) {
    return fmt::format("its network namespace {} is gone", declared.netns);
  }
  if (seen == nullptr) {
    return "there is no such interface";
  }
  if (!seen->up) {
    return "is set down";
  }
  if (!seen->has_link) {
    return "has no link";
  }
  if (!declared.ipv4.empty() && !Has(seen->ipv4, declared.ipv4)) {
    return "does not have its address " + declared.ipv4;
  }
  if (!declared.ipv6.empty() && !Has(seen->ipv6, declared.ipv6)) {
    return "does not have its address " + declared.ipv6;
  }
  return "";
}

/// A NIC without a link has no speed in the kernel, and keeps its last one.
uint64_t SpeedOf(const Sources& sources, const NicId& id, const InterfaceFacts* seen) {
  if (!sources.config.request_is_bandwidth) {
    return 0;
  }
  const NicInfo* const before = FindNic(sources.before, id);
  const uint64_t now = seen == nullptr ? 0 : seen->speed_mbps;
  return now == 0 && before != nullptr ? before->egress_mbps : now;
}

std::optional<int> NodeOf(const Sources& sources, const NicConfig& declared,
                          const InterfaceFacts* seen) {
  if (declared.node) {
    return declared.node;
  }
  // Names in other namespaces say nothing about this one's interfaces.
  const std::optional<int> node =
      declared.netns.empty() ? NodeOf(sources.machine, declared.interface) : std::nullopt;
  const std::optional<int> told = seen == nullptr ? std::nullopt : seen->node;
  return node || !told || sources.machine.FindNode(*told) == nullptr ? node : told;
}

std::string FirstOf(const std::vector<std::string>& addresses) {
  return addresses.empty() ? "" : addresses.front();
}

/// Fills what `declared` leaves out from the interface.
NicInfo Complete(const NicConfig& declared, const Sources& sources) {
  NicInfo nic = {.id = {.netns = declared.netns, .interface = declared.interface},
                 .ipv4 = declared.ipv4,
                 .ipv6 = declared.ipv6};
  const InterfaceFacts* const seen = InterfaceOf(sources, nic.id);
  nic.node = NodeOf(sources, declared, seen);
  const uint64_t speed = SpeedOf(sources, nic.id, seen);
  nic.egress_mbps = declared.egress_mbps.value_or(speed);
  nic.ingress_mbps = declared.ingress_mbps.value_or(speed);
  if (seen != nullptr) {
    nic.addresses = seen->ipv4;
    nic.addresses.insert(nic.addresses.end(), seen->ipv6.begin(), seen->ipv6.end());
    if (declared.ipv4.empty() && declared.ipv6.empty()) {
      nic.ipv4 = FirstOf(seen->ipv4);
      nic.ipv6 = FirstOf(seen->ipv6);
    }
  }
  const NamespaceFacts* const around = NamespaceOf(sources, nic.id);
  if (around != nullptr && sources.config.follow != NicFollow::kNone) {
    nic.problem = ProblemOf(declared, *around, seen);
  }
  return nic;
}

std::vector<NicInfo> NicsOf(const Sources& sources) {
  std::vector<NicInfo> nics;
  for (const Nic& own : sources.machine.parts().nics) {
    NicInfo nic = Complete({.interface = own.name}, sources);
    const bool has_address = !nic.ipv4.empty() || !nic.ipv6.empty();
    if (!has_address && FindNic(sources.before, nic.id) == nullptr) {
      continue;
    }
    if (!has_address && nic.problem.empty()) {
      nic.problem = "has no address";
    }
    nics.push_back(std::move(nic));
  }
  return nics;
}

/// The number of entries of each amount.
using ByAmount = std::map<double, uint64_t>;

void TakeOne(ByAmount& amounts, double amount) {
  if (--amounts.at(amount) == 0) {
    amounts.erase(amount);
  }
}

double SumOf(const ByAmount& amounts) {
  double sum = 0;
  for (const auto& [amount, count] : amounts) {
    sum += amount * static_cast<double>(count);
  }
  return sum;
}

}  // namespace

void NicState::Put(const ContainerKey& key, Use use) {
  Take(key);
  const NicId nic = use.nic;
  Change(key, nic, [&](Users& users) {
    uses_.emplace(key, std::move(use));
    ++users.containers;
  });
}

std::optional<Use> NicState::Take(const ContainerKey& key) {
  const auto former = uses_.find(key);
  if (former == uses_.end()) {
    return std::nullopt;
  }
  Use use = former->second;
  Change(key, use.nic, [&](Users& users) {
    uses_.erase(former);
    --users.containers;
  });
  return use;
}

/// Runs `edit`, which changes what the pod of `key` uses of `nic`.
template <typename Edit>
void NicState::Change(const ContainerKey& key, const NicId& nic, const Edit& edit) {
  Users& users = users_[nic];
  if (const auto before = AtOnce(key.pod_uid, nic); before.has_value()) {
    TakeOne(users.pods, *before);
  }
  edit(users);
  if (const auto now = AtOnce(key.pod_uid, nic); now.has_value()) {
    ++users.pods[*now];
  }
  if (users.containers == 0) {
    users_.erase(nic);
  }
}

/// What the pod uses of `nic` at the same time, without container `without` and with `more`; absent
/// for a pod that does not use it.
std::optional<double> NicState::AtOnce(const std::string& pod_uid, const NicId& nic,
                                       const ContainerKey* without, const Use* more) const {
  AmountInTurn<double> mbps;
  bool any = more != nullptr;
  if (more != nullptr) {
    mbps.Add(more->type, more->mbps);
  }
  for (auto use = uses_.lower_bound({.pod_uid = pod_uid});
       use != uses_.end() && use->first.pod_uid == pod_uid; ++use) {
    if (use->second.nic == nic && (without == nullptr || use->first != *without)) {
      mbps.Add(use->second.type, use->second.mbps);
      any = true;
    }
  }
  return any ? std::optional(mbps.AtOnce()) : std::nullopt;
}

bool NicState::TakePod(const std::string& pod_uid) {
  bool any = false;
  for (auto use = uses_.lower_bound({.pod_uid = pod_uid});
       use != uses_.end() && use->first.pod_uid == pod_uid;
       use = uses_.lower_bound({.pod_uid = pod_uid})) {
    Take(ContainerKey(use->first));
    any = true;
  }
  return any;
}

void NicState::Merge(const NicState& more) {
  for (const auto& [key, use] : more.uses_) {
    if (!uses_.contains(key)) {
      Put(key, use);
    }
  }
}

bool NicState::IsUsedByPod(const std::string& pod_uid, const NicId& nic) const {
  for (auto use = uses_.lower_bound({.pod_uid = pod_uid});
       use != uses_.end() && use->first.pod_uid == pod_uid; ++use) {
    if (use->second.nic == nic) {
      return true;
    }
  }
  return false;
}

// Summed up again each time, so that removed amounts leave no rounding errors.
Load NicState::LoadOf(const NicId& nic) const {
  const auto found = users_.find(nic);
  return found == users_.end()
             ? Load()
             : Load{.containers = found->second.containers, .mbps = SumOf(found->second.pods)};
}

Load NicState::LoadWith(const ContainerKey& key, const Use& use) const {
  const auto found = users_.find(use.nic);
  Users users = found == users_.end() ? Users() : found->second;
  if (const auto now = AtOnce(key.pod_uid, use.nic); now.has_value()) {
    TakeOne(users.pods, *now);
  }
  ++users.pods[AtOnce(key.pod_uid, use.nic, &key, &use).value_or(0)];
  const auto former = uses_.find(key);
  const bool is_known = former != uses_.end() && former->second.nic == use.nic;
  return {.containers = users.containers + (is_known ? 0 : 1), .mbps = SumOf(users.pods)};
}

StatusOr<std::vector<NicInfo>> FindNics(const NicPluginConfig& config, const Machine& machine,
                                        const NicFacts& facts, const std::vector<NicInfo>& before) {
  const Sources sources = {config, machine, facts, before};
  if (config.nics.empty()) {
    return NicsOf(sources);
  }
  std::vector<NicInfo> nics;
  for (const NicConfig& declared : config.nics) {
    if (declared.node && machine.FindNode(*declared.node) == nullptr) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot use NIC {} on NUMA node {}: the machine has nodes {}; correct its "
                    "numa-node",
                    declared.interface, *declared.node, ToString(machine.node_mask()));
    }
    nics.push_back(Complete(declared, sources));
  }
  return nics;
}

const NicInfo* FindNic(const std::vector<NicInfo>& nics, const NicId& id) {
  const auto found = std::ranges::find_if(nics, [&](const NicInfo& nic) { return nic.id == id; });
  return found == nics.end() ? nullptr : &*found;
}

NicId NicOf(const ResourceAllocation& allocation) {
  NicId nic = {.interface = allocation.value};
  for (const auto& [key, value] : allocation.annotations) {
    if (value.starts_with('/')) {  // the other annotation, of problems, is a sentence
      nic.netns = value;
    }
  }
  return nic;
}

NicState Rebuild(const NicPluginConfig& config, const sdk::Grants& grants) {
  NicState state;
  for (const auto& [key, grant] : grants) {
    state.Put(key, {.nic = NicOf(grant.allocation),
                    .mbps = config.request_is_bandwidth ? grant.request.quantity() : 0,
                    .type = grant.request.type});
  }
  return state;
}

}  // namespace qrm::nic
