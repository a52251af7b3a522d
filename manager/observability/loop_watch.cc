// Keeps at most one job in each loop.
#include "manager/observability/loop_watch.h"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace qrm::manager {

struct LoopWatch::Watched {
  Loop loop;
  std::optional<Time> posted_at = std::nullopt;      // of the latest job
  std::shared_ptr<std::atomic<bool>> ran = nullptr;  // whether that job has run
};

LoopWatch::~LoopWatch() = default;

LoopWatch::LoopWatch(std::vector<Loop> loops) {
  for (Loop& loop : loops) {
    watched_.push_back({.loop = std::move(loop)});
  }
}

std::vector<std::string> LoopWatch::Look(Time now) {
  std::vector<std::string> stalled;
  std::vector<std::function<void()>> posts;
  {
    const MutexLock lock(mutex_);
    for (Watched& watched : watched_) {
      if (watched.posted_at.has_value() && !*watched.ran) {
        const auto waits =
            std::chrono::duration_cast<std::chrono::seconds>(now - *watched.posted_at);
        if (waits >= kLimit) {
          stalled.push_back(fmt::format("the {} has not run for {} s; restart qrmd",
                                        watched.loop.name, waits.count()));
        }
        continue;
      }
      watched.posted_at = now;
      watched.ran = std::make_shared<std::atomic<bool>>(false);
      posts.emplace_back(
          [post = watched.loop.post, ran = watched.ran] { post([ran] { *ran = true; }); });
    }
  }
  for (const std::function<void()>& post : posts) {  // without the lock: a loop may take its own
    post();
  }
  return stalled;
}

}  // namespace qrm::manager
