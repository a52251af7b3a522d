// CPUs that change their owner, by what the kernel's cpusets say all the time: nobody else has them
// from the moment on in which their new owner's cgroup is there.
// Beside a real containerd; scripts/containerd.sh starts it and this test.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/id_set.h"
#include "test/e2e/beside_containerd.h"
#include "test/e2e/kubelet.h"
#include "test/e2e/node.h"
#include "test/support/environment.h"
#include "test/support/is_ok.h"

namespace qrm::test {
namespace {

namespace fs = std::filesystem;

/// Reads the cpusets of containers below a directory, once a millisecond.
class Watcher {
 public:
  /// `owner` is in the path of the new owner's cgroup, and of its sandbox's, which has all CPUs;
  /// `others` are the ids of containers.
  Watcher(fs::path root, std::string owner, std::vector<std::string> others)
      : root_(std::move(root)),
        owner_(std::move(owner)),
        others_(std::move(others)),
        thread_([this] { Run(); }) {}
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  ~Watcher() {
    if (thread_.joinable()) {
      Stop();
    }
  }

  /// What was seen until now is complete then.
  void Stop() {
    {
      MutexLock lock(mutex_);
      is_stopped_ = true;
    }
    stopped_.NotifyAll();
    thread_.join();
  }
  // After Stop.
  int looks_at_owner() const { return looks_at_owner_; }
  const std::vector<std::string>& overlaps() const { return overlaps_; }

 private:
  void Run() {
    MutexLock lock(mutex_);
    while (!stopped_.WaitUntil(mutex_, DeadlineAfter(std::chrono::milliseconds(1)),
                               [this]() QRM_REQUIRES(mutex_) { return is_stopped_; })) {
      Look();
    }
  }
  void Look() {
    std::map<std::string, CpuSet> cpus;
    std::error_code error;
    for (auto entry = fs::recursive_directory_iterator(root_, error);
         entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      if (entry->is_directory(error) && HasProcesses(entry->path())) {
        cpus[entry->path()] = CpusOf(entry->path());
      }
    }
    const auto owner = std::find_if(cpus.begin(), cpus.end(), [this](const auto& one) {
      return one.first.find(owner_) != std::string::npos && one.second.Count() == 1;
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
  bool IsOther(const std::string& path) const {
    return std::any_of(others_.begin(), others_.end(), [&path](const std::string& id) {
      return path.find(id) != std::string::npos;
    });
  }
  static bool HasProcesses(const fs::path& cgroup) {
    std::ifstream file(cgroup / "cgroup.procs");
    int pid = 0;
    return static_cast<bool>(file >> pid);
  }
  static CpuSet CpusOf(const fs::path& cgroup) {
    std::ifstream file(cgroup / "cpuset.cpus");
    std::string list;
    std::getline(file, list);
    return CpuSet::Parse(list).value_or(CpuSet());
  }

  const fs::path root_;
  const std::string owner_;
  const std::vector<std::string> others_;
  Mutex mutex_;
  CondVar stopped_;
  bool is_stopped_ QRM_GUARDED_BY(mutex_) = false;
  int looks_at_owner_ = 0;
  std::vector<std::string> overlaps_;
  std::thread thread_;
};

class HandOverContainerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(work_dir_, "") << "run by scripts/containerd.sh";
    std::ofstream(work_dir_ + "/hand-over-qrmd.yaml") << "plugins: {cpu: {static: true}}\n";
    ASSERT_TRUE(IsOk(node_.Start(1)));
  }
  void TearDown() override {
    EXPECT_TRUE(IsOk(kubelet_.RemoveAllPods()));
    EXPECT_TRUE(IsOk(node_.Stop()));
  }
  fs::path Cgroups() const {
    const std::string parent = FromEnvironment("QRM_CGROUP_PARENT");
    const fs::path v1 = "/sys/fs/cgroup/cpuset" + parent;
    return fs::exists(v1) ? v1 : fs::path("/sys/fs/cgroup" + parent);
  }

  const std::string work_dir_ = FromEnvironment("QRM_WORK_DIR");
  Kubelet kubelet_{KubeletBesideContainerd()};
  Node node_{QrmdBesideContainerd("hand-over", {.builtin_plugins = "cpu"})};
};

// So many that the runtime needs longer for their updates than for making the owner.
constexpr int kShared = 32;

TEST_F(HandOverContainerTest, NobodyElseHasTheCpusOfAContainerFromItsCreationOn) {
  std::vector<std::string> shared;
  for (int i = 0; i < kShared; ++i) {
    const std::string name = fmt::format("shared{}", i);
    const auto pod = kubelet_.RunPod(
        {.name = name, .uid = "uid-" + name, .container = {.name = "main", .milli_cpus = 10}});
    ASSERT_TRUE(IsOk(pod.status()));
    shared.push_back(pod->container_id);
  }
  for (int i = 0; i < 3; ++i) {
    const std::string uid = fmt::format("uid-owner{}", i);
    Watcher watcher(Cgroups(), uid, shared);
    const auto owner = kubelet_.RunPod(
        {.name = fmt::format("owner{}", i),
         .uid = uid,
         .container = {
             .name = "main", .milli_cpus = 1000, .memory_bytes = 64 << 20, .cpu_limit = true}});
    ASSERT_TRUE(IsOk(owner.status()));
    watcher.Stop();
    EXPECT_GT(watcher.looks_at_owner(), 0) << "it has no CPU for itself";
    EXPECT_EQ(watcher.overlaps(), std::vector<std::string>()) << "round " << i;
    ASSERT_TRUE(IsOk(kubelet_.RemovePod(*owner)));
  }
}

}  // namespace
}  // namespace qrm::test
