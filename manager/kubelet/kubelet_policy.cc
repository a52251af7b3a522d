// Reads the state files of kubelet's CPU and memory managers, and publishes what they last had.
#include "manager/kubelet/kubelet_policy.h"

#include <fstream>
#include <iterator>
#include <utility>

#include <sys/stat.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/foreign_json.h"
#include "api/base/log.h"

namespace qrm::manager {
namespace {

/// "policyName" of the state in `file`; empty if the file is not such a state.
std::string ReadPolicy(const std::string& file) {
  std::ifstream stream(file);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  const auto state = ParseJson(text).value_or(nlohmann::json());
  const auto name = state.is_object() ? state.find("policyName") : state.end();
  return state.is_object() && name != state.end() && name->is_string() ? name->get<std::string>()
                                                                       : std::string();
}

/// 5 minutes of housekeeping, as long as kubelet's longest back-off.
constexpr int kPatientLooks = 60;

}  // namespace

KubeletPolicy::KubeletPolicy(const std::string& state_dir) {
  if (state_dir.empty()) {
    return;
  }
  managers_ = {{.resource = "cpu",
                .file = state_dir + "/cpu_manager_state",
                .word = "static",
                .what = "CPU",
                .remedy = "cpuManagerPolicy: none"},
               {.resource = "memory",
                .file = state_dir + "/memory_manager_state",
                .word = "Static",
                .what = "memory",
                .remedy = "memoryManagerPolicy: None"}};
}

void KubeletPolicy::Refresh(Manager& manager) {
  struct stat found{};
  if (::stat(manager.file.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) {
    manager.policy.clear();
    manager.inode = 0;
    return;
  }
  outdated_ = outdated_ || found.st_nlink == 0;
  const int64_t modified =
      static_cast<int64_t>(found.st_mtim.tv_sec) * 1'000'000'000 + found.st_mtim.tv_nsec;
  if (manager.inode != found.st_ino || manager.modified_nanos != modified) {
    manager.inode = found.st_ino;
    manager.modified_nanos = modified;
    manager.policy = ReadPolicy(manager.file);
  }
}

std::map<std::string, std::string> KubeletPolicy::Conflicts() {
  std::map<std::string, std::string> conflicts;
  outdated_ = false;
  for (Manager& manager : managers_) {
    Refresh(manager);
    if (manager.policy == manager.word) {
      conflicts[manager.resource] = fmt::format(
          "cannot pin containers: kubelet's {} manager does, with policy {} ({}); set {} in "
          "kubelet's configuration, remove the state file and restart kubelet; or run qrmd without "
          "the plugin of {} (builtin-plugins, then qrmctl plugins forget {})",
          manager.what, manager.policy, manager.file, manager.remedy, manager.resource,
          manager.resource);
    }
  }
  return conflicts;
}

KubeletWatch::News KubeletWatch::Look() {
  std::map<std::string, std::string> pinned = policy_.Conflicts();
  {
    const MutexLock lock(mutex_);
    pinned_ = std::move(pinned);
  }
  const std::vector<std::string> before = std::exchange(told_, conflicts());
  if (told_ == before) {
    return TellsOutdated() ? News::kOutdated : News::kNone;
  }
  for (const std::string& conflict : told_) {
    log::Error("standing aside for kubelet", {{"error", conflict}});
  }
  if (!told_.empty()) {
    return News::kNone;
  }
  log::Info("kubelet no longer pins what a plugin serves");
  return News::kFree;
}

bool KubeletWatch::TellsOutdated() {
  if (!policy_.outdated()) {
    outdated_looks_ = 0;
    return false;
  }
  ++outdated_looks_;
  return told_.empty() || outdated_looks_ >= kPatientLooks;
}

std::vector<std::string> KubeletWatch::conflicts() const {
  std::map<std::string, std::string> pinned;
  {
    const MutexLock lock(mutex_);
    pinned = pinned_;
  }
  std::vector<std::string> conflicts;
  for (const auto& [resource, conflict] : pinned) {
    if (is_served_(resource)) {
      conflicts.push_back(conflict);
    }
  }
  return conflicts;
}

}  // namespace qrm::manager
