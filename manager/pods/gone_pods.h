// Decides when an unlisted pod is gone.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "manager/reconcile/drift.h"

namespace qrm::manager {

/// Whether a list is from the runtime that has the known pods, or perhaps from another one.
enum class ListTrust { kOurs, kMaybeAnothers };

/// Remembers since when each known pod has been missing, and the cgroups of its containers.
///
/// Threads: one.
class GonePods {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `read_cpuset` returns kNotFound for a cgroup that is gone; empty: cgroups are not read.
  GonePods(CpusetSource read_cpuset, std::chrono::milliseconds gone_after);

  /// Forgets everything.
  void Reset();
  /// A container of the pod has this cgroup.
  void NoteCgroup(const std::string& pod_uid, const std::string& cgroups_path);

  /// The pods of `known` that are not in `listed` but may still exist at `now`. A list that is
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
