// Remembers the foreign values that were seen, so that each is logged once.
#include "manager/reconcile/foreign_writes.h"

#include "api/base/log.h"

namespace qrm::manager {
namespace {

/// Limits the table when a process keeps writing new values; further values are only counted.
constexpr std::size_t kMaxValuesLogged = 16;

}  // namespace

void ForeignWrites::Note(const ForeignWrite& write) {
  bool news = false;
  {
    const MutexLock lock(mutex_);
    ++repairs_;
    std::set<std::string>& values = seen_[write.key];
    news = values.size() < kMaxValuesLogged &&
           values.insert(write.property + "=" + write.theirs).second;
  }
  if (news) {
    log::Warning("cpuset drift corrected", {{"pod", write.key.pod_uid},
                                            {"container", write.key.container},
                                            {"property", write.property},
                                            {"theirs", write.theirs},
                                            {"ours", write.ours}});
    on_news_(write);
  }
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
