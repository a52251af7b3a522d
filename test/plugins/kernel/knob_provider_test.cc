// Types that are tables, on directories that look like cgroups, with a real process in one.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/kernel/kernel_files.h"
#include "plugins/kernel/knob.h"
#include "plugins/kernel/thread_attributes.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::kernel::knob_provider_test {
namespace {

using test::IsOk;
using test::TempDir;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;
using testing::Pair;

const KnobType& TypeOf(const std::string& name) {
  for (const KnobType& type : KnobTypes()) {
    if (type.name == name) {
      return type;
    }
  }
  return KnobTypes().front();
}

/// A child that waits until it is killed.
class Child {
 public:
  Child() : pid_(::fork()) {
    while (pid_ == 0) {
      ::pause();
    }
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

class KnobProviderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(dir_ / "cgroups/c1");
    Put("cgroup.threads", std::to_string(child_.pid()));
    Put("memory.high", "max");
    Put("memory.low", "4096");
    Put("memory.oom.group", "0");
    Put("cpu.idle", "0");
    Put("cpu.weight", "79");
  }

  void Put(const std::string& file, const std::string& value) {
    std::ofstream(dir_ / ("cgroups/c1/" + file)) << value << '\n';
  }
  std::string Get(const std::string& file) const {
    std::ifstream opened(dir_ / ("cgroups/c1/" + file));
    std::string value;
    std::getline(opened, value);
    return value;
  }
  void WriteConfig(const std::string& classes) {
    std::ofstream(dir_ / "fresh") << "classes:\n" << classes;
    std::filesystem::rename(dir_ / "fresh", dir_ / "knobs.yaml");
  }
  std::unique_ptr<sdk::ClassProvider> Make(const std::string& type, const std::string& classes) {
    WriteConfig(classes);
    auto made = MakeKnobProvider(TypeOf(type), dir_ / "knobs.yaml",
                                 {.files_root = dir_ / "cgroups",
                                  .is_v1 = false,
                                  .threads_root = dir_ / "cgroups",
                                  .journal = dir_ / "knobs.json"});
    EXPECT_TRUE(IsOk(made.status()));
    return *std::move(made);
  }
  std::string Journal() const { return ReadLine(dir_ / "knobs.json"); }
  static std::string ProblemOf(const sdk::ClassProvider& provider, const std::string& name) {
    for (const sdk::ClassInfo& info : provider.List().classes) {
      if (info.name == name) {
        return info.problem;
      }
    }
    return "there is no such class";
  }
  std::string Value(const std::string& attribute) const {
    return ReadAttribute(attribute, child_.pid()).value_or("none");
  }
  std::string DriftOf(sdk::ClassProvider& provider, const std::string& name) const {
    const auto drift = provider.ReadBack(target_, name);
    return drift.value_or(MessageOf(drift.status()));
  }

  TempDir dir_;
  Child child_;
  const sdk::ClassTarget target_{.key = {"pod", "c"}, .runtime_id = "id", .cgroups_path = "/c1"};
};

TEST_F(KnobProviderTest, AnUnsupportedKnobRejectsThatClassAndNoOther) {
  const auto provider = Make("memory",
                             "  old: {memory.soft_limit_in_bytes: 1Mi}\n"
                             "  swapless: {memory.swap.max: 0}\n  good: {memory.high: 1Mi}\n");
  EXPECT_THAT(ProblemOf(*provider, "old"),
              AllOf(HasSubstr("no memory.soft_limit_in_bytes: it exists in cgroup v1 only"),
                    HasSubstr("this machine has memory.high and memory.low")));
  EXPECT_THAT(ProblemOf(*provider, "swapless"), HasSubstr("no memory.swap.max: no cgroup in"));
  EXPECT_EQ(ProblemOf(*provider, "good"), "");
  EXPECT_EQ(provider->Resolve("old").status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(KnobProviderTest, TheRuntimeMakesContainersWithWhatItCanSet) {
  const auto memory = Make("memory", "  batch: {memory.high: 1Mi}\n");
  EXPECT_THAT(memory->Resolve("batch")->unified, ElementsAre(Pair("memory.high", "1048576")));
  const auto oom = Make("oom", "  first: {oom_score_adj: 500, memory.oom.group: 1}\n");
  EXPECT_THAT(oom->Resolve("first")->unified, ElementsAre(Pair("memory.oom.group", "1")));
  EXPECT_THAT(oom->Resolve("first")->oom_score_adj, Optional(500));
}

TEST_F(KnobProviderTest, AContainerGetsFilesAndAttributesOfItsClass) {
  const auto provider = Make("cpu-scheduling", "  low: {cpu.idle: 1, nice: 7, policy: batch}\n");
  EXPECT_THAT(DriftOf(*provider, "low"), HasSubstr("its cgroup has nothing set"));
  ASSERT_TRUE(IsOk(provider->Apply(target_, "", "low")));
  EXPECT_EQ(Get("cpu.idle"), "1");
  EXPECT_EQ(Value(kNice), "7");
  EXPECT_EQ(Value(kPolicy), "batch");
  EXPECT_EQ(DriftOf(*provider, "low"), "");
}

TEST_F(KnobProviderTest, AChangeTakesBackWhatTheNewClassDoesNotSet) {
  const auto provider = Make("cpu-scheduling", "  low: {cpu.idle: 1, policy: batch}\n  free: {}\n");
  ASSERT_TRUE(IsOk(provider->Apply(target_, "", "low")));
  EXPECT_THAT(DriftOf(*provider, "free"), HasSubstr("cpu.idle 1"));
  ASSERT_TRUE(IsOk(provider->Apply(target_, "low", "free")));
  EXPECT_EQ(Get("cpu.idle"), "0");
  EXPECT_EQ(Value(kPolicy), "other");
  EXPECT_EQ(DriftOf(*provider, ""), "");
}

TEST_F(KnobProviderTest, AKnobThatNoClassSetsIsNotChanged) {
  const auto provider = Make("memory", "  batch: {memory.high: 1Mi}\n");
  ASSERT_TRUE(IsOk(provider->Apply(target_, "", "batch")));
  EXPECT_EQ(Get("memory.low"), "4096");
  EXPECT_EQ(DriftOf(*provider, "batch"), "");
}

TEST_F(KnobProviderTest, WhatTheKernelForgetsMeanwhileIsGivenBack) {
  const auto provider = Make("cpu-scheduling", "  low: {cpu.idle: 1}\n");
  ASSERT_TRUE(IsOk(provider->Apply(target_, "", "low")));
  Put("cpu.weight", "1");  // as the kernel does
  ASSERT_TRUE(IsOk(provider->Apply(target_, "low", "")));
  EXPECT_EQ(Get("cpu.weight"), "79");
}

TEST_F(KnobProviderTest, WhatTheKernelForgetsMeanwhileIsGivenBackAfterARestart) {
  constexpr char kClasses[] = "  low: {cpu.idle: 1}\n";
  ASSERT_TRUE(IsOk(Make("cpu-scheduling", kClasses)->Apply(target_, "", "low")));
  Put("cpu.weight", "0");  // as the kernel does
  ASSERT_TRUE(IsOk(Make("cpu-scheduling", kClasses)->Apply(target_, "low", "")));
  EXPECT_EQ(Get("cpu.weight"), "79");
}

TEST_F(KnobProviderTest, TheJournalForgetsContainersThatEnded) {
  constexpr char kClasses[] = "  low: {cpu.idle: 1}\n";
  const sdk::ClassTarget other{{"pod", "d"}, "id-d", "/d1"};
  std::filesystem::create_directories(dir_ / "cgroups/d1");
  std::ofstream(dir_ / "cgroups/d1/cpu.idle") << "0\n";
  std::ofstream(dir_ / "cgroups/d1/cpu.weight") << "79\n";
  std::ofstream(dir_ / "cgroups/d1/cgroup.threads") << '\n';
  ASSERT_TRUE(IsOk(Make("cpu-scheduling", kClasses)->Apply(other, "", "low")));
  EXPECT_THAT(Journal(), HasSubstr("d1/cpu.weight"));
  std::filesystem::remove_all(dir_ / "cgroups/d1");
  ASSERT_TRUE(IsOk(Make("cpu-scheduling", kClasses)->Apply(target_, "", "low")));
  EXPECT_THAT(Journal(), AllOf(HasSubstr("c1/cpu.weight"), Not(HasSubstr("d1/cpu.weight"))));
}

TEST_F(KnobProviderTest, ATypeWithoutTheClassTakesIdleWeightFromThePodToo) {
  std::filesystem::create_directories(dir_ / "cgroups/podu-1/a");
  const auto file = [this](const std::string& name) { return dir_ / ("cgroups/podu-1/" + name); };
  for (const std::string directory : {"", "a/"}) {
    std::ofstream(file(directory + "cpu.idle")) << "0\n";
    std::ofstream(file(directory + "cpu.shares")) << "4096\n";
    std::ofstream(file(directory + "cgroup.threads")) << '\n';
  }
  const sdk::ClassTarget a = {{"u-1", "a"}, "id-a", "/podu-1/a"};
  ASSERT_TRUE(IsOk(Make("cpu-scheduling", "  low: {cpu.idle: 1}\n")->Apply(a, "", "low")));
  EXPECT_EQ(ReadLine(file("cpu.idle")), "1");
  for (const std::string directory : {"", "a/"}) {
    std::ofstream(file(directory + "cpu.shares")) << "1024\n";  // as the kernel does
  }

  ASSERT_TRUE(IsOk(Make("cpu-scheduling", "  other: {nice: 1}\n")->Apply(a, "low", "")));
  for (const std::string directory : {"", "a/"}) {
    EXPECT_EQ(ReadLine(file(directory + "cpu.idle")), "0");
    EXPECT_EQ(ReadLine(file(directory + "cpu.shares")), "4096");
  }
}

TEST_F(KnobProviderTest, AScoreThatOnlyKubeletKnewStaysAndSaysSo) {
  Put("memory.oom.group", "1");
  const auto provider = Make("oom", "  other: {}\n");
  const Status reset = provider->Apply(target_, "first", "");
  EXPECT_EQ(reset.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(reset), HasSubstr("set oom_score_adj, only kubelet knows its former"));
  EXPECT_EQ(Get("memory.oom.group"), "0");
}

TEST_F(KnobProviderTest, APodIsIdleWhileAllOfItsContainersAre) {
  const std::filesystem::path pod = dir_ / "cgroups/podu-1";
  const auto put = [&pod](const std::string& file, const std::string& value) {
    std::filesystem::create_directories((pod / file).parent_path());
    std::ofstream(pod / file) << value << '\n';
  };
  const auto get = [&pod](const std::string& file) { return ReadLine(pod / file); };
  for (const std::string directory : {"", "a/", "b/"}) {
    put(directory + "cpu.idle", "0");
    put(directory + "cpu.shares", "512");
    put(directory + "cgroup.threads", "");
  }
  const auto provider = Make("cpu-scheduling", "  low: {cpu.idle: 1}\n");
  const sdk::ClassTarget a = {{"u-1", "a"}, "id-a", "/podu-1/a"};
  const sdk::ClassTarget b = {{"u-1", "b"}, "id-b", "/podu-1/b"};
  ASSERT_TRUE(IsOk(provider->Apply(a, "", "low")));
  EXPECT_EQ(get("cpu.idle"), "1");
  EXPECT_EQ(*provider->ReadBack(a, "low"), "");
  put("cpu.shares", "1024");  // as the kernel does

  EXPECT_THAT(*provider->ReadBack(b, ""), HasSubstr("cpu.idle 1"));
  ASSERT_TRUE(IsOk(provider->Apply(b, "", "")));
  EXPECT_EQ(get("cpu.idle") + get("a/cpu.idle"), "01");
  EXPECT_EQ(get("cpu.shares"), "512");
  EXPECT_EQ(*provider->ReadBack(a, "low"), "");

  provider->Release(b);
  ASSERT_TRUE(IsOk(provider->Apply(a, "low", "low")));
  EXPECT_EQ(get("cpu.idle"), "1");
}

TEST_F(KnobProviderTest, TheClassOfIdleWeightNeedsNoFile) {
  const KnobMachine machine = {dir_ / "cgroups", false, dir_ / "cgroups"};
  const auto provider = MakeKnobProvider(TypeOf(kSchedulingType), "", machine);
  ASSERT_TRUE(IsOk(provider.status()));
  ASSERT_TRUE(IsOk((*provider)->Refresh({kIdleClass})));
  ASSERT_TRUE(IsOk((*provider)->Apply(target_, "", kIdleClass)));
  EXPECT_EQ(Get("cpu.idle"), "1");
  EXPECT_THAT(MessageOf(MakeKnobProvider(TypeOf("memory"), "", machine).status()),
              HasSubstr("config-file is not set"));
}

TEST_F(KnobProviderTest, ReportsHowManyThreadsHaveAnotherValue) {
  const auto provider = Make("oom", "  first: {oom_score_adj: 500}\n");
  EXPECT_FALSE(provider->List().is_mutable);
  ASSERT_TRUE(IsOk(provider->Apply(target_, "", "first")));
  ASSERT_TRUE(IsOk(WriteAttribute(kOomScoreAdj, child_.pid(), "600")));
  EXPECT_EQ(DriftOf(*provider, "first"), "1 of 1 threads have oom_score_adj 600, not 500");
  ASSERT_TRUE(IsOk(provider->Apply(target_, "first", "first")));
  EXPECT_EQ(Value(kOomScoreAdj), "500");
}

TEST_F(KnobProviderTest, FollowsItsFileUnlessAClassInUseIsMissing) {
  const auto provider = Make("memory", "  batch: {memory.high: 1Mi}\n");
  WriteConfig("  batch: {memory.high: 2Mi}\n");
  ASSERT_TRUE(IsOk(provider->Refresh({"batch"})));
  EXPECT_THAT(provider->Resolve("batch")->unified, ElementsAre(Pair("memory.high", "2097152")));
  WriteConfig("  other: {}\n");
  EXPECT_THAT(MessageOf(provider->Refresh({"batch"})),
              HasSubstr("it lacks class batch, which is in use"));
  EXPECT_THAT(provider->Resolve("batch")->unified, ElementsAre(Pair("memory.high", "2097152")));
}

TEST_F(KnobProviderTest, AKnobThatLeftTheFileIsTakenBackFromItsUsers) {
  const auto provider = Make("memory", "  batch: {memory.high: 1Mi}\n");
  ASSERT_TRUE(IsOk(provider->Apply(target_, "", "batch")));
  WriteConfig("  batch: {}\n");
  ASSERT_TRUE(IsOk(provider->Refresh({"batch"})));
  EXPECT_THAT(DriftOf(*provider, "batch"), HasSubstr("memory.high 1048576"));
  ASSERT_TRUE(IsOk(provider->Apply(target_, "batch", "batch")));
  EXPECT_EQ(Get("memory.high"), "max");
}

TEST_F(KnobProviderTest, MemoryOfAPodIsProtectedInThePodsCgroup) {
  std::filesystem::create_directories(dir_ / "cgroups/pod");
  for (const char* file : {"memory.low", "memory.min"}) {
    std::ofstream(dir_ / ("cgroups/pod/" + std::string(file))) << "0\n";
  }
  const auto provider = Make(
      "memory-protection", "  db: {memory.low: 1Mi, memory.min: 4Ki}\n  web: {memory.low: 2Mi}\n");
  EXPECT_EQ(provider->List().level, sdk::ClassLevel::kPod);
  EXPECT_TRUE(provider->Resolve("db")->unified.empty());
  const sdk::ClassTarget pod{.key = {"pod", ""}, .runtime_id = "p", .cgroups_path = "/pod"};
  const auto value = [&](const std::string& file) {
    std::ifstream opened(dir_ / ("cgroups/pod/" + file));
    std::string text;
    std::getline(opened, text);
    return text;
  };
  ASSERT_TRUE(IsOk(provider->Apply(pod, "", "db")));
  EXPECT_EQ(value("memory.low"), "1048576");
  EXPECT_EQ(value("memory.min"), "4096");
  ASSERT_TRUE(IsOk(provider->Apply(pod, "db", "web")));
  EXPECT_EQ(value("memory.low"), "2097152");
  EXPECT_EQ(value("memory.min"), "0");
}

TEST_F(KnobProviderTest, PacketsOfAContainerHaveItsClassAndPriorityOnCgroupV1) {
  std::ofstream(dir_ / "cgroups/net_prio.ifpriomap") << "lo 0\neth0 0\n";
  Put("net_cls.classid", "0");
  Put("net_prio.ifpriomap", "lo 0");
  WriteConfig(
      "  fast: {net_cls.classid: '10:1', net_prio.ifpriomap: {eth0: 5}}\n"
      "  away: {net_prio.ifpriomap: {eth7: 5}}\n");
  const KnobMachine machine = {dir_ / "cgroups", true, dir_ / "cgroups"};
  const auto made = MakeKnobProvider(TypeOf("network"), dir_ / "knobs.yaml", machine);
  ASSERT_TRUE(IsOk(made.status()));
  EXPECT_EQ((*made)->List().classes.back().definition,
            "net_cls.classid 1048577; net_prio.ifpriomap eth0 5");
  ASSERT_TRUE(IsOk((*made)->Apply(target_, "", "fast")));
  EXPECT_EQ(Get("net_cls.classid") + " " + Get("net_prio.ifpriomap"), "1048577 eth0 5");
  EXPECT_EQ(DriftOf(**made, "fast"), "");
  ASSERT_TRUE(IsOk((*made)->Apply(target_, "fast", "")));
  EXPECT_EQ(Get("net_cls.classid") + " " + Get("net_prio.ifpriomap"), "0 eth0 0");
  EXPECT_THAT(ProblemOf(**made, "away"),
              HasSubstr("no interface eth7; correct net_prio.ifpriomap"));
}

TEST_F(KnobProviderTest, WithoutClassesOfPacketsTheMachineSaysWhatToUseInstead) {
  std::ofstream(dir_ / "cgroups/cgroup.controllers") << "cpu memory\n";
  WriteConfig("  fast: {net_cls.classid: '10:1'}\n");
  const auto made = MakeKnobProvider(TypeOf("network"), dir_ / "knobs.yaml",
                                     FindKnobs("net_cls", dir_ / "cgroups"));
  ASSERT_TRUE(IsOk(made.status()));
  EXPECT_THAT(ProblemOf(**made, "fast"),
              AllOf(HasSubstr("no net_cls.classid: it exists in cgroup v1 only"),
                    HasSubstr("instead, match the pod's cgroup with nftables")));
}

TEST_F(KnobProviderTest, APodHasATargetOfLatencyForADevice) {
  std::filesystem::create_directories(dir_ / "cgroups/pod");
  std::ofstream(dir_ / "cgroups/pod/io.latency") << '\n';
  const auto provider = Make("io-latency", "  db: {io.latency: {'8:0': 10000}}\n");
  const sdk::ClassTarget pod{.key = {"pod", ""}, .runtime_id = "p", .cgroups_path = "/pod"};
  ASSERT_TRUE(IsOk(provider->Apply(pod, "", "db")));
  EXPECT_EQ(ReadLine(dir_ / "cgroups/pod/io.latency"), "8:0 target=10000");
  EXPECT_EQ(*provider->ReadBack(pod, "db"), "");
  ASSERT_TRUE(IsOk(provider->Apply(pod, "db", "")));
  EXPECT_EQ(ReadLine(dir_ / "cgroups/pod/io.latency"), "8:0 target=0");
}

TEST_F(KnobProviderTest, ProtectionOfMemoryIsAbsentInCgroupV1) {
  WriteConfig("  db: {memory.low: 1Mi}\n");
  const auto provider = MakeKnobProvider(
      TypeOf("memory-protection"), dir_ / "knobs.yaml",
      {.files_root = dir_ / "cgroups", .is_v1 = true, .threads_root = dir_ / "cgroups"});
  ASSERT_TRUE(IsOk(provider.status()));
  EXPECT_THAT(ProblemOf(**provider, "db"), HasSubstr("no memory.low: it exists in cgroup v2 only"));
}

TEST_F(KnobProviderTest, AllValuesThatALostClassMayHaveLeftAreTakenBack) {
  Put("memory.high", "1048576");
  const auto provider = Make("memory", "  other: {memory.low: 8192}\n");
  ASSERT_TRUE(IsOk(provider->Apply(target_, "batch", "")));
  EXPECT_EQ(Get("memory.high"), "max");
  EXPECT_EQ(Get("memory.low"), "0");
}

TEST_F(KnobProviderTest, AContainerThatIsGoneIsReportedAsGone) {
  const auto provider = Make("memory", "  batch: {memory.high: 1Mi}\n");
  std::filesystem::remove_all(dir_ / "cgroups/c1");
  EXPECT_EQ(provider->Apply(target_, "", "batch").code(), StatusCode::kNotFound);
  EXPECT_EQ(provider->ReadBack(target_, "batch").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace qrm::kernel::knob_provider_test
