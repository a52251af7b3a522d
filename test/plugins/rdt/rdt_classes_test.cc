// The type rdt on a file system that answers as the kernel's, with real processes.
#include "plugins/rdt/rdt_classes.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/is_ok.h"
#include "test/support/resctrl/container_cgroup.h"
#include "test/support/resctrl/resctrl_double.h"
#include "test/support/temp_dir.h"

namespace qrm::rdt::rdt_classes_test {
namespace {

using test::ContainerCgroup;
using test::IsOk;
using test::ResctrlDouble;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

constexpr char kConfig[] = R"(
partitions:
  exclusive: {l3Allocation: 60%, classes: {gold: {}}}
  shared:
    l3Allocation: 40%
    mbAllocation: [50%]
    classes: {silver: {}, bronze: {l3Allocation: 50%, mbAllocation: [30%]}}
)";
constexpr char kGold[] =
    "L3:0=fff;1=fff;8=fff MB:0=100;1=100;8=100; the root group may use these ways";

/// A machine, a configuration, and the provider on them.
class RdtClassesTest : public testing::Test {
 protected:
  void SetUp() override { Start({}); }

  void Start(const test::ResctrlMachine& machine, const ResctrlDouble::Before& before = {}) {
    resctrl_.reset();
    StatusOr<std::unique_ptr<ResctrlDouble>> made = ResctrlDouble::Create(machine, before);
    if (!made.ok()) {
      GTEST_SKIP() << MessageOf(made.status());
    }
    resctrl_ = *std::move(made);
    WriteConfig(kConfig);
    MakeProvider(dir_ / "rdt.yaml");
  }
  void MakeProvider(const std::string& config_file) {
    provider_ = std::make_unique<RdtClasses>(RdtSettings{.config_file = config_file,
                                                         .paths = resctrl_->paths(),
                                                         .etc = dir_.path(),
                                                         .journal = dir_ / "rdt.knobs.json"});
  }
  void WriteConfig(const std::string& text) { std::ofstream(dir_ / "rdt.yaml") << text; }

  std::unique_ptr<ContainerCgroup> MakeContainer() {
    StatusOr<std::unique_ptr<ContainerCgroup>> made = ContainerCgroup::Create();
    EXPECT_TRUE(made.ok()) << MessageOf(made.status());
    resctrl_->Watch((*made)->directory());
    return *std::move(made);
  }
  /// As any other writer of the groups' files.
  void Move(pid_t thread, const std::string& group) {
    EXPECT_TRUE(IsOk(Resctrl(resctrl_->paths()).Move({thread}, group)));
  }

  std::string PathOf(const std::string& name) const { return resctrl_->paths().mount + "/" + name; }
  std::string ReadFile(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(PathOf(name)).rdbuf();
    return text.str();
  }
  void WriteFile(const std::string& name, const std::string& text) const {
    const int file = ::open(PathOf(name).c_str(), O_WRONLY);
    EXPECT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size())) << name;
    ::close(file);
  }
  /// Each file of the file system with its content.
  std::string Tree() const {
    std::set<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(PathOf(""))) {
      const std::string name = std::filesystem::relative(entry.path(), PathOf(""));
      if (name != "info/last_cmd_status" && !name.ends_with("tasks")) {
        files.insert(name + (entry.is_directory() ? "/" : "=" + ReadFile(name)) + "\n");
      }
    }
    std::string all;
    for (const std::string& file : files) {
      all += file;
    }
    return all;
  }
  std::set<std::string> GroupsOf(const ContainerCgroup& container) const {
    std::set<std::string> groups;
    for (const pid_t thread : container.Threads()) {
      const auto group =
          Resctrl(resctrl_->paths()).GroupOf(thread).value_or(std::optional("unknown"));
      if (group.has_value()) {
        groups.insert(*group);
      }
    }
    return groups;
  }

  test::TempDir dir_;
  std::unique_ptr<ResctrlDouble> resctrl_;
  std::unique_ptr<RdtClasses> provider_;
};

TEST_F(RdtClassesTest, RefreshMakesAGroupForEachClass) {
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  EXPECT_THAT(ReadFile("qrm-bronze/schemata"), HasSubstr("L3:0=f000;1=f000;8=f000\n"));
  EXPECT_THAT(ReadFile("qrm-bronze/schemata"), HasSubstr("MB:0=  20;1=  20;8=  20\n"));
  const sdk::ClassType type = provider_->List();
  EXPECT_EQ(type.problem, "");
  EXPECT_THAT(type.classes, Contains(AllOf(Field(&sdk::ClassInfo::name, "gold"),
                                           Field(&sdk::ClassInfo::definition, kGold))));
  const StatusOr<sdk::ClassOptions> options = provider_->Resolve("gold");
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->rdt_class, "qrm-gold");
}

TEST_F(RdtClassesTest, GroupsOfOthersAreNotChanged) {
  std::filesystem::create_directory(PathOf("pqos1"));
  std::filesystem::create_directory(PathOf("qrm-old"));
  WriteFile("pqos1/schemata", "L3:0=f\n");
  const std::string before = ReadFile("pqos1/schemata");
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  EXPECT_EQ(ReadFile("pqos1/schemata"), before);
  EXPECT_FALSE(std::filesystem::exists(PathOf("qrm-old"))) << "a class of a former configuration";
}

TEST_F(RdtClassesTest, TooManyClassesLeaveTheTreeAsItIs) {
  Start({.closids = 4});
  std::filesystem::create_directory(PathOf("pqos1"));
  std::filesystem::create_directory(PathOf("qrm-old"));
  const std::string before = Tree() + ReadFile("info/last_cmd_status");
  EXPECT_EQ(MessageOf(provider_->Refresh({})),
            "cannot create the groups of 3 classes: resctrl supports 4 groups on this machine, "
            "including the root group and 1 other groups (pqos1); configure at most 2 classes");
  EXPECT_EQ(Tree() + ReadFile("info/last_cmd_status"), before);
}

TEST_F(RdtClassesTest, RejectionOfTheKernelInTheMiddleIsTakenBack) {
  std::filesystem::create_directory(PathOf("other"));
  WriteFile("schemata", "L3:0=ffff0;1=ffff0;8=ffff0\n");
  WriteFile("other/schemata", "L3:0=f;1=f;8=f\n");
  WriteFile("other/mode", "exclusive\n");
  std::filesystem::create_directory(PathOf("qrm-old"));
  WriteFile("qrm-old/schemata", "L3:0=f0000\n");
  const std::string before = Tree();
  EXPECT_THAT(MessageOf(provider_->Refresh({})),
              HasSubstr("the kernel says: Overlaps with exclusive group"));
  EXPECT_EQ(Tree(), before);
  EXPECT_THAT(provider_->List().problem, HasSubstr("Overlaps with exclusive group"));
}

TEST_F(RdtClassesTest, IdsThatRunOutInTheMiddleAreTakenBack) {
  Start({.rmids = 3});
  const std::string before = Tree();
  EXPECT_EQ(provider_->Refresh({}).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Tree(), before);
}

TEST_F(RdtClassesTest, EveryThreadOfAForkStormIsMoved) {
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  const std::unique_ptr<ContainerCgroup> container = MakeContainer();
  container->Run([] { test::ForkStorm(4); });
  for (const char* const name : {"gold", "bronze", "silver", "gold"}) {
    ASSERT_TRUE(IsOk(provider_->Apply(container->Target(), "", name)));
    EXPECT_THAT(GroupsOf(*container), ElementsAre(std::string("qrm-") + name));
  }
}

bool IsFrozen(const std::string& cgroup) {
  std::string state;
  std::ifstream(cgroup + "/freezer.state") >> state;
  std::ostringstream events;
  events << std::ifstream(cgroup + "/cgroup.events").rdbuf();
  return state == "FROZEN" || events.str().find("frozen 1") != std::string::npos;
}

TEST_F(RdtClassesTest, ContainerThatIsNeverCleanIsFrozenForTheRest) {
  const std::unique_ptr<ContainerCgroup> container = MakeContainer();
  const pid_t pid = container->Run(test::Idle);
  container->Run(test::Idle);
  // The process that is asked for last is put back before its turn, and is missing in each pass.
  Start({}, [this, pid, &container](test::ResctrlModel& model, const std::string& path) {
    if (path == "qrm-gold/tasks" && !IsFrozen(container->directory())) {
      model.threads().Move(pid, {});  // as a child that copied its parent's group
      std::ofstream(dir_ / "put-back");
    }
  });
  resctrl_->Watch(container->directory());
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  EXPECT_TRUE(IsOk(provider_->Apply(container->Target(), "", "gold")));
  EXPECT_TRUE(std::filesystem::exists(dir_ / "put-back"));
  EXPECT_THAT(GroupsOf(*container), ElementsAre("qrm-gold"));
  EXPECT_FALSE(IsFrozen(container->directory()));
}

TEST_F(RdtClassesTest, ExecIntoTheFormerGroupIsFoundAndMoved) {
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  const std::unique_ptr<ContainerCgroup> container = MakeContainer();
  container->Run(test::Idle);
  ASSERT_TRUE(IsOk(provider_->Apply(container->Target(), "silver", "gold")));
  EXPECT_EQ(provider_->ReadBack(container->Target(), "gold").value_or("unread"), "");

  const pid_t exec = container->Run(test::Idle);
  Move(exec, "qrm-silver");
  EXPECT_EQ(provider_->ReadBack(container->Target(), "gold").value_or("unread"),
            "2 threads, not all in group qrm-gold: 1 in group qrm-silver");
  ASSERT_TRUE(IsOk(provider_->Apply(container->Target(), "gold", "gold")));
  EXPECT_EQ(provider_->ReadBack(container->Target(), "gold").value_or("unread"), "");
}

TEST_F(RdtClassesTest, ClassIsRemovedByTheRootGroup) {
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  const std::unique_ptr<ContainerCgroup> container = MakeContainer();
  container->Run(test::Idle);
  ASSERT_TRUE(IsOk(provider_->Apply(container->Target(), "", "gold")));
  ASSERT_TRUE(IsOk(provider_->Apply(container->Target(), "gold", "")));
  EXPECT_THAT(GroupsOf(*container), ElementsAre(""));
}

TEST_F(RdtClassesTest, GoneContainerIsNotFound) {
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  const sdk::ClassTarget target{.key = {"pod", "c"}, .cgroups_path = "/qrm-no-such-cgroup"};
  EXPECT_EQ(provider_->Apply(target, "", "gold").code(), StatusCode::kNotFound);
  EXPECT_EQ(provider_->ReadBack(target, "gold").status().code(), StatusCode::kNotFound);
}

TEST_F(RdtClassesTest, SchemataThatOthersRewroteArePutBackAndCounted) {
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  EXPECT_EQ(provider_->List().repairs, 0U);
  WriteFile("qrm-gold/schemata", "L3:1=3\n");
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  EXPECT_EQ(provider_->List().repairs, 1U);
  EXPECT_THAT(ReadFile("qrm-gold/schemata"), HasSubstr("L3:0=fff;1=fff;8=fff\n"));
}

TEST_F(RdtClassesTest, GroupThatOthersRemovedIsMadeAgainAndItsThreadsAreFound) {
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  const std::unique_ptr<ContainerCgroup> container = MakeContainer();
  container->Run(test::Idle);
  ASSERT_TRUE(IsOk(provider_->Apply(container->Target(), "", "gold")));
  std::filesystem::remove(PathOf("qrm-gold"));
  ASSERT_TRUE(IsOk(provider_->Refresh({"gold"})));
  EXPECT_EQ(provider_->List().repairs, 1U);
  EXPECT_EQ(provider_->ReadBack(container->Target(), "gold").value_or("unread"),
            "1 threads, not all in group qrm-gold: 1 in the root group");
}

TEST_F(RdtClassesTest, GroupThatVanishesInTheMiddleOfAMoveIsMadeAgain) {
  Start({}, [removed = std::make_shared<bool>(false)](test::ResctrlModel& model,
                                                      const std::string& path) {
    if (path == "qrm-gold/tasks" && !*removed) {
      *removed = true;
      model.RemoveDirectory("qrm-gold");
    }
  });
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  const std::unique_ptr<ContainerCgroup> container = MakeContainer();
  container->Run(test::Idle);
  container->Run(test::Idle);
  ASSERT_TRUE(IsOk(provider_->Apply(container->Target(), "", "gold")));
  EXPECT_THAT(GroupsOf(*container), ElementsAre("qrm-gold"));
  ASSERT_TRUE(IsOk(provider_->Refresh({"gold"})));
  EXPECT_EQ(provider_->List().repairs, 1U);
  EXPECT_THAT(ReadFile("qrm-gold/schemata"), HasSubstr("L3:0=fff;1=fff;8=fff\n"));
}

TEST_F(RdtClassesTest, UnmountIsAProblemUntilItIsBackAndThenCounted) {
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  resctrl_->Unmount();
  EXPECT_THAT(MessageOf(provider_->Refresh({})), HasSubstr("resctrl was unmounted"));
  EXPECT_EQ(provider_->Resolve("gold").status().code(), StatusCode::kFailedPrecondition);
  resctrl_->Mount();
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  EXPECT_TRUE(IsOk(provider_->Resolve("gold").status()));
  EXPECT_EQ(provider_->List().repairs, 4U) << "the mount and three groups";
  EXPECT_THAT(ReadFile("qrm-gold/schemata"), HasSubstr("L3:0=fff;1=fff;8=fff\n"));
}

TEST_F(RdtClassesTest, MachineWithoutResctrlSaysSo) {
  resctrl_->Unmount();
  EXPECT_THAT(MessageOf(provider_->Refresh({})), HasSubstr("run: mount -t resctrl resctrl"));
  EXPECT_THAT(provider_->List().problem, HasSubstr("resctrl is not mounted"));
  EXPECT_EQ(provider_->List().classes.size(), 3U);
}

TEST_F(RdtClassesTest, ConfigurationWithoutAClassInUseIsRejected) {
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  const std::string before = Tree();
  WriteConfig("partitions: {p: {classes: {silver: {}, bronze: {}, iron: {}}}}");
  EXPECT_THAT(MessageOf(provider_->Refresh({"gold", "silver"})),
              AllOf(HasSubstr("the previous classes stay in force"), HasSubstr("it lacks gold")));
  EXPECT_EQ(Tree(), before);
  EXPECT_EQ(provider_->List().problem, "");
  ASSERT_TRUE(IsOk(provider_->Refresh({"silver"})));
  EXPECT_FALSE(std::filesystem::exists(PathOf("qrm-gold")));
  EXPECT_TRUE(std::filesystem::exists(PathOf("qrm-iron")));
}

TEST_F(RdtClassesTest, WrongConfigurationLeavesTheFormerInForce) {
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  WriteConfig("partitions: {p: {l3Allocation: much}}");
  WriteFile("qrm-gold/schemata", "L3:1=3\n");
  EXPECT_FALSE(provider_->Refresh({}).ok());
  EXPECT_EQ(provider_->List().repairs, 1U) << "the former is kept up";
  EXPECT_TRUE(IsOk(provider_->Resolve("gold").status()));
}

TEST_F(RdtClassesTest, RootClassDividesTheRootGroupAndIsNotOffered) {
  WriteConfig(
      "partitions: {p: {l3Allocation: 100%, classes: {system/default: {l3Allocation: 50%}, c: "
      "{}}}}");
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  EXPECT_THAT(ReadFile("schemata"), HasSubstr("L3:0=3ff;1=3ff;8=3ff\n"));
  EXPECT_THAT(provider_->List().classes, ElementsAre(Field(&sdk::ClassInfo::name, "c")));
}

TEST_F(RdtClassesTest, TheRootGroupIsRestoredOnceTheFileDoesNotDivideItAnyMore) {
  const std::string before = ReadFile("schemata");
  WriteConfig(
      "partitions: {p: {l3Allocation: 100%, classes: {system/default: {l3Allocation: 50%}}}}");
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  ASSERT_NE(ReadFile("schemata"), before);
  MakeProvider("/dev/null");  // as after a restart without the type
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  EXPECT_EQ(ReadFile("schemata"), before);
}

TEST_F(RdtClassesTest, AClassWhoseWaysTheRootGroupMayUseSaysSo) {
  WriteConfig("partitions: {p: {l3Allocation: 50%, classes: {c: {}}}}");
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  EXPECT_THAT(provider_->List().classes.at(0).definition,
              HasSubstr("; the root group may use these ways"));
}

TEST_F(RdtClassesTest, MountOptionsDecideWhatIsWritten) {
  Start({.code_and_data = true, .bandwidth_in_mbps = true});
  WriteConfig(
      "partitions: {p: {l3Allocation: 100%, classes: {c: {l3Allocation: {all: {unified: 100%, "
      "code: 50%, data: 51-100%}}, mbAllocation: [10%, 700MBps]}}}}");
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  EXPECT_THAT(provider_->List().classes,
              ElementsAre(Field(&sdk::ClassInfo::definition,
                                "L3CODE:0=3ff;1=3ff;8=3ff L3DATA:0=ffc00;1=ffc00;8=ffc00 "
                                "MB:0=700;1=700;8=700; the root group may use these ways")));
}

TEST_F(RdtClassesTest, RuntimeThatManagesResctrlIsNotDisturbed) {
  std::filesystem::create_directory(dir_ / "containerd");
  std::ofstream(dir_ / "containerd/config.toml") << "  rdt_config_file = \"/etc/rdt.yaml\"\n";
  const std::string before = Tree();
  EXPECT_THAT(MessageOf(provider_->Refresh({})), HasSubstr("config.toml sets rdt_config_file"));
  EXPECT_EQ(Tree(), before);
}

TEST_F(RdtClassesTest, GroupsOfAFormerFileAreRemovedWithoutIt) {
  for (const std::string& file : {std::string("/dev/null"), std::string()}) {
    MakeProvider(dir_ / "rdt.yaml");
    ASSERT_TRUE(IsOk(provider_->Refresh({})));
    ASSERT_TRUE(std::filesystem::exists(PathOf("qrm-gold")));
    MakeProvider(file);
    ASSERT_TRUE(IsOk(provider_->Refresh({"gold"})));
    EXPECT_FALSE(std::filesystem::exists(PathOf("qrm-gold"))) << "with file '" << file << "'";
  }
}

TEST_F(RdtClassesTest, RuntimesGroupsAreOfferedAndNeverChanged) {
  MakeProvider("");
  std::filesystem::create_directory(PathOf("theirs"));
  const std::string before = Tree();
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  EXPECT_THAT(provider_->List().classes, ElementsAre(Field(&sdk::ClassInfo::name, "theirs")));
  EXPECT_FALSE(provider_->List().is_mutable);
  EXPECT_EQ(provider_->Resolve("theirs").value_or(sdk::ClassOptions()).rdt_class, "theirs");

  const std::unique_ptr<ContainerCgroup> container = MakeContainer();
  const pid_t pid = container->Run(test::Idle);
  EXPECT_EQ(provider_->Apply(container->Target(), "", "theirs").code(),
            StatusCode::kFailedPrecondition);
  Move(pid, "theirs");
  EXPECT_TRUE(IsOk(provider_->Apply(container->Target(), "theirs", "theirs")));
  EXPECT_EQ(Tree(), before);
}

TEST_F(RdtClassesTest, CountersAreSummedOverCachesAndMissingOnesLeftOut) {
  WriteConfig("partitions: {p: {classes: {c: {}}}}");
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  resctrl_->SetCounter("qrm-c", "llc_occupancy", "1000");
  resctrl_->SetCounter("qrm-c", "mbm_total_bytes", "Unavailable");
  resctrl_->SetCounter("qrm-c", "mbm_local_bytes", "7");
  EXPECT_THAT(provider_->Readings(),
              ElementsAre(sdk::ClassReading{"c", "llc_occupancy_bytes", 3000},
                          sdk::ClassReading{"c", "mbm_local_bytes", 21}));
}

TEST_F(RdtClassesTest, UnknownClassIsNotFound) {
  ASSERT_TRUE(IsOk(provider_->Refresh({})));
  EXPECT_EQ(provider_->Resolve("iron").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(provider_->Apply({}, "", "iron").code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace qrm::rdt::rdt_classes_test
