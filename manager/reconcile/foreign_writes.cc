// Remembers the foreign values that were seen, so that each is logged once.
#include "manager/reconcile/foreign_writes.h"

#include <chrono>

#include "api/base/log.h"

namespace qrm::manager {
namespace {

/// Limits the table when a process keeps writing new values; further values are only counted.
constexpr std::size_t kMaxValuesLogged = 16;

}  // namespace

void ForeignWrites::Note(const ForeignWrite& write, Time now) {
  bool news = false;
  {
    const MutexLock lock(mutex_);
    ++repairs_;
    Seen& seen = seen_[write.key];
    news = seen.values.size() < kMaxValuesLogged &&
           seen.values.insert(write.property + "=" + write.theirs).second;
    const uint64_t before = now - seen.at < kQuiet ? seen.writer.times : 0;
    seen.writer = {.latest = write, .times = before + 1};
    seen.at = now;
  }
  if (news) {
    log::Warning("drift corrected", {{"pod", write.key.pod_uid},
                                     {"container", write.key.container},
                                     {"property", write.property},
                                     {"theirs", write.theirs},
                                     {"ours", write.ours}});
    on_news_(write);
  }
}

std::vector<LastingWriter> ForeignWrites::Lasting(Time now) const {
  std::vector<LastingWriter> lasting;
  const MutexLock lock(mutex_);
  for (const auto& [key, seen] : seen_) {
    if (seen.writer.times >= kLasting && now - seen.at < kQuiet) {
      lasting.push_back(seen.writer);
    }
  }
  return lasting;
}

void ForeignWrites::Forget(const ContainerKey& key) {
  const MutexLock lock(mutex_);
  seen_.erase(key);
}

uint64_t ForeignWrites::repairs() const {
  const MutexLock lock(mutex_);
  return repairs_;
}

}  // namespace qrm::manager
