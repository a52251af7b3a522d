// Makes room in pools.
#include "plugins/cpu/pool_place.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "api/base/errorf.h"
#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/elastic.h"
#include "plugins/cpu/place.h"
#include "plugins/cpu/pool_asks.h"
#include "plugins/cpu/pools.h"
#include "plugins/rules/qos_annotations.h"
#include "plugins/rules/select.h"

namespace qrm::cpu {
namespace {

/// Whether `after` takes all CPUs from a pool that has containers and had CPUs.
bool Empties(const View& view, const PoolMap& after) {
  return std::any_of(after.begin(), after.end(), [&](const auto& pool) {
    return pool.second.Empty() && ContainersIn(view.state, pool.first) > 0 &&
           !PoolCpus(view, pool.first).Empty();
  });
}

constexpr int kMilli = 1000;

/// What the pool's `cpus` leave beside the requests of its containers. Units: thousandths of a CPU;
/// negative if it is overcommitted.
int64_t LeftOf(const View& view, const Candidate& candidate, const CpuSet& cpus) {
  const PlaceRule& place = FindPool(view.config, candidate.guest.pool)->place;
  return int64_t{kMilli} * ThreadsInUse(view.machine, place, cpus).Count() -
         MilliCpusWith(view, candidate);
}

/// OK when the pool's `cpus` cover what its containers request.
Status CheckCovered(const View& view, const ContainerRequest& request, const Candidate& candidate,
                    const CpuSet& cpus) {
  const int64_t left = LeftOf(view, candidate, cpus);
  if (left >= 0) {
    return OkStatus();
  }
  const int64_t asked = MilliCpusWith(view, candidate);
  const int64_t has = asked + left;
  return Errorf(StatusCode::kResourceExhausted,
                "cannot place {}: the containers of pool {} would request {} CPUs, but it can have "
                "only {}; request fewer, delete a pod, or allow the pool more",
                rules::NameOf(request), candidate.guest.pool, static_cast<double>(asked) / kMilli,
                has / kMilli);
}

StatusOr<PoolMap> PlaceInElastic(const View& view, const ContainerRequest& request,
                                 const Candidate& candidate) {
  const std::string& pool = candidate.guest.pool;
  StatusOr<PoolMap> pools = PoolsWith(view, candidate);
  if (!pools.ok()) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot place {}: {}; delete a pod, or change the pool", rules::NameOf(request),
                  MessageOf(pools.status()));
  }
  if ((pools->at(pool) - view.offline).Empty() || Empties(view, *pools)) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot place {}: pool {} has no CPU, and none is left for it; delete a pod, or "
                  "raise the pool's min",
                  rules::NameOf(request), pool);
  }
  if (FindPool(view.config, pool)->place.OwnsWholeCores() &&
      view.machine.WholeCores(pools->at(pool), view.offline).Empty()) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot place {}: pool {} needs whole cores, but none is left; delete "
                  "a pod, or change the pool's place.threads",
                  rules::NameOf(request), pool);
  }
  const auto& size = FindPool(view.config, pool)->size;
  if (size.has_value() && !size->overcommits) {
    QRM_RETURN_IF_ERROR(CheckCovered(view, request, candidate, pools->at(pool)));
  }
  return pools;
}

Status CheckFixed(const View& view, const ContainerRequest& request, const std::string& pool) {
  if (!(PoolCpus(view, pool) - view.offline).Empty()) {
    return OkStatus();
  }
  return Errorf(StatusCode::kResourceExhausted,
                "cannot place {}: pool {} has no online CPU; give it CPUs with qrmctl pool set",
                rules::NameOf(request), pool);
}

/// The pools with the container in its pool; absent if none changes.
StatusOr<std::optional<PoolMap>> PoolsFor(const View& view, const ContainerRequest& request,
                                          const Guest& guest, const NumaMask& hint) {
  if (!IsElastic(view.config, guest.pool)) {
    QRM_RETURN_IF_ERROR(CheckFixed(view, request, guest.pool));
    return std::optional<PoolMap>();
  }
  QRM_ASSIGN_OR_RETURN(PoolMap pools, PlaceInElastic(view, request, {request.key, guest, hint}));
  return std::optional(std::move(pools));
}

/// The rank of a node for a pool that must stay on one. It counts the CPUs that the pool gets
/// there, and nearness to its devices. For balanced instances it also counts the CPUs that no other
/// such pool has there.
using Rank = std::tuple<int, bool, int>;

Rank RankOf(const View& view, const Guest& guest, const NumaNode& node, const PoolMap& pools) {
  const std::string& pool = guest.pool;
  const PoolConfig* const config = FindPool(view.config, pool);
  const NumaMask devices = config->place.near_nodes | guest.near;
  const bool near = devices.Empty() || devices.Has(node.id);
  if (!config->instances.has_value() || config->instances->fill == InstanceRule::Fill::kPacked) {
    return {pools.at(pool).Count(), near, 0};
  }
  CpuSet left = node.cpus - pools.at(pool);
  for (const auto& [name, cpus] : view.state.pools) {
    const PoolConfig* const other = FindPool(view.config, name);
    left -= other != nullptr && other->place.numa_required ? cpus : CpuSet();
  }
  return {pools.at(pool).Count(), near, left.Count()};
}

Guest OnNode(Guest guest, int node) {
  guest.pool = InstanceOn(guest.pool, node);
  return guest;
}

/// The CPUs of `node` that its instance leaves once it has the container of `guest`. Units:
/// thousandths of a CPU; negative if it is overcommitted.
int64_t LeftOn(const View& view, const ContainerRequest& request, const Guest& guest,
               const NumaNode& node) {
  const Candidate candidate{request.key, OnNode(guest, node.id), {}};
  CpuSet cpus = ElasticCpus(view) & node.cpus;
  for (const auto& [name, others] : view.state.pools) {
    if (name != candidate.guest.pool && NodeOfInstance(view.config, name).has_value()) {
      cpus -= others;  // they can be on no other node
    }
  }
  return int64_t{kMilli} * cpus.Count() - MilliCpusWith(view, candidate);
}

/// The instance of `pool` that the container has already; empty: none.
std::string InstanceOf(const View& view, const ContainerKey& key, std::string_view pool) {
  const auto held = view.state.shared.find(key);
  const std::string former = held != view.state.shared.end() ? held->second.pool
                             : view.former != nullptr        ? view.former->beside.pool
                                                             : std::string();
  return ConfiguredName(former) == pool ? former : std::string();
}

/// The instance of `pool` that another container of the pod has; empty: none.
std::string InstanceOfPod(const View& view, const ContainerKey& key, std::string_view pool) {
  for (auto other = view.state.shared.lower_bound({key.pod_uid, ""});
       other != view.state.shared.end() && other->first.pod_uid == key.pod_uid; ++other) {
    if (ConfiguredName(other->second.pool) == pool) {
      return other->second.pool;
    }
  }
  return {};
}

/// How well a node suits a container: whether it has the requested CPUs and how few containers are
/// there, if the pool's rule says so; then the CPUs that are left.
using NodeRank = std::tuple<bool, int64_t, int64_t>;

NodeRank NodeRankOf(const View& view, const ContainerRequest& request, const Guest& guest,
                    const NumaNode& node) {
  const int64_t left = LeftOn(view, request, guest, node);
  const auto& instances = FindPool(view.config, guest.pool)->instances;
  if (!instances.has_value() || instances->fill != InstanceRule::Fill::kFewest) {
    return {true, 0, left};
  }
  const uint64_t others = ContainersIn(view.state, InstanceOn(guest.pool, node.id));
  return {left >= 0, -static_cast<int64_t>(others), left};
}

/// The nodes on which an instance can have the container of `guest`; preferred are those that suit
/// it best. Errors: those of PlaceInPool.
StatusOr<HintList> NodeHints(const View& view, const ContainerRequest& request,
                             const Guest& guest) {
  if (const auto node =
          NodeOfInstance(view.config, InstanceOf(view, request.key, ConfiguredName(guest.pool)));
      node.has_value()) {
    return HintList({{.nodes = {*node}, .preferred = true}});
  }
  std::vector<TopologyHint> hints;
  std::vector<NodeRank> ranks;
  QRM_ASSIGN_OR_RETURN(const rules::QosRequest qos,
                       rules::ParseQosAnnotations(request.annotations));
  const NumaMask allowed =
      qos.level == rules::QosLevel::kShared && qos.numa_binding && !qos.numa_ids.Empty()
          ? qos.numa_ids
          : view.machine.node_mask();
  Status refusal = Errorf(StatusCode::kResourceExhausted,
                          "cannot place {}: pool {} has no CPU on NUMA nodes {}; delete a pod, or "
                          "change the pool",
                          rules::NameOf(request), ConfiguredName(guest.pool), ToString(allowed));
  for (const NumaNode& node : view.machine.nodes()) {
    if (!allowed.Has(node.id) || !ElasticCpus(view).Intersects(node.cpus)) {
      continue;
    }
    const auto pools = PoolsFor(view, request, OnNode(guest, node.id), {});
    if (pools.ok()) {
      hints.push_back({.nodes = {node.id}});
      ranks.push_back(NodeRankOf(view, request, guest, node));
    } else {
      refusal = pools.status();
    }
  }
  if (hints.empty()) {
    return refusal;
  }
  for (std::size_t i = 0; i < hints.size(); ++i) {
    hints[i].preferred = ranks[i] == *std::max_element(ranks.begin(), ranks.end());
  }
  return HintList(std::move(hints));
}

/// The node of `nodes` that `hint` has, else any, the preferred one first.
int ChooseNode(const HintList& nodes, const NumaMask& hint) {
  const auto rank = [&](const TopologyHint& node) {
    return std::tuple(node.nodes.Intersects(hint), node.preferred);
  };
  return std::max_element(nodes.hints().begin(), nodes.hints().end(),
                          [&](const auto& a, const auto& b) { return rank(a) < rank(b); })
      ->nodes.First();
}

/// The nodes of the CPUs that `pool` has in `pools`, so that memory and NICs follow: the nodes with
/// most of them are preferred. No preference where it has CPUs of all nodes.
HintList NodesOfPool(const View& view, const PoolMap& pools, const std::string& pool) {
  const CpuSet cpus = UsedCpus(view, pools, pool) - view.offline;
  std::vector<TopologyHint> hints;
  std::vector<int> shares;
  bool on_all = true;
  for (const NumaNode& node : view.machine.nodes()) {
    const int share = (cpus & node.cpus).Count();
    if (share > 0) {
      hints.push_back({.nodes = {node.id}});
      shares.push_back(share);
    }
    on_all = on_all && (share > 0 || node.cpus.Empty());
  }
  if (on_all) {
    return HintList::NoPreference();
  }
  for (std::size_t i = 0; i < hints.size(); ++i) {
    hints[i].preferred = shares[i] == *std::max_element(shares.begin(), shares.end());
  }
  if (hints.size() > 1) {
    hints.push_back({.nodes = view.machine.NodesOf(cpus)});
  }
  return HintList(std::move(hints));
}

/// An instance with the container.
struct Choice {
  Guest guest;
  std::tuple<bool, int64_t, int64_t> rank;  ///< it need not grow; CPUs left; few containers
};

/// Errors: those of PlaceInElastic, and kResourceExhausted when an instance would be overcommitted.
StatusOr<Choice> TryInstance(const View& view, const ContainerRequest& request, Guest guest,
                             const std::string& instance) {
  guest.pool = instance;
  const Candidate candidate{request.key, guest, {}};
  QRM_ASSIGN_OR_RETURN(const PoolMap pools, PlaceInElastic(view, request, candidate));
  const CpuSet& cpus = pools.at(instance);
  QRM_RETURN_IF_ERROR(CheckCovered(view, request, candidate, cpus));
  const bool grows = cpus.Count() > PoolCpus(view, instance).Count();
  return Choice{std::move(guest),
                {!grows, LeftOf(view, candidate, cpus),
                 -static_cast<int64_t>(ContainersIn(view.state, instance))}};
}

/// `guest`, of an instance with room for it: that of its pod, else one of its group, else a new
/// one, else any if the rule allows it. Errors: why no instance could be created.
StatusOr<Guest> WithRoom(const View& view, const ContainerRequest& request, const Guest& guest,
                         InstanceRule::WhenFull when_full) {
  const std::string_view pool = ConfiguredName(guest.pool);
  const std::string first(FirstInstance(guest.pool));
  std::set<std::string> of_group;
  std::set<std::string> others;
  ForEachGuest(view.state, [&](const ContainerKey& key, const Guest& other) {
    if (ConfiguredName(other.pool) == pool && key != request.key) {
      (FirstInstance(other.pool) == first ? of_group : others).insert(other.pool);
    }
  });
  int number = 1;
  while (of_group.contains(NumberedInstance(first, number))) {
    ++number;
  }
  std::vector<std::set<std::string>> steps;
  for (const std::string& own :
       {InstanceOf(view, request.key, pool), InstanceOfPod(view, request.key, pool)}) {
    if (!own.empty()) {
      steps.push_back({own});
    }
  }
  steps.push_back(std::move(of_group));
  const std::string created = NumberedInstance(first, number);
  steps.push_back({created});
  if (when_full == InstanceRule::WhenFull::kAny) {
    steps.push_back(std::move(others));
  }
  Status refusal;
  for (const std::set<std::string>& step : steps) {
    std::optional<Choice> best;
    for (const std::string& instance : step) {
      StatusOr<Choice> choice = TryInstance(view, request, guest, instance);
      if (!choice.ok()) {
        refusal = instance == created ? choice.status() : refusal;
      } else if (!best.has_value() || choice->rank > best->rank) {
        best = *std::move(choice);
      }
    }
    if (best.has_value()) {
      return std::move(best->guest);
    }
  }
  return refusal;
}

/// `guest`, of the instance that it uses: on a node within `hint` if its pool has instances by
/// node, or one of several with room.
StatusOr<Guest> Resolved(const View& view, const ContainerRequest& request, const Guest& guest,
                         const NumaMask& hint) {
  const PoolConfig* const pool = FindPool(view.config, guest.pool);
  if (pool != nullptr && pool->instances.has_value() &&
      pool->instances->when_full != InstanceRule::WhenFull::kOverbook) {
    return WithRoom(view, request, guest, pool->instances->when_full);
  }
  if (!IsByNode(view.config, guest.pool) || NodeOfInstance(view.config, guest.pool).has_value()) {
    return guest;
  }
  QRM_ASSIGN_OR_RETURN(const HintList nodes, NodeHints(view, request, guest));
  return OnNode(guest, ChooseNode(nodes, hint));
}

}  // namespace

StatusOr<PoolPlace> PlaceInPool(const View& view, const ContainerRequest& request,
                                const Guest& guest, const NumaMask& hint) {
  QRM_ASSIGN_OR_RETURN(const Guest resolved, Resolved(view, request, guest, hint));
  PoolPlace place{.pool = resolved.pool, .cpus = {}, .pools = {}};
  QRM_ASSIGN_OR_RETURN(place.pools, PoolsFor(view, request, resolved, hint));
  place.cpus =
      UsedCpus(view, place.pools.has_value() ? *place.pools : view.state.pools, resolved.pool);
  return place;
}

StatusOr<HintList> PoolHints(const View& view, const ContainerRequest& request,
                             const Guest& asked) {
  if (IsByNode(view.config, asked.pool)) {
    return NodeHints(view, request, asked);
  }
  QRM_ASSIGN_OR_RETURN(const Guest guest, Resolved(view, request, asked, {}));
  QRM_ASSIGN_OR_RETURN(const std::optional<PoolMap> anywhere, PoolsFor(view, request, guest, {}));
  const PoolConfig* const config = FindPool(view.config, guest.pool);
  if (config == nullptr || !config->place.numa_required || !anywhere.has_value()) {
    return NodesOfPool(view, anywhere.has_value() ? *anywhere : view.state.pools, guest.pool);
  }
  std::vector<TopologyHint> hints;
  std::vector<Rank> ranks;
  for (const NumaNode& node : view.machine.nodes()) {
    const std::optional<PoolMap> there =
        PoolsFor(view, request, guest, {node.id}).value_or(std::nullopt);
    if (there.has_value() && there->at(guest.pool).IsSubsetOf(node.cpus)) {
      hints.push_back({.nodes = {node.id}, .preferred = false});
      ranks.push_back(RankOf(view, guest, node, *there));
    }
  }
  for (std::size_t i = 0; i < hints.size(); ++i) {
    hints[i].preferred = ranks[i] == *std::max_element(ranks.begin(), ranks.end());
  }
  return HintList(std::move(hints));
}

void PreferRoomiest(const View& view, const ContainerRequest& request, const std::string& pool,
                    std::vector<TopologyHint>& hints) {
  const Guest guest = GuestOf(view.config, request, pool);
  const auto left_on = [&](const TopologyHint& hint) {
    return LeftOn(view, request, guest, *view.machine.FindNode(hint.nodes.First()));
  };
  std::optional<int64_t> most;
  for (const TopologyHint& hint : hints) {
    if (hint.preferred && hint.nodes.Count() == 1) {
      most = std::max(most.value_or(left_on(hint)), left_on(hint));
    }
  }
  for (TopologyHint& hint : hints) {
    hint.preferred = hint.preferred &&
                     (!most.has_value() || (hint.nodes.Count() == 1 && left_on(hint) == *most));
  }
}

}  // namespace qrm::cpu
