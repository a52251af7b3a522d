// Compares cpusets of cgroups that have processes.
#include "test/e2e/cpuset_watcher.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "api/base/clock.h"

namespace qrm::test {

namespace fs = std::filesystem;

namespace {

bool HasProcesses(const fs::path& cgroup) {
  std::ifstream file(cgroup / "cgroup.procs");
  int pid = 0;
  return static_cast<bool>(file >> pid);
}

CpuSet CpusOf(const fs::path& cgroup) {
  std::ifstream file(cgroup / "cpuset.cpus");
  std::string list;
  std::getline(file, list);
  return CpuSet::Parse(list).value_or(CpuSet());
}

}  // namespace

fs::path CpusetsBelow(const std::string& parent) {
  const fs::path v1 = "/sys/fs/cgroup/cpuset" + parent;
  return fs::exists(v1) ? v1 : fs::path("/sys/fs/cgroup" + parent);
}

CpusetWatcher::CpusetWatcher(Watched watched)
    : watched_(std::move(watched)), thread_([this] { Run(); }) {}

CpusetWatcher::~CpusetWatcher() {
  if (thread_.joinable()) {
    Stop();
  }
}

void CpusetWatcher::Stop() {
  {
    MutexLock lock(mutex_);
    is_stopped_ = true;
  }
  stopped_.NotifyAll();
  thread_.join();
}

void CpusetWatcher::Run() {
  MutexLock lock(mutex_);
  while (!stopped_.WaitUntil(mutex_, DeadlineAfter(std::chrono::milliseconds(1)),
                             [this]() QRM_REQUIRES(mutex_) { return is_stopped_; })) {
    Look();
  }
}

void CpusetWatcher::Look() {
  std::map<std::string, CpuSet> cpus;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(watched_.root, error);
       entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_directory(error) && HasProcesses(entry->path())) {
      cpus[entry->path()] = CpusOf(entry->path());
    }
  }
  const auto owner = std::find_if(cpus.begin(), cpus.end(), [this](const auto& one) {
    return one.first.find(watched_.owner) != std::string::npos &&
           one.second.Count() == watched_.cpus;
  });
  if (owner == cpus.end()) {
    return;
  }
  ++looks_at_owner_;
  for (const auto& [path, others] : cpus) {
    if (IsOther(path) && others.Intersects(owner->second)) {
      overlaps_.push_back(fmt::format("{} has {}", path, ToString(others)));
    }
  }
}

bool CpusetWatcher::IsOther(const std::string& path) const {
  return std::any_of(watched_.others.begin(), watched_.others.end(),
                     [&path](const std::string& id) { return path.find(id) != std::string::npos; });
}

}  // namespace qrm::test
