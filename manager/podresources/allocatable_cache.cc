// Joins the plugins' answers, and drops answers that arrive after the cache's end.
#include "manager/podresources/allocatable_cache.h"

#include <utility>

#include "manager/podresources/plugin_failures.h"
#include "manager/registry/plugins.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::manager {

struct AllocatableCache::State {
  using Time = std::chrono::steady_clock::time_point;
  struct Kept {
    AllocatableByResource answer;
    Time given_at;
    bool fails = false;
  };

  State(prometheus::Family<prometheus::Counter>& errors, Duration keep_for)
      : failures("its allocatable resources", errors), keep(keep_for) {}

  /// Takes the answers of the latest round.
  void Take(ByPlugin<AllocatableByResource> answers, Time now) QRM_REQUIRES(mutex) {
    auto joined = std::make_shared<AllocatableByResource>();
    auto answered = std::make_shared<AllocatableByResource>();
    std::map<std::string, Kept> next;
    for (auto& [plugin, answer] : answers) {
      if (answer.ok()) {
        answered->insert(answer->begin(), answer->end());
        next[plugin] = {.answer = *std::move(answer), .given_at = now};
      } else if (auto known = kept.extract(plugin);
                 !known.empty() && now - known.mapped().given_at <= keep) {
        known.mapped().fails = true;
        next.insert(std::move(known));
      }
    }
    for (const auto& [plugin, known] : next) {
      joined->insert(known.answer.begin(), known.answer.end());
    }
    kept = std::move(next);
    all = std::move(joined);
    latest = std::move(answered);
  }

  PluginFailures failures;
  const Duration keep;
  Mutex mutex;
  uint64_t begun QRM_GUARDED_BY(mutex) = 0;
  Time begun_at QRM_GUARDED_BY(mutex);
  uint64_t shown QRM_GUARDED_BY(mutex) = 0;
  std::map<std::string, Kept> kept QRM_GUARDED_BY(mutex);  // by plugin
  Known all QRM_GUARDED_BY(mutex);
  Known latest QRM_GUARDED_BY(mutex);
};

AllocatableCache::AllocatableCache(Plugins& plugins,
                                   prometheus::Family<prometheus::Counter>& errors, Duration keep)
    : plugins_(plugins), state_(std::make_shared<State>(errors, keep)) {}

void AllocatableCache::Refresh(Duration timeout) {
  const std::vector<PluginInfo> known = plugins_.List();
  std::vector<std::string> asked;
  uint64_t round = 0;
  {
    const MutexLock lock(state_->mutex);
    round = ++state_->begun;
    state_->begun_at = std::chrono::steady_clock::now();
    for (const PluginInfo& plugin : known) {
      if (!sdk::IsDriverResource(plugin.resource) &&
          (plugin.live || state_->kept.contains(plugin.resource))) {
        asked.push_back(plugin.resource);
      }
    }
  }
  state_->failures.Keep(asked);
  plugins_.AskAll<calls::GetAllocatable>(
      asked, {}, DeadlineAfter(timeout),
      [state = state_, round](ByPlugin<AllocatableByResource> answers) {
        for (const auto& [plugin, answer] : answers) {
          answer.ok() ? state->failures.Forget(plugin)
                      : state->failures.Add(plugin, answer.status());
        }
        const MutexLock lock(state->mutex);
        if (round > state->shown) {
          state->shown = round;
          state->Take(std::move(answers), std::chrono::steady_clock::now());
        }
      });
}

void AllocatableCache::RefreshIfOlder(Duration max_age, Duration timeout) {
  bool old = false;
  {
    const MutexLock lock(state_->mutex);
    old = std::chrono::steady_clock::now() - state_->begun_at >= max_age;
  }
  if (old) {
    Refresh(timeout);
  }
}

std::vector<std::string> AllocatableCache::Problems() const {
  return state_->failures.Sentences();
}

std::map<std::string, double> AllocatableCache::Ages() const {
  const auto now = std::chrono::steady_clock::now();
  std::map<std::string, double> ages;
  const MutexLock lock(state_->mutex);
  for (const auto& [plugin, known] : state_->kept) {
    const std::chrono::duration<double> age = known.fails ? now - known.given_at : Duration(0);
    ages.emplace(plugin, age.count());
  }
  return ages;
}

AllocatableCache::Known AllocatableCache::Load() const {
  const MutexLock lock(state_->mutex);
  return state_->all;
}

AllocatableCache::Known AllocatableCache::LoadLatest() const {
  const MutexLock lock(state_->mutex);
  return state_->latest;
}

}  // namespace qrm::manager
