// Classes from a pod's annotation to the speed of its writes, its threads and its cgroup's files,
// beside a real containerd; scripts/containerd.sh starts it and this test.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/resource.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/cgroup.h"
#include "test/e2e/beside_containerd.h"
#include "test/e2e/kubelet.h"
#include "test/e2e/loop_disk.h"
#include "test/e2e/node.h"
#include "test/support/await.h"
#include "test/support/environment.h"
#include "test/support/is_ok.h"

namespace qrm::test::class_test {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

constexpr char kBlkio[] = "/sys/fs/cgroup/blkio";
constexpr char kWriteBps[] = "blkio.throttle.write_bps_device";

double Seconds(nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// The most mebibytes that were written in any second.
double MostInOneSecond(const std::vector<nanoseconds>& writes) {
  std::size_t most = 0;
  for (auto first = writes.begin(); first != writes.end(); ++first) {
    const auto last = std::upper_bound(first, writes.end(), *first + seconds(1));
    most = std::max(most, static_cast<std::size_t>(last - first) - 1);
  }
  return static_cast<double>(most * DiskWriter::kWriteBytes) / (1 << 20);
}

/// A fifth of a CPU.
ContainerSpec Limited() {
  return {.name = "main", .milli_cpus = 200, .memory_bytes = 64 << 20, .cpu_limit = true};
}

// qrmd with classes slow (4 MiB/s), fast (8 MiB/s) and parts, whose glob matches a partition if the
// machine has one.
class ClassTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(work_dir_, "") << "run by scripts/containerd.sh";
    if (!std::filesystem::exists(std::string(kBlkio) + "/" + kWriteBps)) {
      GTEST_SKIP() << "cgroup v1 does not have blkio here";
    }
    auto disk = LoopDisk::Make(work_dir_ + "/disk", 64);
    if (disk.status().code() == StatusCode::kFailedPrecondition) {
      GTEST_SKIP() << MessageOf(disk.status());
    }
    ASSERT_TRUE(IsOk(disk.status()));
    disk_ = *std::move(disk);
    std::ofstream(work_dir_ + "/blockio.yaml")
        << "Classes:\n  slow: [{Devices: [" << disk_->path() << "], ThrottleWriteBps: 4Mi}]\n"
        << "  fast: [{Devices: [" << disk_->path() << "], ThrottleWriteBps: 8Mi}]\n";
    std::ofstream(work_dir_ + "/memory.yaml")
        << "classes: {low: {memory.soft_limit_in_bytes: 1Mi}, next: {memory.high: 1Mi}}\n";
    std::ofstream(work_dir_ + "/cpu.yaml") << "classes: {low: {nice: 7, policy: batch}}\n";
    std::ofstream(work_dir_ + "/oom.yaml") << "classes: {first: {oom_score_adj: 999}}\n";
    std::ofstream(work_dir_ + "/quota.yaml")
        << "classes: {free: {quota: none}, half: {burst: 50%}}\n";
    std::ofstream(work_dir_ + "/class-qrmd.yaml")
        << "qos-classes: true\nclass-types:\n  blockio:\n    config-file: " << work_dir_
        << "/blockio.yaml\n    classes: {slow: {namespaces: [\"*\"]}, fast: {capacity: 2}}\n"
        << "  memory: {config-file: " << work_dir_ << "/memory.yaml, classes: {low: {namespaces: "
        << "[\"*\"]}, next: {namespaces: [\"*\"]}}}\n  cpu-scheduling: {config-file: " << work_dir_
        << "/cpu.yaml, classes: {low: {namespaces: [\"*\"]}}}\n  oom: {config-file: " << work_dir_
        << "/oom.yaml, classes: {first: {namespaces: [\"*\"]}}}\n  cpu-quota: {config-file: "
        << work_dir_
        << "/quota.yaml, classes: {free: {namespaces: [\"*\"]}, half: {namespaces: [\"*\"]}}}\n";
    ASSERT_TRUE(IsOk(node_.Start(0)));
    started_ = true;
  }
  void TearDown() override {
    if (started_) {
      EXPECT_TRUE(IsOk(kubelet_.RemoveAllPods()));
      EXPECT_TRUE(IsOk(node_.Stop()));
    }
  }

  StatusOr<RunningPod> Run(const std::string& name, const std::string& asks) {
    return RunWith(name, asks.empty() ? StringMap() : StringMap{{"blockio", asks}});
  }
  StatusOr<RunningPod> RunWith(const std::string& name, const StringMap& classes,
                               const ContainerSpec& container = {.name = "main"}) {
    PodSpec spec{.name = name, .uid = "uid-" + name, .container = container};
    for (const auto& [type, asks] : classes) {
      spec.annotations[type + ".resources.alpha.kubernetes.io/default"] = asks;
    }
    return kubelet_.RunPod(spec);
  }
  pid_t PidOf(const RunningPod& pod) {
    const auto info = kubelet_.Inspect(pod.container_id);
    return info.ok() ? (*info)["pid"].get<pid_t>() : 0;
  }
  std::string DirectoryOf(const RunningPod& pod) {
    const auto info = kubelet_.Inspect(pod.container_id);
    return info.ok()
               ? kBlkio +
                     CgroupPath((*info)["runtimeSpec"]["linux"]["cgroupsPath"].get<std::string>())
               : MessageOf(info.status());
  }
  /// A Guaranteed pod of a fifth of a CPU whose cgroup has its quota, as kubelet makes it.
  StatusOr<RunningPod> RunLimited(const std::string& quota_class) {
    const std::filesystem::path cgroup =
        "/sys/fs/cgroup/cpu" + FromEnvironment("QRM_CGROUP_PARENT") + "/kubepods/poduid-limited";
    std::filesystem::create_directories(cgroup);
    std::ofstream(cgroup / "cpu.cfs_quota_us") << 20000;
    return RunWith("limited", {{"cpu-quota", quota_class}}, Limited());
  }
  /// What `file` says of the container, or of its pod, in the hierarchy of CPU bandwidth.
  std::string CpuFile(const RunningPod& pod, const std::string& file, bool of_pod = false) {
    const std::filesystem::path path =
        "/sys/fs/cgroup/cpu" + DirectoryOf(pod).substr(std::strlen(kBlkio));
    std::ifstream in((of_pod ? path.parent_path() : path) / file);
    std::string line;
    std::getline(in, line);
    return line;
  }
  std::string LimitOf(const RunningPod& pod) {
    std::ifstream file(DirectoryOf(pod) + "/" + kWriteBps);
    std::string line;
    std::getline(file, line);
    return line;
  }
  std::vector<nanoseconds> Write(const RunningPod& pod, std::size_t mebibytes) {
    return DiskWriter(DirectoryOf(pod), disk_->path(), mebibytes).Finish();
  }

  const std::string work_dir_ = FromEnvironment("QRM_WORK_DIR");
  std::unique_ptr<LoopDisk> disk_;
  bool started_ = false;
  Node node_{QrmdBesideContainerd("class", {.reconcile_period = "500ms"})};
  Kubelet kubelet_{KubeletBesideContainerd()};
};

TEST_F(ClassTest, AContainerWritesAsFastAsItsClassAllows) {
  const auto slow = Run("slow", "slow");
  ASSERT_TRUE(IsOk(slow.status()));
  const auto free = Run("free", "");
  ASSERT_TRUE(IsOk(free.status()));
  EXPECT_EQ(LimitOf(*slow), disk_->id() + " 4194304");

  const auto throttled = Write(*slow, 16);
  const auto unbounded = Write(*free, 16);

  ASSERT_EQ(throttled.size(), 64u);
  ASSERT_EQ(unbounded.size(), 64u);
  std::cout << "16 MiB: " << Seconds(throttled.back()) << " s in class slow, "
            << Seconds(unbounded.back()) << " s without\n";
  EXPECT_NEAR(Seconds(throttled.back()), 4.0, 0.4);
  EXPECT_LT(Seconds(unbounded.back()) * 10, Seconds(throttled.back()));
}

TEST_F(ClassTest, AChangeOfClassReachesAWriterUnderWay) {
  const auto pod = Run("web", "slow");
  ASSERT_TRUE(IsOk(pod.status()));
  DiskWriter writer(DirectoryOf(*pod), disk_->path(), 24);
  ASSERT_TRUE(writer.AwaitWrites((8 << 20) / DiskWriter::kWriteBytes));  // two seconds' worth

  const auto changed = node_.Qrmctl({"class", "set", "web", "main", "blockio=fast"});

  ASSERT_TRUE(IsOk(changed.status()));
  EXPECT_EQ(*changed, "blockio class: slow -> fast\n");
  EXPECT_EQ(LimitOf(*pod), disk_->id() + " 8388608");
  const auto writes = writer.Finish();
  ASSERT_EQ(writes.size(), 96u);
  std::cout << "24 MiB: " << Seconds(writes.back()) << " s with a change after 2 s; at most "
            << MostInOneSecond(writes) << " MiB in a second\n";
  EXPECT_NEAR(Seconds(writes.back()), 4.0, 0.5);
  // In some seconds the kernel lets 8.75 MiB through for a writer with 8 MiB/s from its start.
  EXPECT_LE(MostInOneSecond(writes), 8.0 * 1.1);
}

TEST_F(ClassTest, ALimitThatWasClearedWhileQrmdWasDeadIsBackAfterItsStart) {
  const auto pod = Run("web", "slow");
  ASSERT_TRUE(IsOk(pod.status()));
  node_.KillDaemon();
  std::ofstream(DirectoryOf(*pod) + "/" + kWriteBps) << disk_->id() << " 0";
  ASSERT_EQ(LimitOf(*pod), "");

  ASSERT_TRUE(IsOk(node_.Start(0)));

  ASSERT_TRUE(Await([&] { return LimitOf(*pod) == disk_->id() + " 4194304"; }));
  const auto writes = Write(*pod, 8);
  ASSERT_EQ(writes.size(), 32u);
  EXPECT_NEAR(Seconds(writes.back()), 2.0, 0.3);
}

TEST_F(ClassTest, ALimitThatAnotherProcessClearsIsPutBackAndCounted) {
  const auto pod = Run("web", "slow");
  ASSERT_TRUE(IsOk(pod.status()));
  std::ofstream(DirectoryOf(*pod) + "/" + kWriteBps) << disk_->id() << " 0";
  ASSERT_TRUE(Await([&] { return LimitOf(*pod) == disk_->id() + " 4194304"; }));
  EXPECT_TRUE(Await([&] {  // it is counted when it was read back
    const auto classes = node_.Qrmctl({"classes", "-o", "json"});
    return classes.ok() && classes->find("\"repairs\": 1") != std::string::npos;
  }));
}

TEST_F(ClassTest, RejectsAClassWithTheOnesThatTheNamespaceMayUse) {
  const Status refused = Run("web", "gold").status();
  EXPECT_THAT(MessageOf(refused),
              AllOf(HasSubstr("asks for blockio class gold"), HasSubstr("it may use slow")));
  const Status foreign = Run("other", "fast").status();
  EXPECT_THAT(MessageOf(foreign), HasSubstr("namespace default may not ask for it"));
}

TEST_F(ClassTest, TypesThatAreTablesHoldFromTheStartAndArePutBack) {
  const auto pod = RunWith("web", {{"memory", "low"}, {"cpu-scheduling", "low"}, {"oom", "first"}});
  ASSERT_TRUE(IsOk(pod.status()));
  const pid_t pid = PidOf(*pod);
  ASSERT_NE(pid, 0);
  const auto read = [](const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
  };
  const std::string path = DirectoryOf(*pod).substr(std::strlen(kBlkio));
  EXPECT_EQ(read("/sys/fs/cgroup/memory" + path + "/memory.soft_limit_in_bytes"), "1048576");
  EXPECT_EQ(read(fmt::format("/proc/{}/oom_score_adj", pid)), "999");
  EXPECT_EQ(::getpriority(PRIO_PROCESS, static_cast<id_t>(pid)), 7);
  EXPECT_EQ(::sched_getscheduler(pid), SCHED_BATCH);

  ASSERT_EQ(::setpriority(PRIO_PROCESS, static_cast<id_t>(pid), 0), 0);
  EXPECT_TRUE(Await([&] { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(pid)) == 7; }));
}

TEST_F(ClassTest, AQuotaIsLiftedFromTheStartAndAgainAfterAResizeInPlace) {
  const auto pod = RunLimited("free");
  ASSERT_TRUE(IsOk(pod.status()));
  EXPECT_EQ(CpuFile(*pod, "cpu.cfs_quota_us"), "-1");
  EXPECT_EQ(CpuFile(*pod, "cpu.cfs_quota_us", true), "-1") << "the pod's would bound it";
  ContainerSpec more = Limited();
  more.milli_cpus = 300;
  ASSERT_TRUE(IsOk(kubelet_.Resize(pod->container_id, ValuesFor(more))));
  EXPECT_TRUE(Await([&] { return CpuFile(*pod, "cpu.cfs_quota_us") == "-1"; }))
      << CpuFile(*pod, "cpu.cfs_quota_us");
}

TEST_F(ClassTest, BurstIsAPartOfTheQuotaAndFollowsIt) {
  const auto pod = RunLimited("half");
  ASSERT_TRUE(IsOk(pod.status()));
  EXPECT_EQ(CpuFile(*pod, "cpu.cfs_burst_us"), "10000");
  EXPECT_EQ(CpuFile(*pod, "cpu.cfs_burst_us", true), "10000");
  ContainerSpec less = Limited();
  less.milli_cpus = 150;
  ASSERT_TRUE(IsOk(kubelet_.Resize(pod->container_id, ValuesFor(less))));
  EXPECT_TRUE(Await([&] { return CpuFile(*pod, "cpu.cfs_burst_us") == "7500"; }))
      << CpuFile(*pod, "cpu.cfs_burst_us");
}

TEST_F(ClassTest, AKnobOfTheOtherCgroupVersionRejectsContainersThatAskForIt) {
  EXPECT_THAT(MessageOf(RunWith("web", {{"memory", "next"}}).status()),
              AllOf(HasSubstr("asks for memory class next"), HasSubstr("no memory.high"),
                    HasSubstr("it may use low")));
}

TEST_F(ClassTest, ATypeThatCannotChangeRejectsAChange) {
  ASSERT_TRUE(IsOk(RunWith("web", {{"oom", "first"}}).status()));
  EXPECT_THAT(MessageOf(node_.Qrmctl({"class", "set", "web", "main", "oom="}).status()),
              HasSubstr("oom cannot change while a container runs"));
}

TEST_F(ClassTest, AClassIsShownWithItsUsers) {
  ASSERT_TRUE(IsOk(Run("web", "slow").status()));
  const auto classes = node_.Qrmctl({"classes"});
  ASSERT_TRUE(IsOk(classes.status()));
  EXPECT_THAT(*classes, HasSubstr(std::string(kWriteBps) + " " + disk_->id() + " 4194304"));
  const auto pods = node_.Qrmctl({"pods"});
  ASSERT_TRUE(IsOk(pods.status()));
  EXPECT_THAT(*pods, HasSubstr("blockio:slow"));
}

}  // namespace
}  // namespace qrm::test::class_test
