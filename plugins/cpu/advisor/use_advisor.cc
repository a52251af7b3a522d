// Computes advice for pools from the CPU use of pods.
#include "plugins/cpu/advisor/use_advisor.h"

#include <algorithm>
#include <set>
#include <utility>

#include "api/base/log.h"

namespace qrm::cpu {
namespace {

constexpr int kLeaseInLooks = 3;
/// Two such periods and a reconcile take less than 5 s, the longest that a load may wait for its
/// requests.
constexpr std::chrono::milliseconds kWhileBelowRequests{1000};

/// What each pod requests of all pools together. Units: thousandths of a CPU.
std::map<std::string, int64_t> RequestsOf(const NodeSight& node) {
  std::map<std::string, int64_t> requests;
  for (const NodeSight::Container& container : node.containers) {
    requests[container.key.pod_uid] += container.milli_cpus;
  }
  return requests;
}

std::set<std::string> PodsOf(const NodeSight& node) {
  std::set<std::string> pods;
  for (const NodeSight::Container& container : node.containers) {
    if (!node.with_own_cpus.contains(container.key.pod_uid)) {
      pods.insert(container.key.pod_uid);
    }
  }
  return pods;
}

}  // namespace

std::map<std::string, Use> UseByPool(const UseRule& rule, const NodeSight& node,
                                     const UseByPod& uses) {
  const std::map<std::string, int64_t> requests = RequestsOf(node);
  std::map<std::string, Use> pools;
  for (const NodeSight::Container& container : node.containers) {
    Use& pool = pools[container.pool];
    const auto use = uses.find(container.key.pod_uid);
    if (use == uses.end() || node.with_own_cpus.contains(container.key.pod_uid)) {
      pool.cpus += static_cast<double>(container.milli_cpus) / 1000 * rule.target_percent / 100;
      continue;
    }
    const int64_t all = requests.at(container.key.pod_uid);
    const auto same = std::count_if(
        node.containers.begin(), node.containers.end(),
        [&](const auto& other) { return other.key.pod_uid == container.key.pod_uid; });
    pool.cpus += use->second.cpus *
                 (all > 0 ? static_cast<double>(container.milli_cpus) / static_cast<double>(all)
                          : 1.0 / static_cast<double>(same));
    pool.stalled = std::max(pool.stalled, use->second.stalled);
  }
  return pools;
}

UseAdvisor::UseAdvisor(const UseRule& rule, AdviceDesk& desk, const Clock& clock)
    : rule_(rule), desk_(desk), clock_(clock), cgroups_(rule.cgroup_root), thread_([this] {
        Run();
      }) {}

UseAdvisor::~UseAdvisor() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  stopped_.NotifyAll();
  thread_.join();
}

void UseAdvisor::NoteProblem(const std::string& problem) {
  const MutexLock lock(problem_mutex_);
  if (problem != problem_ && !problem.empty()) {
    log::Warning("the built-in advisor lacks measurements", {{"error", problem}});
  }
  problem_ = problem;
}

std::string UseAdvisor::Problem() const {
  const MutexLock lock(problem_mutex_);
  return problem_;
}

void UseAdvisor::Run() {
  MutexLock lock(mutex_);
  std::chrono::milliseconds next = rule_.every;
  while (!stopped_.WaitUntil(mutex_, DeadlineAfter(next),
                             [this]() QRM_REQUIRES(mutex_) { return is_stopping_; })) {
    next = Look();
  }
}

std::chrono::milliseconds UseAdvisor::Look() {
  const auto node = desk_.Sight();
  if (node == nullptr) {
    return rule_.every;
  }
  const StatusOr<UseByPod> uses = cgroups_.Look(PodsOf(*node), clock_.Steady());
  NoteProblem(uses.ok() ? cgroups_.without_pressure() : MessageOf(uses.status()));
  if (!uses.ok()) {
    return rule_.every;
  }
  AdviceCall call{.advisor = kByUse,
                  .rank = AdvisorRank::kBuiltIn,
                  .generation = node->advised.generation,
                  .lease = kLeaseInLooks * rule_.every,
                  .entries = {}};
  bool is_below = false;
  PoolSizes used;
  for (const auto& [pool, use] : UseByPool(rule_, *node, *uses)) {
    const auto size = node->advised.sizes.find(pool);
    const int cpus = size == node->advised.sizes.end() ? 0 : size->second;
    used[pool] = CpusFor(rule_, use);
    const auto ask = node->advised.asks.find(pool);
    const int requested = ask == node->advised.asks.end() ? 0 : ask->second.firm;
    is_below = is_below || (cpus < requested && ask->second.below_firm);
    call.entries.push_back({pool, WishByUse(rule_, use, cpus, requested), "use and pressure"});
  }
  desk_.NoteUse(std::move(used));
  if (const Status taken = desk_.Advise(call).status(); !taken.ok()) {
    log::Warning("the built-in advisor does not size pools", {{"error", MessageOf(taken)}});
  }
  return is_below ? std::min(rule_.every, kWhileBelowRequests) : rule_.every;
}

}  // namespace qrm::cpu
