// Decides by the time since a pod was last listed, and by the cgroups of its containers.
#include "manager/pods/gone_pods.h"

#include <utility>

namespace qrm::manager {

GonePods::GonePods(CpusetSource read_cpuset, std::chrono::milliseconds gone_after)
    : read_cpuset_(std::move(read_cpuset)), gone_after_(gone_after) {}

void GonePods::Reset() {
  missing_since_.clear();
  cgroups_.clear();
}

void GonePods::NoteCgroup(const std::string& pod_uid, const std::string& cgroups_path) {
  if (!cgroups_path.empty()) {
    cgroups_[pod_uid].insert(cgroups_path);
  }
}

std::set<std::string> GonePods::Doubtful(const std::set<std::string>& known,
                                         const std::set<std::string>& listed, Time now,
                                         ListTrust trust) {
  std::erase_if(missing_since_, [&](const auto& entry) {
    return listed.contains(entry.first) || !known.contains(entry.first);
  });
  const bool list_proves = !listed.empty() && trust == ListTrust::kOurs;
  std::set<std::string> doubtful;
  for (const std::string& uid : known) {
    if (!listed.contains(uid) && MayBeThere(uid, list_proves, now)) {
      doubtful.insert(uid);
    }
  }
  std::erase_if(cgroups_, [&](const auto& entry) {
    return !listed.contains(entry.first) && !doubtful.contains(entry.first);
  });
  return doubtful;
}

bool GonePods::MayBeThere(const std::string& pod_uid, bool list_proves, Time now) {
  const Time since = missing_since_.try_emplace(pod_uid, now).first->second;
  const Evidence evidence = EvidenceOf(pod_uid);
  return now - since < gone_after_ || evidence == Evidence::kThere ||
         (!list_proves && evidence == Evidence::kNone);
}

GonePods::Evidence GonePods::EvidenceOf(const std::string& pod_uid) const {
  const auto found = cgroups_.find(pod_uid);
  if (read_cpuset_ == nullptr || found == cgroups_.end()) {
    return Evidence::kNone;
  }
  for (const std::string& path : found->second) {
    if (read_cpuset_(path).status().code() != StatusCode::kNotFound) {
      return Evidence::kThere;
    }
  }
  return Evidence::kGone;
}

}  // namespace qrm::manager
