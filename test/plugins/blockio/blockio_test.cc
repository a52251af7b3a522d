#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/blockio/blockio_provider.h"
#include "test/plugins/blockio/fake_devices.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::blockio::blockio_test {
namespace {

using kernel::CgroupTable;
using test::FakeDevices;
using test::IsOk;
using test::TempDir;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

StatusOr<std::map<std::string, ClassConfig>> Parse(const std::string& text) {
  QRM_ASSIGN_OR_RETURN(const config::Section section, config::Section::Parse(text, "blockio.yaml"));
  return ParseConfig(section);
}

TEST(BlockioConfigTest, ReadsTheSyntaxOfTheRuntimes) {
  const auto classes = Parse(R"(
Classes:
  slow:
  - Weight: 80
  - Devices: [/dev/sda, "/dev/vd*"]
    ThrottleReadBps: 50M
    ThrottleWriteBps: 1.5Ki
    ThrottleReadIOPS: 10k
    ThrottleWriteIOPS: "7"
)");
  ASSERT_TRUE(classes.ok()) << classes.status();
  const Entry rest{.parameters = {.weight = 80}};
  const Entry disks{
      .devices = {"/dev/sda", "/dev/vd*"},
      .parameters = {
          .read_bps = 50'000'000, .write_bps = 1536, .read_iops = 10'000, .write_iops = 7}};
  EXPECT_THAT(*classes, ElementsAre(Pair("slow", ElementsAre(rest, disks))));
}

struct BadConfig {
  std::string name;
  std::string text;
  std::string says;
};
class BadBlockioConfigTest : public testing::TestWithParam<BadConfig> {};

TEST_P(BadBlockioConfigTest, IsRejectedWithTheLine) {
  const Status refused = Parse(GetParam().text).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(refused), AllOf(HasSubstr("blockio.yaml:"), HasSubstr(GetParam().says)));
}

const BadConfig kBadConfigs[] = {
    {"UnknownKey", "Classes: {a: [{Devices: [/dev/sda], ThrottleBps: 5}]}", "ThrottleBps"},
    {"RateWithoutDevice", "Classes: {a: [{ThrottleReadBps: 5M}]}", "list the devices"},
    {"RateOfZero", "Classes: {a: [{Devices: [/dev/sda], ThrottleReadBps: 0}]}", "from 1 to"},
    {"NoQuantity", "Classes: {a: [{Devices: [/dev/sda], ThrottleReadBps: fast}]}", "is 'fast'"},
    {"MoreIopsThanTheKernelKeeps", "Classes: {a: [{Devices: [/dev/sda], ThrottleReadIOPS: 5G}]}",
     "from 1 to 4294967294"},
    {"WeightBelow", "Classes: {a: [{Weight: 9}]}", "from 10 to 1000"},
    {"WeightAbove", "Classes: {a: [{Weight: 1001}]}", "from 10 to 1000"},
    {"NoDeviceNode", "Classes: {a: [{Devices: [sda]}]}", "globs of device nodes"},
    {"NoClassName", "Classes: {../a: [{Weight: 10}]}", "is not a class name"},
    {"Twice", "Classes: {a: [{Weight: 10}], a: [{Weight: 20}]}", "occurs twice"},
    {"OtherTop", "classes: {}", "is not a known key"},
};
INSTANTIATE_TEST_SUITE_P(Configs, BadBlockioConfigTest, testing::ValuesIn(kBadConfigs),
                         [](const auto& param_info) { return param_info.param.name; });

// Two disks, the second with bfq, the first with iocost, and a partition of it.
class BlockioTest : public testing::Test {
 protected:
  StatusOr<CgroupTable> Table(const std::string& entries, CgroupVersion version) {
    QRM_ASSIGN_OR_RETURN(const auto classes, Parse("Classes: {a: [" + entries + "]}"));
    return TableOf(classes.at("a"), FakeDevices(devices_), version);
  }
  void WriteConfig(const std::string& text) {
    const std::string fresh = dir_ / "fresh";
    std::ofstream(fresh) << text;
    std::filesystem::rename(fresh, dir_ / "blockio.yaml");
  }
  std::unique_ptr<sdk::ClassProvider> Make(CgroupVersion version) {
    auto made = MakeBlockioProvider(
        {.config_file = dir_ / "blockio.yaml", .blkio_root = dir_.path(), .version = version},
        std::make_unique<FakeDevices>(devices_));
    EXPECT_TRUE(IsOk(made.status()));
    return *std::move(made);
  }
  static std::string ProblemOf(const sdk::ClassProvider& provider, const std::string& name) {
    for (const sdk::ClassInfo& info : provider.List().classes) {
      if (info.name == name) {
        return info.problem;
      }
    }
    return "there is no such class";
  }

  TempDir dir_;
  FakeDevices::ByPath devices_ = {
      {"/dev/sda", {.id = {8, 0}, .has_io_cost = true}},
      {"/dev/sda1", {.id = {8, 1}, .is_partition = true, .disk = {8, 0}}},
      {"/dev/sdb", {.id = {8, 16}, .has_bfq = true}},
  };
};

TEST_F(BlockioTest, V1HasOneFilePerRate) {
  const auto table = Table(
      "{Devices: [/dev/sda], ThrottleReadBps: 5, ThrottleWriteIOPS: 6}, "
      "{Devices: [/dev/sdb], ThrottleReadBps: 7, Weight: 300}",
      CgroupVersion::kV1);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(*table, (CgroupTable{{"blkio.throttle.read_bps_device", {{"8:0", "5"}, {"8:16", "7"}}},
                                 {"blkio.throttle.write_iops_device", {{"8:0", "6"}}},
                                 {"blkio.bfq.weight_device", {{"8:16", "300"}}}}));
}

TEST_F(BlockioTest, V2HasAllRatesOfADeviceInOneLine) {
  const auto table = Table(
      "{Weight: 1000}, {Devices: [/dev/sda], ThrottleReadBps: 5, Weight: 10}, "
      "{Devices: [/dev/sdb], ThrottleWriteIOPS: 7, Weight: 300}",
      CgroupVersion::kV2);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(*table, (CgroupTable{{"io.max",
                                  {{"8:0", "rbps=5 wbps=max riops=max wiops=max"},
                                   {"8:16", "rbps=max wbps=max riops=max wiops=7"}}},
                                 {"io.weight", {{"default", "10000"}, {"8:0", "1"}}},
                                 {"io.bfq.weight", {{"default", "1000"}, {"8:16", "300"}}}}));
  EXPECT_THAT(UnifiedOf(*table), IsEmpty())
      << "runc 1.1 writes all lines of a file at once, which the kernel rejects";
}

TEST_F(BlockioTest, ALaterEntryWinsPerDeviceAndParameter) {
  const auto table = Table(
      "{Devices: [/dev/sda, /dev/sdb], ThrottleReadBps: 5, "
      "ThrottleWriteBps: 6}, {Devices: [/dev/sdb], ThrottleReadBps: 9}",
      CgroupVersion::kV1);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(*table,
            (CgroupTable{{"blkio.throttle.read_bps_device", {{"8:0", "5"}, {"8:16", "9"}}},
                         {"blkio.throttle.write_bps_device", {{"8:0", "6"}, {"8:16", "6"}}}}));
}

TEST_F(BlockioTest, AWeightThatNothingWeighsByIsRejected) {
  devices_["/dev/sdb"].has_bfq = false;
  const auto table = Table("{Devices: [/dev/sdb], Weight: 300}", CgroupVersion::kV2);
  EXPECT_EQ(table.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(table.status()), HasSubstr("/dev/sdb has no weights"));
}

TEST_F(BlockioTest, OneFileLimitsTheDisksOfEachModelByTheirLinks) {
  const std::string entries =
      "{Devices: ['/dev/disk/by-id/nvme-SMALL-*'], ThrottleWriteBps: 5}, "
      "{Devices: ['/dev/disk/by-id/nvme-LARGE-*'], ThrottleWriteBps: 9}";
  devices_["/dev/disk/by-id/nvme-LARGE-7"] = {.id = {259, 3}};
  const auto one = Table(entries, CgroupVersion::kV1);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(*one, (CgroupTable{{"blkio.throttle.write_bps_device", {{"259:3", "9"}}}}));
  devices_["/dev/disk/by-id/nvme-SMALL-8"] = {.id = {259, 4}};
  const auto both = Table(entries, CgroupVersion::kV1);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(*both,
            (CgroupTable{{"blkio.throttle.write_bps_device", {{"259:3", "9"}, {"259:4", "5"}}}}));
}

TEST_F(BlockioTest, AWeightOfAllDisksIsRejectedWhereNoneHasWeights) {
  EXPECT_TRUE(Table("{Weight: 500}", CgroupVersion::kV1).ok()) << "sdb has bfq";
  devices_["/dev/sdb"].has_bfq = false;
  EXPECT_EQ(*Table("{Weight: 500}", CgroupVersion::kV2),
            (CgroupTable{{"io.weight", {{"default", "4950"}}}}))
      << "sda has iocost";
  EXPECT_THAT(MessageOf(Table("{Weight: 500}", CgroupVersion::kV1).status()),
              HasSubstr("no disk has weights"));
}

constexpr char kTwoClasses[] = R"(
Classes:
  parts: [{Devices: ["/dev/sda1*"], ThrottleReadBps: 5}]
  disks: [{Devices: [/dev/sda, /dev/sdc], ThrottleReadBps: 5}]
)";

TEST_F(BlockioTest, AGlobThatMatchesADiskAndItsPartitionsMeansTheDisk) {
  const auto table = Table("{Devices: ['/dev/sda*'], ThrottleReadBps: 5}", CgroupVersion::kV1);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(*table, (CgroupTable{{"blkio.throttle.read_bps_device", {{"8:0", "5"}}}}));
}

TEST_F(BlockioTest, AClassThatMatchesNoDeviceSaysSoAndIsRejectedIfDevicesAreRequired) {
  WriteConfig("Classes: {far: [{Devices: [/dev/sdx, '/dev/sdy*'], ThrottleReadBps: 5}]}");
  const auto provider = Make(CgroupVersion::kV1);
  EXPECT_THAT(provider->List().classes.at(0).definition,
              HasSubstr("no device matches /dev/sdx, /dev/sdy*"));
  EXPECT_TRUE(provider->Resolve("far").ok());
  const auto strict = MakeBlockioProvider({.config_file = dir_ / "blockio.yaml",
                                           .blkio_root = dir_.path(),
                                           .version = CgroupVersion::kV1,
                                           .require_devices = true},
                                          std::make_unique<FakeDevices>(devices_));
  ASSERT_TRUE(strict.ok()) << strict.status();
  EXPECT_THAT(ProblemOf(**strict, "far"), HasSubstr("no device matches /dev/sdx, /dev/sdy*"));
  devices_["/dev/sdx"] = {.id = {8, 48}};
  ASSERT_TRUE(IsOk((*strict)->Refresh({})));
  EXPECT_EQ(ProblemOf(**strict, "far"), "");
}

TEST_F(BlockioTest, AGlobThatMatchesAPartitionRejectsThatClassAndNoOther) {
  WriteConfig(kTwoClasses);
  const auto provider = Make(CgroupVersion::kV1);
  EXPECT_THAT(ProblemOf(*provider, "parts"), HasSubstr("/dev/sda1 is a partition"));
  EXPECT_EQ(ProblemOf(*provider, "disks"), "");
  EXPECT_THAT(MessageOf(provider->Resolve("parts").status()), HasSubstr("is a partition"));
  EXPECT_TRUE(provider->Resolve("disks").ok());
}

TEST_F(BlockioTest, FollowsDevicesThatComeAndGo) {
  WriteConfig(kTwoClasses);
  const auto provider = Make(CgroupVersion::kV2);
  devices_["/dev/sdc"] = {.id = {8, 32}};
  devices_.erase("/dev/sda");
  ASSERT_TRUE(IsOk(provider->Refresh({})));
  const auto options = provider->Resolve("disks");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->unified,
              ElementsAre(Pair("io.max", "8:32 rbps=5 wbps=max riops=max wiops=max")));
}

TEST_F(BlockioTest, ReadsItsFileAgainWhenItChanges) {
  WriteConfig(kTwoClasses);
  const auto provider = Make(CgroupVersion::kV2);
  WriteConfig("Classes: {disks: [{Devices: [/dev/sda], ThrottleReadBps: 6}]}");
  ASSERT_TRUE(IsOk(provider->Refresh({"disks"})));
  EXPECT_THAT(provider->Resolve("disks")->unified,
              ElementsAre(Pair("io.max", "8:0 rbps=6 wbps=max riops=max wiops=max")));
}

TEST_F(BlockioTest, AFileWithoutAClassInUseChangesNothing) {
  WriteConfig(kTwoClasses);
  const auto provider = Make(CgroupVersion::kV2);
  WriteConfig("Classes: {other: [{Weight: 100}]}");
  const Status refused = provider->Refresh({"disks"});
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused), HasSubstr("it lacks class disks, which is in use"));
  EXPECT_EQ(ProblemOf(*provider, "disks"), "");
  EXPECT_EQ(ProblemOf(*provider, "other"), "there is no such class");
}

TEST_F(BlockioTest, AFileWithAnErrorChangesNothing) {
  WriteConfig(kTwoClasses);
  const auto provider = Make(CgroupVersion::kV2);
  WriteConfig("Classes: {disks: [{Devices: [/dev/sda], ThrottleReadBps: much}]}");
  EXPECT_EQ(provider->Refresh({}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ProblemOf(*provider, "disks"), "");
}

TEST_F(BlockioTest, ReportsWhatACgroupHasInstead) {
  WriteConfig(kTwoClasses);
  const auto provider = Make(CgroupVersion::kV1);
  std::filesystem::create_directories(dir_ / "pod1/c1");
  const std::ofstream procs(dir_ / "pod1/c1/cgroup.procs");  // a cgroup is never empty
  const sdk::ClassTarget target{.runtime_id = "c1", .cgroups_path = "/pod1/c1"};
  EXPECT_EQ(provider->ReadBack(target, "").value_or("?"), "");
  EXPECT_THAT(provider->ReadBack(target, "disks").value_or("?"),
              HasSubstr("its cgroup has nothing set, but the class has "
                        "blkio.throttle.read_bps_device 8:0 5"));
  const sdk::ClassTarget gone{.runtime_id = "c2", .cgroups_path = "/pod1/c2"};
  EXPECT_EQ(provider->ReadBack(gone, "disks").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace qrm::blockio::blockio_test
