// Decides when an unlisted pod is gone.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "manager/reconcile/drift.h"

namespace qrm::manager {

/// Whose a list is: that of a runtime that knows the known pods, or perhaps of another one.
enum class ListTrust { kOurs, kMaybeAnothers };

/// Remembers since when each known pod is missing, and which cgroups its containers had.
///
/// Threads: one.
class GonePods {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `read_cpuset` tells by kNotFound that a cgroup is gone; empty: nobody looks.
  GonePods(CpusetSource read_cpuset, std::chrono::milliseconds gone_after);

  /// Forgets everything.
  void Reset();
  /// A container of the pod has this cgroup.
  void NoteCgroup(const std::string& pod_uid, const std::string& cgroups_path);

  /// Those of `known` that are not in `listed` but may still be there at `now`. A list that is
  /// empty, or perhaps another runtime's, proves nothing without the cgroups.
  std::set<std::string> Doubtful(const std::set<std::string>& known,
                                 const std::set<std::string>& listed, Time now,
                                 ListTrust trust = ListTrust::kOurs);

 private:
  enum class Evidence { kNone, kGone, kThere };
  Evidence EvidenceOf(const std::string& pod_uid) const;
  bool MayBeThere(const std::string& pod_uid, bool list_proves, Time now);

  const CpusetSource read_cpuset_;
  const std::chrono::milliseconds gone_after_;
  std::map<std::string, Time> missing_since_;
  std::map<std::string, std::set<std::string>> cgroups_;
};

}  // namespace qrm::manager
