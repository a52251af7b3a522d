// The resctrl group of each thread of this machine, for a kernel without resctrl.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "api/base/mutex.h"

namespace qrm::test {

/// A control group and a monitoring group in it, empty for the root group and for none.
struct ThreadGroup {
  std::string control;
  std::string monitor;

  bool operator==(const ThreadGroup&) const = default;
};

/// Real threads, each in one group. A thread that was not moved is in the group that its creator
/// had when it was created, by /proc. A fork copies its creator's group before its child has a
/// number and shows up. So a child that got its number within a millisecond of its creator's move
/// may count as begun before it; a later child never does. A thread whose creator is gone is in the
/// root group.
///
/// Threads: any.
class ThreadGroups {
 public:
  /// Looks for new threads below this cgroup before each change, so that they inherit what their
  /// creators have now.
  void Watch(std::string cgroup_directory);

  /// Moves one thread. False when there is no such thread.
  bool Move(pid_t thread, ThreadGroup group);
  /// False when there is no such thread.
  bool Find(pid_t thread, ThreadGroup& group);
  /// The threads of `group` that live.
  std::vector<pid_t> In(const ThreadGroup& group);
  /// All threads of `from` go to `to`, as when `from` is removed.
  void MoveAll(const ThreadGroup& from, const ThreadGroup& to);
  void Reset();

 private:
  struct Entry {
    ThreadGroup group;
    ThreadGroup before;  ///< where it was before its last move
    uint64_t moved = 0;  ///< clock ticks since boot
    pid_t last = 0;  ///< a thread up to this number counts as begun before its creator was moved
  };

  /// Threads with present numbers may be forks that were under way when their creators moved.
  void CountForksUnderWay() QRM_REQUIRES(mutex_);
  void FindNew() QRM_REQUIRES(mutex_);
  Entry* Adopt(pid_t thread) QRM_REQUIRES(mutex_);

  Mutex mutex_;
  std::set<std::string> watched_ QRM_GUARDED_BY(mutex_);
  std::map<pid_t, Entry> entries_ QRM_GUARDED_BY(mutex_);
  /// Recently moved threads, and until when their forks can still come from before.
  std::map<pid_t, std::chrono::steady_clock::time_point> under_way_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::test
