// Makes room in pools.
#include "plugins/cpu/pool_place.h"

#include <algorithm>
#include <utility>

#include "plugins/cpu/borrow.h"
#include "plugins/cpu/elastic.h"

namespace qrm::cpu {
namespace {

/// Whether `after` leaves a pool without CPUs that had some.
bool Empties(const View& view, const PoolMap& after) {
  return std::any_of(after.begin(), after.end(), [&](const auto& pool) {
    return pool.second.Empty() && !PoolCpus(view, pool.first).Empty();
  });
}

StatusOr<PoolPlace> PlaceInElastic(const View& view, const ContainerRequest& request,
                                   const Guest& guest) {
  const std::string& pool = guest.pool;
  const Newcomer newcomer = {request.key, guest};
  PoolMap pools = SizedPools(view, &newcomer);
  CpuSet cpus = pools.at(pool);
  if ((cpus - view.offline).Empty() || Empties(view, pools) ||
      (MinimumsFit(view) && !MinimumsFit(view, &newcomer))) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot place {}: pool {} has no CPU, and none is left for it; remove a pod, or "
                  "raise the pool's min",
                  NameOf(request), pool);
  }
  return PoolPlace{.cpus = std::move(cpus), .pools = std::move(pools)};
}

StatusOr<PoolPlace> PlaceInFixed(const View& view, const ContainerRequest& request,
                                 const std::string& pool) {
  PoolPlace place = {.cpus = PoolCpus(view, pool)};
  if (!(place.cpus - view.offline).Empty()) {
    return place;
  }
  return Errorf(
      StatusCode::kResourceExhausted,
      "cannot place {}: pool {} has no CPU that is online; give it some with qrmctl pool set",
      NameOf(request), pool);
}

}  // namespace

StatusOr<PoolPlace> PlaceInPool(const View& view, const ContainerRequest& request,
                                const Guest& guest) {
  const std::string& pool = guest.pool;
  QRM_ASSIGN_OR_RETURN(PoolPlace place, IsElastic(view.config, pool)
                                            ? PlaceInElastic(view, request, guest)
                                            : PlaceInFixed(view, request, pool));
  const PoolMap borrowed = Borrow(view, place.pools.has_value() ? *place.pools : view.state.pools);
  if (const auto more = borrowed.find(pool); more != borrowed.end()) {
    place.cpus |= more->second;
  }
  return place;
}

}  // namespace qrm::cpu
