// Makes room in pools.
#include "plugins/cpu/pool_place.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "api/base/errorf.h"
#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/elastic.h"
#include "plugins/cpu/place.h"
#include "plugins/cpu/pool_asks.h"
#include "plugins/cpu/pools.h"

namespace qrm::cpu {
namespace {

/// Whether `after` takes all CPUs from a pool that has containers and had CPUs.
bool Empties(const View& view, const PoolMap& after) {
  return std::any_of(after.begin(), after.end(), [&](const auto& pool) {
    return pool.second.Empty() && ContainersIn(view.state, pool.first) > 0 &&
           !PoolCpus(view, pool.first).Empty();
  });
}

/// OK when the pool's `cpus` cover what its containers request, or need not.
Status CheckOvercommit(const View& view, const ContainerRequest& request,
                       const Candidate& candidate, const CpuSet& cpus) {
  constexpr int kMilli = 1000;
  const PoolConfig& config = *FindPool(view.config, candidate.guest.pool);
  if (!config.size.has_value() || config.size->overcommits) {
    return OkStatus();
  }
  const int64_t has = int64_t{kMilli} * ThreadsInUse(view.machine, config.place, cpus).Count();
  const int64_t asked = MilliCpusWith(view, candidate);
  if (asked <= has) {
    return OkStatus();
  }
  return Errorf(StatusCode::kResourceExhausted,
                "cannot place {}: the containers of pool {} would request {} CPUs, but it can have "
                "only {}; request fewer, delete a pod, or set overcommit: allow",
                NameOf(request), candidate.guest.pool, static_cast<double>(asked) / kMilli,
                has / kMilli);
}

StatusOr<PoolMap> PlaceInElastic(const View& view, const ContainerRequest& request,
                                 const Candidate& candidate) {
  const std::string& pool = candidate.guest.pool;
  StatusOr<PoolMap> pools = PoolsWith(view, candidate);
  if (!pools.ok()) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot place {}: {}; delete a pod, or change the pool", NameOf(request),
                  MessageOf(pools.status()));
  }
  if ((pools->at(pool) - view.offline).Empty() || Empties(view, *pools)) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot place {}: pool {} has no CPU, and none is left for it; delete a pod, or "
                  "raise the pool's min",
                  NameOf(request), pool);
  }
  if (FindPool(view.config, pool)->place.OwnsWholeCores() &&
      view.machine.WholeCores(pools->at(pool), view.offline).Empty()) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot place {}: pool {} needs whole cores, but none is left; delete "
                  "a pod, or change the pool's place.threads",
                  NameOf(request), pool);
  }
  QRM_RETURN_IF_ERROR(CheckOvercommit(view, request, candidate, pools->at(pool)));
  return pools;
}

Status CheckFixed(const View& view, const ContainerRequest& request, const std::string& pool) {
  if (!(PoolCpus(view, pool) - view.offline).Empty()) {
    return OkStatus();
  }
  return Errorf(StatusCode::kResourceExhausted,
                "cannot place {}: pool {} has no online CPU; give it CPUs with qrmctl pool set",
                NameOf(request), pool);
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
  constexpr int kMilli = 1000;
  return int64_t{kMilli} * (ElasticCpus(view) & node.cpus).Count() -
         MilliCpusWith(view, {request.key, OnNode(guest, node.id), {}});
}

/// The nodes on which an instance can have the container of `guest`; preferred are those that have
/// most CPUs left then, if they have its CPUs. Errors: those of PlaceInPool.
StatusOr<HintList> NodeHints(const View& view, const ContainerRequest& request,
                             const Guest& guest) {
  const auto former = view.state.shared.find(request.key);
  if (former != view.state.shared.end() &&
      ConfiguredName(former->second.pool) == ConfiguredName(guest.pool)) {
    if (const auto node = NodeOfInstance(view.config, former->second.pool); node.has_value()) {
      return HintList({{.nodes = {*node}, .preferred = true}});
    }
  }
  std::vector<TopologyHint> hints;
  std::vector<int64_t> left;
  Status refusal = Errorf(StatusCode::kResourceExhausted,
                          "cannot place {}: pool {} has no CPU on any NUMA node; delete a pod, or "
                          "change the pool",
                          NameOf(request), ConfiguredName(guest.pool));
  for (const NumaNode& node : view.machine.nodes()) {
    if (!ElasticCpus(view).Intersects(node.cpus)) {
      continue;
    }
    const auto pools = PoolsFor(view, request, OnNode(guest, node.id), {});
    if (pools.ok()) {
      hints.push_back({.nodes = {node.id}});
      left.push_back(LeftOn(view, request, guest, node));
    } else {
      refusal = pools.status();
    }
  }
  if (hints.empty()) {
    return refusal;
  }
  for (std::size_t i = 0; i < hints.size(); ++i) {
    hints[i].preferred = left[i] == *std::max_element(left.begin(), left.end());
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

/// `guest`, of the instance on a node within `hint` if its pool has instances by node.
StatusOr<Guest> Resolved(const View& view, const ContainerRequest& request, const Guest& guest,
                         const NumaMask& hint) {
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
                             const Guest& guest) {
  if (IsByNode(view.config, guest.pool)) {
    return NodeHints(view, request, guest);
  }
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

}  // namespace qrm::cpu
