// Reading cpusets and memory back, from trees as the kernel shows them.
#include "manager/runtime/cgroup_cpusets.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace qrm::manager::cgroup_cpusets_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class CgroupReaderTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    const std::string path = dir_ / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
  }
  void MakeV1() { Write("cgroup/cpuset/cpuset.cpus", "0-7\n"); }
  void MakeV2() { Write("cgroup/cgroup.controllers", "cpuset cpu memory\n"); }

  test::TempDir dir_;
  CgroupReader reader_{dir_ / "cgroup", dir_ / "proc"};
};

TEST_F(CgroupReaderTest, ReadsVersion1) {
  MakeV1();
  Write("cgroup/cpuset/kubepods/pod1/c1/cpuset.cpus", "2-3\n");
  Write("cgroup/cpuset/kubepods/pod1/c1/cpuset.mems", "0\n");
  const StatusOr<CgroupCpuset> cpuset = reader_.ReadByPath("/kubepods/pod1/c1");
  ASSERT_TRUE(cpuset.ok()) << cpuset.status();
  EXPECT_EQ(cpuset->cpus, (CpuSet{2, 3}));
  EXPECT_EQ(cpuset->mems, NumaMask{0});
}

TEST_F(CgroupReaderTest, ReadsEffectiveValueWhereVersion2HasNone) {
  MakeV2();
  Write("cgroup/pod1/c1/cpuset.cpus", "4-5\n");
  Write("cgroup/pod1/c1/cpuset.mems", "\n");
  Write("cgroup/pod1/c1/cpuset.mems.effective", "0-1\n");
  const StatusOr<CgroupCpuset> cpuset = reader_.ReadByPath("/pod1/c1");
  ASSERT_TRUE(cpuset.ok()) << cpuset.status();
  EXPECT_EQ(cpuset->cpus, (CpuSet{4, 5}));
  EXPECT_EQ(cpuset->mems, (NumaMask{0, 1}));
}

TEST_F(CgroupReaderTest, FindsScopeThatSystemdMade) {
  MakeV2();
  const std::string scope =
      "cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/"
      "cri-containerd-abc.scope/";
  Write(scope + "cpuset.cpus", "1\n");
  Write(scope + "cpuset.mems", "0\n");
  const StatusOr<CgroupCpuset> cpuset =
      reader_.ReadByPath("kubepods-burstable-pod1.slice:cri-containerd:abc");
  ASSERT_TRUE(cpuset.ok()) << cpuset.status();
  EXPECT_EQ(cpuset->cpus, CpuSet{1});
}

TEST_F(CgroupReaderTest, FindsCgroupOfProcessOnHybridMachine) {
  MakeV1();
  Write("proc/42/cgroup", "9:name=systemd:/x\n3:cpuset:/pod1/c1\n0::/elsewhere\n");
  Write("cgroup/cpuset/pod1/c1/cpuset.cpus", "6\n");
  Write("cgroup/cpuset/pod1/c1/cpuset.mems", "0\n");
  const StatusOr<CgroupCpuset> cpuset = reader_.ReadByPid(42);
  ASSERT_TRUE(cpuset.ok()) << cpuset.status();
  EXPECT_EQ(cpuset->cpus, CpuSet{6});
  EXPECT_EQ(cpuset->path, dir_ / "cgroup/cpuset/pod1/c1");
}

TEST_F(CgroupReaderTest, FindsCgroupOfProcessInVersion2) {
  MakeV2();
  Write("proc/42/cgroup", "0::/pod1/c1\n");
  Write("cgroup/pod1/c1/cpuset.cpus", "6\n");
  Write("cgroup/pod1/c1/cpuset.mems", "0\n");
  EXPECT_EQ(reader_.ReadByPid(42)->cpus, CpuSet{6});
}

TEST_F(CgroupReaderTest, FindsLimitsThatDifferInVersion2) {
  MakeV2();
  Write("cgroup/c1/cpu.max", "50000 100000\n");
  Write("cgroup/c1/memory.max", "8192\n");
  EXPECT_THAT(reader_.LimitsThatDiffer("/c1", {{"CpuQuota", "50000"},
                                               {"CpuPeriod", "100000"},
                                               {"CpuShares", "9"},
                                               {"MemoryLimitInBytes", "8200"}}),
              IsEmpty())
      << "memory is counted in pages, and runtimes translate shares in different ways";
  Write("cgroup/c1/cpu.max", "max 90000\n");
  Write("cgroup/c1/memory.max", "max\n");
  EXPECT_THAT(
      reader_.LimitsThatDiffer(
          "/c1", {{"CpuQuota", "50000"}, {"CpuPeriod", "100000"}, {"MemoryLimitInBytes", "8192"}}),
      ElementsAre(Pair("CpuPeriod", "90000"), Pair("CpuQuota", "-1"),
                  Pair("MemoryLimitInBytes", "-1")));
  EXPECT_THAT(reader_.LimitsThatDiffer(
                  "/c1", {{"CpuQuota", "-1"}, {"MemoryLimitInBytes", "0"}, {"CpusetCpus", "3"}}),
              IsEmpty());
  EXPECT_THAT(reader_.LimitsThatDiffer("/gone", {{"CpuQuota", "50000"}}), IsEmpty());
}

TEST_F(CgroupReaderTest, FindsLimitsThatDifferInVersion1) {
  Write("cgroup/cpu/cpu.shares", "1024\n");
  Write("cgroup/cpu/c1/cpu.shares", "512\n");
  Write("cgroup/cpu/c1/cpu.cfs_quota_us", "-1\n");
  Write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("cgroup/memory/c1/memory.limit_in_bytes", "9223372036854771712\n");
  Write("cgroup/memory/c1/memory.memsw.limit_in_bytes", "16384\n");
  EXPECT_THAT(reader_.LimitsThatDiffer("/c1", {{"CpuQuota", "-1"},
                                               {"CpuShares", "1024"},
                                               {"MemoryLimitInBytes", "-1"},
                                               {"MemorySwapLimitInBytes", "8192"}}),
              ElementsAre(Pair("CpuShares", "512"), Pair("MemorySwapLimitInBytes", "16384")));
}

TEST_F(CgroupReaderTest, ReadsAnonymousMemoryByNodeInVersion2) {
  MakeV2();
  Write("cgroup/pod1/c1/memory.numa_stat",
        "anon N0=8192 N1=0\nfile N0=4096 N1=4096\nanon_thp N0=0 N1=0\n");
  const auto bytes = reader_.ReadMemory("/pod1/c1");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, (std::map<int, uint64_t>{{0, 8192}, {1, 0}}));
}

TEST_F(CgroupReaderTest, ReadsAnonymousMemoryByNodeInVersion1) {
  Write("cgroup/memory/pod1/c1/memory.numa_stat",
        "total=5 N0=3 N1=2\nfile=2 N0=1 N1=1\nanon=3 N0=2 N1=1\nhierarchical_anon=9 N0=9 N1=0\n");
  const auto bytes = reader_.ReadMemory("/pod1/c1");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(*bytes, (std::map<int, uint64_t>{{0, 2 * page}, {1, page}}));
}

TEST_F(CgroupReaderTest, RejectsMemoryOfAFormThatItDoesNotKnow) {
  MakeV2();
  for (const char* text : {"file N0=1\n", "anon N0\n", "anon Nx=1\n", "anon N0=-1\n", "anon =\n"}) {
    Write("cgroup/c1/memory.numa_stat", text);
    EXPECT_EQ(reader_.ReadMemory("/c1").status().code(), StatusCode::kDataLoss) << text;
  }
  EXPECT_EQ(reader_.ReadMemory("/gone").status().code(), StatusCode::kNotFound);
}

TEST_F(CgroupReaderTest, SaysNotFoundForContainerThatIsGone) {
  MakeV1();
  EXPECT_EQ(reader_.ReadByPath("/gone").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(reader_.ReadByPid(42).status().code(), StatusCode::kNotFound);
}

TEST_F(CgroupReaderTest, ReportsAMissingCpusetController) {
  const Status status = reader_.ReadByPath("/pod1").status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(status), testing::HasSubstr("no cgroup cpuset controller"));
}

TEST_F(CgroupReaderTest, RejectsFileThatIsNotAList) {
  MakeV1();
  Write("cgroup/cpuset/c1/cpuset.cpus", "all of them\n");
  Write("cgroup/cpuset/c1/cpuset.mems", "0\n");
  EXPECT_EQ(reader_.ReadByPath("/c1").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace qrm::manager::cgroup_cpusets_test
