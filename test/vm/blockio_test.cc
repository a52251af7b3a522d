// Classes of block devices on cgroup v2, with two disks in one class.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/e2e/loop_disk.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/vm/machine_test.h"

namespace qrm::test::blockio_test {
namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::seconds kPatience{60};

// qrmd with classes slow (4 MiB/s) and fast (8 MiB/s) for both disks.
class BlockioTest : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    std::istringstream disks(FromEnvironment("QRM_VM_DISKS"));
    for (std::string disk; disks >> disk;) {
      disks_.push_back(disk);
      ids_.push_back(ReadLine("/sys/block/" + disk.substr(disk.rfind('/') + 1) + "/dev"));
    }
    ASSERT_EQ(disks_.size(), 2U);
    const std::string devices = "Devices: [\"" + disks_[0] + "\", \"" + disks_[1] + "\"]";
    std::ofstream(work_dir_ + "/blockio.yaml")
        << "Classes:\n  slow: [{" << devices << ", ThrottleWriteBps: 4Mi}]\n  fast: [{" << devices
        << ", ThrottleWriteBps: 8Mi}]\n";
    StartNode("qos-classes: true\nclass-types:\n  blockio:\n    config-file: " + work_dir_ +
                  "/blockio.yaml\n    classes: {slow: {namespaces: [\"*\"]}, fast: {namespaces: "
                  "[\"*\"]}}\n",
              "");
  }

  StatusOr<RunningPod> RunIn(const std::string& name, const std::string& blockio_class) {
    PodSpec spec{
        .name = name, .uid = "uid-" + name, .container = {.name = "main", .milli_cpus = 100}};
    if (!blockio_class.empty()) {
      spec.annotations["blockio.resources.alpha.kubernetes.io/default"] = blockio_class;
    }
    return Run(spec);
  }
  std::set<std::string> LimitsOf(const RunningPod& pod) {
    std::ifstream file(CpusetOf(pod).path + "/io.max");
    std::set<std::string> lines;
    for (std::string line; std::getline(file, line);) {
      lines.insert(line);
    }
    return lines;
  }
  std::set<std::string> BothAt(const std::string& rate) const {
    std::set<std::string> lines;
    for (const std::string& id : ids_) {
      lines.insert(fmt::format("{} rbps=max wbps={} riops=max wiops=max", id, rate));
    }
    return lines;
  }

  std::vector<std::string> disks_;
  std::vector<std::string> ids_;  // "254:64"
};

double Seconds(nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

TEST_F(BlockioTest, LimitsOfBothDisksSurviveAnUpdateOfCpusOverCri) {
  const auto pod = RunIn("web", "slow");
  ASSERT_TRUE(IsOk(pod.status()));
  ASSERT_EQ(LimitsOf(*pod), BothAt("4194304"));

  CgroupValues values = ValuesFor(pod->spec.container);
  values.cpu_shares = 512;
  ASSERT_TRUE(IsOk(kubelet_.Resize(pod->container_id, values, "1-2")));

  EXPECT_EQ(CpusetOf(*pod).cpus, (CpuSet{1, 2})) << "the update is there";
  EXPECT_EQ(LimitsOf(*pod), BothAt("4194304"));
}

TEST_F(BlockioTest, AChangeOfClassReachesBothDisksAndSurvivesAnUpdateOfCpusOverCri) {
  const auto pod = RunIn("web", "slow");
  ASSERT_TRUE(IsOk(pod.status()));

  ASSERT_TRUE(IsOk(node_->Qrmctl({"class", "set", "web", "main", "blockio=fast"}).status()));

  EXPECT_EQ(LimitsOf(*pod), BothAt("8388608"));
  ASSERT_TRUE(IsOk(kubelet_.Resize(pod->container_id, ValuesFor(pod->spec.container), "1-2")));
  EXPECT_TRUE(Await([&] { return LimitsOf(*pod) == BothAt("8388608"); }, kPatience));
}

// An emulated disk is slow, so only the upper limit is checked strictly.
TEST_F(BlockioTest, EachDiskIsWrittenAsFastAsTheClassAllows) {
  const auto slow = RunIn("slow", "slow");
  ASSERT_TRUE(IsOk(slow.status()));
  const auto free = RunIn("free", "");
  ASSERT_TRUE(IsOk(free.status()));
  for (const std::string& disk : disks_) {
    const auto throttled = DiskWriter(CpusetOf(*slow).path, disk, 16).Finish();
    const auto unbounded = DiskWriter(CpusetOf(*free).path, disk, 16).Finish();
    ASSERT_EQ(throttled.size(), 64U);
    ASSERT_EQ(unbounded.size(), 64U);
    std::cout << disk << ": 16 MiB in " << Seconds(throttled.back()) << " s in class slow, in "
              << Seconds(unbounded.back()) << " s without\n";
    EXPECT_GT(Seconds(throttled.back()), 3.6);
    EXPECT_LT(Seconds(throttled.back()), 8.0);
    EXPECT_LT(Seconds(unbounded.back()), Seconds(throttled.back()) / 2);
  }
}

TEST_F(BlockioTest, AChangeOfClassReachesAWriterUnderWay) {
  const auto pod = RunIn("web", "slow");
  ASSERT_TRUE(IsOk(pod.status()));
  DiskWriter writer(CpusetOf(*pod).path, disks_.back(), 24);
  ASSERT_TRUE(writer.AwaitWrites((8 << 20) / DiskWriter::kWriteBytes));

  ASSERT_TRUE(IsOk(node_->Qrmctl({"class", "set", "web", "main", "blockio=fast"}).status()));

  const auto writes = writer.Finish();
  ASSERT_EQ(writes.size(), 96U);
  std::cout << "24 MiB in " << Seconds(writes.back()) << " s with a change after 8 MiB\n";
  EXPECT_LT(Seconds(writes.back()), 5.9) << "6 s are what class slow takes";
  EXPECT_GT(Seconds(writes.back()), 3.6) << "8 MiB at 4 and 16 MiB at 8 take 4 s";
}

}  // namespace
}  // namespace qrm::test::blockio_test
