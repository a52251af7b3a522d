// Joins the plugins' answers, and drops answers that arrive after the cache's end.
#include "manager/podresources/allocatable_cache.h"

#include <utility>

#include "manager/podresources/plugin_failures.h"
#include "manager/registry/plugins.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::manager {

struct AllocatableCache::State {
  explicit State(prometheus::Family<prometheus::Counter>& errors)
      : failures("its allocatable resources", errors) {}

  PluginFailures failures;
  Mutex mutex;
  uint64_t begun QRM_GUARDED_BY(mutex) = 0;
  std::chrono::steady_clock::time_point begun_at QRM_GUARDED_BY(mutex);
  uint64_t shown QRM_GUARDED_BY(mutex) = 0;
  std::shared_ptr<const AllocatableByResource> latest QRM_GUARDED_BY(mutex);
};

AllocatableCache::AllocatableCache(Plugins& plugins,
                                   prometheus::Family<prometheus::Counter>& errors)
    : plugins_(plugins), state_(std::make_shared<State>(errors)) {}

void AllocatableCache::Refresh(std::chrono::steady_clock::duration timeout) {
  uint64_t round = 0;
  {
    const MutexLock lock(state_->mutex);
    round = ++state_->begun;
    state_->begun_at = std::chrono::steady_clock::now();
  }
  plugins_.AskAll<calls::GetAllocatable>(
      plugins_.Live(
          [](const PluginInfo& plugin) { return !sdk::IsDriverResource(plugin.resource); }),
      {}, DeadlineAfter(timeout), [state = state_, round](ByPlugin<AllocatableByResource> answers) {
        auto joined = std::make_shared<AllocatableByResource>();
        for (auto& [plugin, answer] : answers) {
          if (!answer.ok()) {
            state->failures.Add(plugin, answer.status());
            continue;
          }
          state->failures.Forget(plugin);
          joined->merge(*std::move(answer));
        }
        const MutexLock lock(state->mutex);
        if (round > state->shown) {
          state->shown = round;
          state->latest = std::move(joined);
        }
      });
}

void AllocatableCache::RefreshIfOlder(std::chrono::steady_clock::duration max_age,
                                      std::chrono::steady_clock::duration timeout) {
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

std::shared_ptr<const AllocatableByResource> AllocatableCache::Load() const {
  const MutexLock lock(state_->mutex);
  return state_->latest;
}

}  // namespace qrm::manager
