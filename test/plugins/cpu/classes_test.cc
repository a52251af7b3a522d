// CPUs are tuned for their owners, on a copy of a machine's files.
#include "plugins/cpu/classes.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/cpu/usage.h"
#include "test/plugins/cpu/elastic_fixture.h"
#include "test/support/await.h"
#include "test/support/sysfs_machine.h"
#include "test/support/temp_dir.h"

namespace qrm::cpu::classes_test {
namespace {

using test::Drive;
using test::Request;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Two bounds by class, and the machine's defaults: "800 3000".
constexpr char kUntouched[] = "800000 3000000";
constexpr char kFast[] = "2000000 3000000";
constexpr char kSlow[] = "800000 2000000";

constexpr char kClasses[] = R"(
reserved-cpus: "0"
reserved-class: slow
idle-class: slow
classes:
  slow: {freq: {max: base}}
  fast: {freq: {min: base, max: turbo}}
rules:
  - {select: {label: {tier: trading}, cpu: whole}, grant: trading}
  - {select: {label: {tier: web}}, pool: web}
grants: {trading: {class: fast, share-numa-with: ["*"]}}
pools: {web: {size: {min: 2}}, default: {size: {min: 2}}}
)";

class ClassesTest : public ElasticPlugins {
 protected:
  ClassesTest() {
    test::WriteSysfsFile(root() / "proc/sys/kernel/random/boot_id", "first");
    test::SetOnline(root(), all_);
    for (const int cpu : all_) {
      for (const auto& [name, value] :
           std::map<std::string, std::string>{{"affected_cpus", std::to_string(cpu)},
                                              {"cpuinfo_min_freq", "800000"},
                                              {"cpuinfo_max_freq", "3000000"},
                                              {"base_frequency", "2000000"},
                                              {"scaling_min_freq", "800000"},
                                              {"scaling_max_freq", "3000000"}}) {
        test::WriteSysfsFile(PolicyOf(cpu) / name, value);
      }
    }
  }

  std::filesystem::path root() const { return dir_ / "machine"; }
  std::filesystem::path PolicyOf(int cpu) const {
    return root() / fmt::format("sys/devices/system/cpu/cpufreq/policy{}", cpu);
  }
  /// Both bounds.
  std::string TuningOf(int cpu) const {
    std::string both;
    for (const char* const file : {"scaling_min_freq", "scaling_max_freq"}) {
      std::ifstream stream(PolicyOf(cpu) / file);
      std::string value;
      std::getline(stream, value);
      both += (both.empty() ? "" : " ") + value;
    }
    return both;
  }
  /// Waits until all of `cpus` have these bounds.
  testing::AssertionResult AreSoon(const CpuSet& cpus, const char* tuning) const {
    const auto other = [&] {
      for (const int cpu : cpus) {
        if (TuningOf(cpu) != tuning) {
          return cpu;
        }
      }
      return -1;
    };
    if (test::Await([&] { return other() < 0; })) {
      return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << "CPU " << other() << " has " << TuningOf(other());
  }

  Machine machine() const {
    MachineParts parts = TwoNodes().parts();
    parts.root = root().string();
    return Machine(std::move(parts));
  }
  Drive Begin(const std::string& config) {
    Drive drive(MakeElastic(config, machine()));
    drive.plugin().Begin(dir_.path());
    return drive;
  }
  static ContainerRequest Trading(const std::string& pod, double cpus) {
    ContainerRequest request = Request(pod, "", "cpu", cpus);
    request.labels.Edit()["tier"] = "trading";
    return request;
  }

  const CpuSet all_ = TwoNodes().cpu_set();
  const test::TempDir dir_ = test::TempDir::InMemory();
};

TEST_F(ClassesTest, FollowTheOwnersOfCpus) {
  Drive drive = Begin(kClasses);
  const CpuSet web = Pool(drive, "web");
  EXPECT_TRUE(AreSoon({0}, kSlow)) << "reserved";
  EXPECT_TRUE(AreSoon(web, kUntouched)) << "of a pool without a class";
  ASSERT_TRUE(drive.Admit(Trading("a", 6)).ok());
  const CpuSet own = *CpuSet::Parse(drive.Value("a"));
  EXPECT_TRUE(AreSoon(own, kFast));
  const CpuSet idle = all_ - own - web - Pool(drive, "default") - CpuSet{0};
  EXPECT_TRUE(AreSoon(idle, kSlow));
  drive.RemovePod("a");
  EXPECT_TRUE(AreSoon(own, kSlow)) << "idle now";
}

TEST_F(ClassesTest, AreNotifiedOfPools) {
  std::string config = kClasses;
  const std::string web = "web: {";
  config.insert(config.find(web + "size") + web.size(), "class: fast, ");
  Drive drive = Begin(config);
  const auto pools = drive.plugin().Pools();
  for (const sdk::Pool& pool : pools) {
    EXPECT_EQ(pool.cpu_class, pool.name == "web" ? "fast" : "");
    EXPECT_THAT(pool.class_problem, IsEmpty());
  }
  EXPECT_THAT(drive.plugin().ExportState({}), HasSubstr(R"("fast": ")"));
}

TEST_F(ClassesTest, ThatCannotBeSetAreReportedWithTheirPools) {
  for (const int cpu : all_) {
    std::filesystem::remove_all(PolicyOf(cpu));
  }
  Drive drive = Begin("{classes: {a: {freq: {max: base}}}, pools: {p: {cpus: 1-2, class: a}}}");
  EXPECT_TRUE(test::Await([&] { return !drive.plugin().Pools().front().class_problem.empty(); }));
  EXPECT_THAT(drive.plugin().Pools().front().class_problem,
              HasSubstr("CPUs 1-2 have no cpufreq that this process may write"));
  EXPECT_THAT(dynamic_cast<const UsageSource&>(drive.plugin()).Usage().problems,
              ElementsAre(HasSubstr("class a of CPUs is not in effect: ")));
}

TEST_F(ClassesTest, StayThroughARestartAndEndWithTheirKeys) {
  {
    Drive drive = Begin(kClasses);
    ASSERT_TRUE(drive.Admit(Trading("a", 2)).ok());
    drive.Reconcile();
    EXPECT_TRUE(AreSoon(*CpuSet::Parse(drive.Value("a")), kFast));
  }
  EXPECT_EQ(TuningOf(0), kSlow) << "the end of a process changes nothing";
  Drive without = Begin("reserved-cpus: \"0\"");
  EXPECT_TRUE(AreSoon(all_, kUntouched));
}

TEST_F(ClassesTest, APluginThatIsOnlyAskedTunesNothing) {
  Drive drive(MakeElastic(kClasses, machine()));
  ASSERT_TRUE(drive.Admit(Trading("a", 2)).ok());
  drive.Reconcile();
  drive.plugin().Retire();
  EXPECT_EQ(TuningOf(0), kUntouched);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "cpu_classes.knobs.json"));
}

TEST_F(ClassesTest, FilesSharedWithADriversCpusAreTunedByTheDriver) {
  test::WriteSysfsFile(PolicyOf(4) / "affected_cpus", "4 6");
  std::filesystem::remove_all(PolicyOf(6));
  sdk::Grants grants;
  const auto give = [&](const std::string& pod, const CpuSet& cpus, const std::string& by) {
    const ContainerRequest request = Trading(pod, cpus.Count());
    ResourceAllocation given = sdk::PinCpus(cpus);
    given.exclusive = true;
    given.decided_by = by;  // empty: no rule of ours
    grants[request.key] = {.request = request, .allocation = given};
  };
  give("ours", {6, 7}, "rules[0]");
  give("drivers", {4, 5}, "");
  Drive drive(MakeElastic(kClasses, machine()));
  ASSERT_TRUE(drive.plugin().Restore(grants).ok());
  drive.plugin().Begin(dir_.path());
  EXPECT_TRUE(AreSoon({7}, kFast));
  EXPECT_EQ(TuningOf(4), kUntouched);
  EXPECT_EQ(TuningOf(5), kUntouched);
}

TEST_F(ClassesTest, NameTheQosClassesOfTheirContainers) {
  std::string config = kClasses;
  const std::string slow = "slow: {";
  config.insert(config.find(slow) + slow.size(), "qos: {cpu-scheduling: batch}, ");
  const std::string pool = "default: {";
  config.insert(config.find(pool) + pool.size(), "class: slow, ");
  Drive drive = Begin(config);
  ASSERT_TRUE(drive.Admit(Trading("own", 2)).ok());
  ASSERT_TRUE(drive.Admit(Request("shares", "", "cpu", 1)).ok());
  EXPECT_THAT(drive.Of("own").class_defaults, IsEmpty());
  EXPECT_THAT(drive.Of("shares").class_defaults,
              testing::ElementsAre(testing::Pair("cpu-scheduling", "batch")));
}

TEST_F(ClassesTest, APoolNamesTheClassOfIdleWeightByOneKey) {
  std::string config = kClasses;
  const std::string pool = "default: {";
  config.insert(config.find(pool) + pool.size(), "idle-weight: true, ");
  Drive drive = Begin(config);
  ASSERT_TRUE(drive.Admit(Trading("own", 2)).ok());
  ASSERT_TRUE(drive.Admit(Request("shares", "", "cpu", 1)).ok());
  EXPECT_THAT(drive.Of("own").class_defaults, IsEmpty());
  EXPECT_THAT(drive.Of("shares").class_defaults,
              testing::ElementsAre(testing::Pair("cpu-scheduling", "idle")));
}

TEST(ClassesPlanTest, IsAboutCpusThatAreOnline) {
  const CpuPluginConfig config =
      Config("{reserved-cpus: 0-2, reserved-class: a, classes: {a: {governor: powersave}}}");
  const Machine machine = TwoNodes();
  const CpuState state = InitialState(config);
  const View view{machine, config, state, nullptr, {1}};
  EXPECT_EQ(PlanOf(view).cpus.at("a"), (CpuSet{0, 2}));
}

struct Refused {
  const char* name;
  const char* config;
  const char* says;
};
class RejectedClassesTest : public testing::TestWithParam<Refused> {};

TEST_P(RejectedClassesTest, AreRejectedWithTheCure) {
  const auto section = config::Section::Parse(GetParam().config, "cpu.yaml");
  EXPECT_THAT(MessageOf(ParseCpuConfig(*section).status()), HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    All, RejectedClassesTest,
    testing::Values(Refused{"Pool", "pools: {a: {cpus: 0-1, class: fast}}",
                            "pools.a.class is 'fast', which is not a class; name one of classes"},
                    Refused{"Role", "roles: {a: {class: fast}}",
                            "roles.a.class is 'fast', which is not a class"},
                    Refused{"Grant", "grants: {a: {class: fast}}",
                            "grants.a.class is 'fast', which is not a class"},
                    Refused{"Reserved", "reserved-class: fast",
                            "reserved-class is 'fast', which is not a class"},
                    Refused{
                        "IdleWithoutIdleCpus",
                        "{classes: {fast: {governor: performance}}, idle-class: fast}",
                        "the default pool has all that are left; give the pool default a size"}),
    [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace qrm::cpu::classes_test
