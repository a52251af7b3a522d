// The specs that one source has told, and who waits for more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "manager/demand/pod_spec.h"

namespace qrm::manager {

/// Specs by the UID of the pod, and mirrors of static pods also by what kubelet runs.
///
/// Threads: any.
class SpecCache {
 public:
  /// A node has a few hundred pods; a source that tells more than this is wrong.
  static constexpr std::size_t kMaxPods = 10'000;

  using Gone = std::function<void(const std::string& uid)>;

  /// `on_gone` hears of each pod that the source has no more, on the thread that brings it.
  explicit SpecCache(Gone on_gone = [](const std::string&) {}) : on_gone_(std::move(on_gone)) {}

  /// Null when unknown.
  PodSpecPtr Find(const std::string& uid) const;
  /// As SpecSource::FindMirror.
  PodSpecPtr FindMirror(const std::string& static_uid, const std::string& pod_namespace,
                        const std::string& name) const;
  std::size_t size() const;
  /// As SpecSource::revision.
  uint64_t revision() const;

  /// Replaces the spec of the same pod. False when there are too many.
  bool Put(PodSpec spec);
  void Remove(const std::string& uid);
  void Replace(std::vector<PodSpec> specs);

  /// Between the two, the source tells all it has; EndSync forgets what it did not tell again.
  void BeginSync();
  void EndSync();

  /// False when it is looked for already.
  bool BeginLookup(const std::string& uid);
  void EndLookup(const std::string& uid);
  /// Until then, every pod counts as one that is looked for.
  void SetSettled();

  /// As SpecSource::AfterLooking: `done` runs on the thread that ends the looking.
  void AfterLooking(const std::string& uid, Deadline deadline, std::function<void()> done);

 private:
  void RemoveLocked(const std::string& uid) QRM_REQUIRES(mutex_);
  bool IsLookedFor(const std::string& uid) const QRM_REQUIRES(mutex_);
  void RunEnded();

  /// Static UID, namespace and name.
  using StaticPod = std::tuple<std::string, std::string, std::string>;

  struct Waiter {
    std::string uid;
    Deadline deadline;
    std::function<void()> done;
  };

  const Gone on_gone_;
  mutable Mutex mutex_;
  bool settled_ QRM_GUARDED_BY(mutex_) = false;
  uint64_t revision_ QRM_GUARDED_BY(mutex_) = 0;
  std::map<std::string, PodSpecPtr> specs_ QRM_GUARDED_BY(mutex_);
  std::map<StaticPod, std::string> uid_of_mirror_ QRM_GUARDED_BY(mutex_);
  std::set<std::string> looked_for_ QRM_GUARDED_BY(mutex_);
  std::vector<Waiter> waiters_ QRM_GUARDED_BY(mutex_);
  std::set<std::string> not_told_again_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
