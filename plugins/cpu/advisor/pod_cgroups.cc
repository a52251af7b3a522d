// Finds pods' cgroups by their names, and reads two counters of each.
#include "plugins/cpu/advisor/pod_cgroups.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/number.h"

namespace qrm::cpu {
namespace {

namespace fs = std::filesystem;

/// Kubelet's own cgroup, and the cgroups in it that are not of pods.
constexpr std::string_view kParents[] = {
    "kubepods.slice",
    "kubepods.slice/kubepods-burstable.slice",
    "kubepods.slice/kubepods-besteffort.slice",
    "kubepods",
    "kubepods/burstable",
    "kubepods/besteffort",
};

/// The UID in the name of a pod's cgroup: "podUID", or systemd's "kubepods-burstable-podUID.slice"
/// with "_" for "-". Empty for others.
std::string UidIn(std::string_view name) {
  constexpr std::string_view kSlice = ".slice";
  const bool by_systemd = name.ends_with(kSlice);
  if (by_systemd) {
    name.remove_suffix(kSlice.size());
  }
  const auto pod = name.rfind("pod");
  if (pod == std::string_view::npos || (pod > 0 && name[pod - 1] != '-')) {
    return "";
  }
  std::string uid(name.substr(pod + 3));
  if (by_systemd) {
    std::replace(uid.begin(), uid.end(), '_', '-');
  }
  return uid;
}

/// The number after the first `label` in the file at `path`.
std::optional<int64_t> NumberBehind(const std::string& path, const std::string& label) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    if (word == label && file >> word) {
      return ParseNumber<int64_t>(word);
    }
    if (word.starts_with(label + "=")) {
      return ParseNumber<int64_t>(std::string_view(word).substr(label.size() + 1));
    }
  }
  return std::nullopt;
}

}  // namespace

std::map<std::string, std::string> PodCgroups::Find(const std::set<std::string>& pods) const {
  std::map<std::string, std::string> paths;
  for (const std::string_view parent : kParents) {
    std::error_code error;
    for (fs::directory_iterator at(fs::path(root_) / parent, error), end; !error && at != end;
         at.increment(error)) {
      const std::string uid = UidIn(at->path().filename().string());
      if (pods.contains(uid)) {
        paths[uid] = at->path().string();
      }
    }
  }
  return paths;
}

StatusOr<UseByPod> PodCgroups::Look(const std::set<std::string>& pods,
                                    std::chrono::steady_clock::time_point now) {
  std::error_code error;
  if (!fs::exists(fs::path(root_) / kParents[0], error) &&
      !fs::exists(fs::path(root_) / "kubepods", error)) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot measure the CPU use of pods: {} has no cgroups of kubelet; mount the "
                  "node's cgroup v2 hierarchy, or set advisor.use.cgroup-root",
                  root_);
  }
  const auto elapsed =
      std::chrono::duration_cast<std::chrono::microseconds>(now - std::exchange(looked_at_, now));
  UseByPod uses;
  std::map<std::string, Counters> seen;
  for (const auto& [uid, path] : Find(pods)) {
    const auto used = NumberBehind(path + "/cpu.stat", "usage_usec");
    if (!used.has_value()) {
      continue;  // it was just removed
    }
    const auto stalled = NumberBehind(path + "/cpu.pressure", "total");
    without_pressure_ =
        stalled.has_value()
            ? ""
            : fmt::format(
                  "pools are sized by use alone: {} has no cpu.pressure; use cgroup v2 and "
                  "a kernel with PSI (psi=1) to let pools grow while threads wait",
                  path);
    const Counters counters = {*used, stalled.value_or(0)};
    if (const auto before = before_.find(uid); before != before_.end() && elapsed.count() > 0) {
      const auto share = [&](int64_t later, int64_t earlier) {
        return static_cast<double>(std::max<int64_t>(later - earlier, 0)) /
               static_cast<double>(elapsed.count());
      };
      uses[uid] = {share(counters.used, before->second.used),
                   std::min(share(counters.stalled, before->second.stalled), 1.0)};
    }
    seen[uid] = counters;
  }
  before_ = std::move(seen);
  return uses;
}

}  // namespace qrm::cpu
