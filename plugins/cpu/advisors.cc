// Shows the node to advisors, and paces what they change.
#include "plugins/cpu/advisors.h"

#include <utility>

#include "api/base/log.h"
#include "plugins/cpu/advisor/advisor_server.h"
#include "plugins/cpu/advisor/desk.h"
#include "plugins/cpu/advisor/katalyst_advisor.h"
#include "plugins/cpu/advisor/use_advisor.h"
#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/pool_asks.h"
#include "plugins/cpu/sizing/advice.h"

namespace qrm::cpu {
namespace {

/// Advice changes pools at most once in this time.
constexpr std::chrono::seconds kPace{1};

void SeePools(const View& view, NodeSight& sight) {
  const CpuSet elastic = ElasticCpus(view);
  sight.advised.capacity = CapacityOf(view, elastic);
  for (const auto& [name, ask] : sight.advised.asks) {
    const ElasticSize size = FindPool(view.config, name)->size.value_or(ElasticSize());
    sight.advised.steps[name] = size.step > 0 ? size.step : view.config.advisor.max_step;
    if (const auto pool = view.state.pools.find(name); pool != view.state.pools.end()) {
      sight.pools[name] = pool->second;
      sight.advised.sizes[name] = (pool->second & elastic).Count();
    }
  }
}

/// What only Katalyst's advisor gets.
void SeeContainers(const View& view, const sdk::Grants& grants, NodeSight& sight) {
  sight.reserved = view.config.reserved;
  for (const auto& [key, holding] : view.state.exclusive) {
    sight.own_cpus.emplace(key, holding.cpus);
  }
  for (const auto& [key, grant] : grants) {
    sight.requests.emplace(key, grant.request);
  }
}

NodeSight SightOf(View view) {
  NodeSight sight;
  if (view.advised != nullptr) {
    sight.in_force = *std::exchange(view.advised, nullptr);
  }
  sight.advised.asks = AsksOf(view);
  SeePools(view, sight);
  for (const NumaNode& node : view.machine.nodes()) {
    sight.online[node.id] = node.cpus - view.offline;
  }
  ForEachGuest(view.state, [&](const ContainerKey& key, const Guest& guest) {
    if (IsElastic(view.config, guest.pool)) {
      sight.containers.push_back({key, guest.pool, guest.milli_cpus, guest.milli_limit});
    }
  });
  for (const auto& [key, holding] : view.state.exclusive) {
    sight.with_own_cpus.insert(key.pod_uid);
  }
  return sight;
}

}  // namespace

Advisors::Advisors(const CpuPluginConfig& config, const Clock& clock, PoolSizes remembered,
                   std::function<void()> on_advice)
    : config_(config),
      clock_(clock),
      advised_(std::move(remembered)),
      recalls_(!advised_.empty()),
      desk_(std::make_unique<AdviceDesk>(config.advisor, clock, std::move(on_advice))) {
  if (config.advisor.use.has_value()) {
    use_ = std::make_unique<UseAdvisor>(*config.advisor.use, *desk_, clock);
  }
  if (config.advisor.katalyst.has_value()) {
    katalyst_ = std::make_unique<KatalystAdvisor>(*config.advisor.katalyst, *desk_);
  }
  Serve();
}

Advisors::~Advisors() = default;

void Advisors::Serve() {
  if (server_ != nullptr || config_.advisor.socket.empty()) {
    return;
  }
  auto server = AdvisorServer::Start(config_.advisor.socket, *desk_);
  if (!server.ok()) {
    if (std::string problem = MessageOf(server.status()); problem != problem_) {
      log::Warning("cannot serve advisors; trying again", {{"error", problem}});
      problem_ = std::move(problem);
    }
    return;
  }
  server_ = *std::move(server);
}

bool Advisors::Follow(const View& view) {
  Serve();
  used_ = desk_->Used();
  const auto now = clock_.Steady();
  if (followed_at_.has_value() && now - *followed_at_ < kPace) {
    return false;
  }
  PoolSizes next = NextAdvice(SightOf(view).advised, advised_, desk_->InForce());
  if (next == advised_) {
    return false;
  }
  followed_at_ = now;
  advised_ = std::move(next);
  return true;
}

void Advisors::Show(const View& view, const sdk::Grants& grants) {
  NodeSight sight = SightOf(view);
  if (katalyst_ != nullptr) {
    SeeContainers(view, grants, sight);
  }
  desk_->Show(std::move(sight));
  Recall();
}

void Advisors::Recall() {
  if (!std::exchange(recalls_, false)) {
    return;
  }
  AdviceCall call{.advisor = kBeforeRestart,
                  .rank = AdvisorRank::kRemembered,
                  .generation = desk_->Sight()->advised.generation,
                  .lease = config_.advisor.lease};
  for (const auto& [pool, cpus] : advised_) {
    call.entries.push_back({.pool = pool, .cpus = cpus});
  }
  if (const auto taken = desk_->Advise(call); !taken.ok()) {
    log::Warning("advice from before the restart is dropped",
                 {{"error", MessageOf(taken.status()) + "; have the advisor send it again"}});
  }
}

std::string Advisors::problem() const {
  return use_ == nullptr ? std::string() : use_->Problem();
}

std::map<int, double> Advisors::headroom() const {
  return katalyst_ == nullptr ? std::map<int, double>() : katalyst_->headroom();
}

}  // namespace qrm::cpu
