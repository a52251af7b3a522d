// Memory of pods that the kernel keeps for them: classes of memory-protection on cgroup v2.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "test/support/is_ok.h"
#include "test/vm/machine_test.h"

namespace qrm::test::protection_test {
namespace {

constexpr int64_t kMebibyte = 1 << 20;
constexpr int64_t kCached = 32 * kMebibyte;

// qrmd with two classes: the memory of db is never taken, that of web only down to a page.
class ProtectionTest : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    std::ofstream(work_dir_ + "/protection.yaml")
        << "classes:\n  db: {memory.min: 64Mi, memory.low: 128Mi}\n  web: {memory.low: 4Ki}\n";
    StartNode(
        "qos-classes: true\nclass-types:\n  memory-protection:\n    config-file: " + work_dir_ +
            "/protection.yaml\n    classes: {db: {namespaces: [\"*\"]}, web: {namespaces: "
            "[\"*\"]}}\n",
        "");
  }

  RunningPod RunIn(const std::string& name, const std::string& protection) {
    PodSpec spec = Guaranteed(name, 1, 256);
    if (!protection.empty()) {
      spec.annotations["memory-protection.resources.qrm.io/pod"] = protection;
    }
    auto pod = Run(spec);
    EXPECT_TRUE(IsOk(pod.status()));
    return pod.ok() ? *std::move(pod) : RunningPod{.spec = spec};
  }

  std::string PodsCgroup(const RunningPod& pod) {
    return std::filesystem::path(CpusetOf(pod).path).parent_path();
  }
  /// "memory.min memory.low" of the pod's cgroup.
  std::string ProtectionOf(const RunningPod& pod) {
    return ReadLine(PodsCgroup(pod) + "/memory.min") + " " +
           ReadLine(PodsCgroup(pod) + "/memory.low");
  }
  /// What the page cache has of files that the pod's container read or wrote.
  int64_t CachedBy(const RunningPod& pod) {
    std::ifstream stat(CpusetOf(pod).path + "/memory.stat");
    int64_t bytes = 0;
    for (std::string name; stat >> name >> bytes;) {
      if (name == "file") {
        return bytes;
      }
    }
    return -1;
  }
  /// A process of the container writes a file of kCached bytes to the disk.
  void WriteFile(const RunningPod& pod) {
    const std::string procs = CpusetOf(pod).path + "/cgroup.procs";
    const std::string file = FromEnvironment("QRM_VM_STATE") + "/" + pod.spec.name;
    const std::vector<char> part(kMebibyte, 'x');
    const pid_t writer = ::fork();
    ASSERT_GE(writer, 0);
    if (writer == 0) {
      const int group = ::open(procs.c_str(), O_WRONLY);
      const int out = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      bool good = ::write(group, "0", 1) == 1;
      for (int64_t written = 0; good && written < kCached; written += kMebibyte) {
        good = ::write(out, part.data(), part.size()) == kMebibyte;
      }
      ::_exit(good && ::fsync(out) == 0 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(writer, &status, 0), writer);
    ASSERT_EQ(status, 0) << "cannot write " << file << " in " << procs;
    ASSERT_GT(CachedBy(pod), kCached * 9 / 10);
  }
  /// The kernel takes what it may from all pods, as if the node were short of memory.
  void TakeMemory(const RunningPod& any) {
    const std::string all = std::filesystem::path(PodsCgroup(any)).parent_path();
    ASSERT_TRUE(std::filesystem::exists(all + "/memory.reclaim"));
    // An error where less can be taken.
    std::ofstream(all + "/memory.reclaim") << 4 * kCached;
  }
};

TEST_F(ProtectionTest, TheKernelTakesMemoryFromPodsWithoutTheClass) {
  const RunningPod db = RunIn("db", "db");
  const RunningPod other = RunIn("other", "");
  EXPECT_EQ(ProtectionOf(db), "67108864 134217728");
  EXPECT_EQ(ProtectionOf(other), "0 0");
  WriteFile(db);
  WriteFile(other);

  TakeMemory(db);

  std::cout << "of " << kCached << " bytes, the pod of class db keeps " << CachedBy(db)
            << ", the other " << CachedBy(other) << "\n";
  EXPECT_GT(CachedBy(db), kCached * 9 / 10);
  EXPECT_LT(CachedBy(other), kCached / 2);
}

TEST_F(ProtectionTest, AChangeOfClassReachesARunningPod) {
  const RunningPod db = RunIn("db", "db");
  WriteFile(db);

  ASSERT_TRUE(IsOk(node_->Qrmctl({"class", "set", "db", "memory-protection=web"}).status()));

  EXPECT_EQ(ProtectionOf(db), "0 4096");
  TakeMemory(db);
  EXPECT_LT(CachedBy(db), kCached / 2);
}

}  // namespace
}  // namespace qrm::test::protection_test
