// The driver as qrmd asks it, on a machine whose files behave as nastily as the kernel's.
#include "plugins/cci/cci_driver.h"

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "plugins/kernel/interrupts.h"
#include "test/plugins/cci/knob_machine.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"
#include "topology/discovery.h"

namespace qrm::cci::cci_driver_test {
namespace {

using test::IsOk;
using test::KnobMachine;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const ContainerKey kKey{"uid", "main"};

class CciDriverTest : public testing::Test {
 protected:
  CciDriverTest() { Start(); }
  /// As a new process.
  void Start() {
    driver_.reset();
    driver_ = std::make_unique<CciDriver>(
        *Discover(*MachineSource::Parse("synthetic:package:2 [numa] core:2 pu:2")), Policies(),
        machine_.files, *kernel::KernelValues::Open(machine_.files, dir_ / "knobs.json"),
        scheduling_);
  }
  StatusOr<sdk::ComputeGrant> Admit(const std::string& spec, int64_t milli_cpus) {
    auto grant = driver_->Admit({.key = kKey,
                                 .spec = spec,
                                 .available = CpuSet::Range(1, 7),
                                 .shared = CpuSet::Range(1, 7),
                                 .milli_cpus = milli_cpus});
    if (grant.ok()) {
      grants_[kKey] = *grant;
    }
    return grant;
  }
  Status Add() { return driver_->Add({.key = kKey, .container_id = "c1"}); }
  std::string Value(const std::string& path) { return machine_.files.values[path]; }

  const test::TempDir dir_ = test::TempDir::InMemory();
  KnobMachine machine_;
  const std::map<std::string, std::string> before_ = machine_.files.values;
  kernel::KnobMachine scheduling_;
  sdk::ComputeGrants grants_;  // as the SDK keeps them
  std::unique_ptr<CciDriver> driver_;
};

TEST_F(CciDriverTest, AProgramFindsItsPartsInTheEnvironment) {
  const auto grant = Admit(
      "{cores: ['*2', 'cpu:5'], attributes: ['smt-sibling-required', 'exclusive, no-quota?']}",
      3000);
  ASSERT_TRUE(IsOk(grant.status()));
  EXPECT_EQ(grant->envs, (StringMap{{"CCI_CPUS", "2-3,5"},
                                    {"CCI_PARTS", "2-3 smt-sibling-required; 5 exclusive"},
                                    {"CCI_UNMET", "no-quota?"}}));
}

TEST_F(CciDriverTest, NothingUnmetIsNotReported) {
  const auto grant = Admit("", 2000);
  ASSERT_TRUE(IsOk(grant.status()));
  EXPECT_EQ(grant->envs, (StringMap{{"CCI_CPUS", "2-3"}, {"CCI_PARTS", "2-3 exclusive"}}));
}

TEST_F(CciDriverTest, PartsOfCpusAreRejected) {
  for (const int64_t milli_cpus : {0, 500, 1500}) {
    EXPECT_THAT(MessageOf(Admit("", milli_cpus).status()), HasSubstr("it gives whole CPUs"));
  }
}

TEST_F(CciDriverTest, AFractionOfACpuIsSharedBesideWholeOnes) {
  const std::string spec = "{cores: ['*2', '*1'], attributes: [exclusive, shared]}";
  const auto grant = Admit(spec, 2500);
  ASSERT_TRUE(IsOk(grant.status()));
  EXPECT_EQ(grant->Cpus(), CpuSet::Range(2, 3));
  EXPECT_EQ(grant->SharedOf(CpuSet::Range(0, 3)), CpuSet::Range(0, 1));
  EXPECT_EQ(grant->envs.at("CCI_PARTS"), "2-3 exclusive; * shared");
  EXPECT_THAT(
      MessageOf(Admit("{cores: ['*3', '*1'], attributes: [exclusive, shared]}", 3500).status()),
      testing::IsEmpty());
  EXPECT_THAT(
      MessageOf(Admit("{cores: ['*3', 'cpu:0'], attributes: [exclusive, shared]}", 3500).status()),
      HasSubstr("CPUs 0 are not in the default pool"));
}

TEST_F(CciDriverTest, ANumberThatWasACpuIsAnsweredWithBothReadings) {
  const auto both =
      HasSubstr("5 in cores means 5 CPUs, no longer the CPU with number 5; write cpu:5");
  EXPECT_THAT(MessageOf(Admit("{cores: '5'}", 1000).status()),
              AllOf(HasSubstr("the spec asks for 5 CPUs, but the container requests 1"), both));
  EXPECT_THAT(MessageOf(Admit("{cores: '5'}", 2000).status()), Not(both)) << "it never was";
  const auto grant = Admit("{cores: '1'}", 1000);
  ASSERT_TRUE(IsOk(grant.status()));
  EXPECT_THAT(grant->warnings, ElementsAre(HasSubstr("1 in cores means 1 CPUs, no longer")));
}

TEST_F(CciDriverTest, ANumberThatCouldNotBeACpuIsNoWarning) {
  const auto grant = Admit("{cores: '2'}", 2000);
  ASSERT_TRUE(IsOk(grant.status()));
  EXPECT_THAT(grant->warnings, ElementsAre());
}

TEST_F(CciDriverTest, ValuesAreSetBeforeTheStartAndRestoredAfterTheEnd) {
  ASSERT_TRUE(
      IsOk(Admit("{cores: 'cpu:2', attributes: 'no-irq, no-idle, freq=1GHz, governor=performance'}",
                 1000)
               .status()));
  EXPECT_EQ(machine_.files.values, before_) << "an admission sets nothing";
  ASSERT_TRUE(IsOk(Add()));
  ASSERT_TRUE(IsOk(Add())) << "started again in place";
  EXPECT_EQ(Value(KnobMachine::Irq(5)), "0-1,3-7");
  EXPECT_EQ(Value("proc/irq/default_smp_affinity"), "fb");
  EXPECT_EQ(Value(KnobMachine::Latency(2)), "n/a");
  EXPECT_EQ(Value("sys/devices/system/cpu/cpufreq/policy2/scaling_min_freq"), "1000000");
  EXPECT_EQ(Value("sys/devices/system/cpu/cpufreq/policy2/scaling_governor"), "performance");
  ASSERT_TRUE(IsOk(driver_->Remove(kKey)));
  EXPECT_EQ(machine_.files.values, before_);
}

TEST_F(CciDriverTest, AResizedContainerKeepsItsCpusAndLosesOrGetsSome) {
  const auto first = Admit("", 2000);
  ASSERT_TRUE(IsOk(first.status()));
  ASSERT_EQ(first->Cpus(), (CpuSet{2, 3}));
  const auto resized = [&](int64_t milli_cpus, const std::string& spec = "") {
    return driver_->Resize({.key = kKey,
                            .spec = spec,
                            .available = CpuSet::Range(0, 7),
                            .shared = CpuSet{0, 1, 4, 5, 6, 7},
                            .current = first->Cpus(),
                            .milli_cpus = milli_cpus},
                           *first);
  };
  EXPECT_EQ(resized(4000)->Cpus(), CpuSet::Range(0, 3));
  EXPECT_EQ(resized(1000)->Cpus().Count(), 1);
  EXPECT_TRUE(resized(1000)->Cpus().IsSubsetOf(first->Cpus()));
  EXPECT_EQ(resized(2000)->Cpus(), first->Cpus());
  EXPECT_THAT(MessageOf(resized(3000, "{cores: '*2'}").status()),
              HasSubstr("the spec takes 2 CPUs, including idle thread siblings, but the container "
                        "requests 3"));
}

TEST_F(CciDriverTest, ValuesFollowAResizeOnceItCounts) {
  ASSERT_TRUE(IsOk(Admit("{cores: 'cpu:2', attributes: no-idle}", 1000).status()));
  ASSERT_TRUE(IsOk(Add()));
  const sdk::ComputeGrant moved{.parts = {{.cpus = {4}, .name = "no-idle"}}};
  ASSERT_TRUE(IsOk(driver_->Restore({{kKey, moved}})));
  ASSERT_TRUE(IsOk(Add()));
  EXPECT_EQ(Value(KnobMachine::Latency(2)), before_.at(KnobMachine::Latency(2)));
  EXPECT_EQ(Value(KnobMachine::Latency(4)), "n/a");
}

TEST_F(CciDriverTest, AKilledDriverKnowsTheAttributesOfItsContainers) {
  ASSERT_TRUE(IsOk(Admit("{cores: 'cpu:2', attributes: no-idle}", 1000).status()));
  Start();
  ASSERT_TRUE(IsOk(driver_->Restore(grants_)));
  ASSERT_TRUE(IsOk(Add()));
  EXPECT_EQ(Value(KnobMachine::Latency(2)), "n/a");
  Start();
  ASSERT_TRUE(IsOk(driver_->Restore(grants_)));
  EXPECT_EQ(Value(KnobMachine::Latency(2)), "n/a") << "it still runs";
  Start();
  ASSERT_TRUE(IsOk(driver_->Restore({})));
  EXPECT_EQ(machine_.files.values, before_) << "it was removed meanwhile";
}

TEST_F(CciDriverTest, AnUnsupportedAttributeIsRejectedOrUnmet) {
  EXPECT_THAT(MessageOf(Admit("{cores: 'cpu:7', attributes: no-idle}", 1000).status()),
              HasSubstr("cores, line 1: no-idle is not possible: CPUs 7 have no pm_qos_resume"));
  const auto grant = Admit("{cores: 'cpu:7', attributes: 'exclusive, no-idle?'}", 1000);
  ASSERT_TRUE(IsOk(grant.status()));
  EXPECT_EQ(grant->parts[0].name, "exclusive");
  EXPECT_EQ(grant->unmet[0].token, "no-idle?");
}

TEST_F(CciDriverTest, AnyCpusAreThoseThatCanHaveTheAttributes) {
  const auto grant = Admit("{cores: '*2', attributes: 'no-irq, freq=1GHz'}", 2000);
  ASSERT_TRUE(IsOk(grant.status()));
  EXPECT_EQ(ToString(grant->Cpus()), "2-3") << "1 shares its policy with 0, 6 and 7 have none";
  EXPECT_THAT(MessageOf(Admit("{cores: '*7', attributes: no-irq}", 7000).status()),
              HasSubstr("no-irq permits CPUs 1-4,6-7, but 7 CPUs are requested"));
}

TEST_F(CciDriverTest, FastCpusAreChosenByRank) {
  for (int cpu = 0; cpu < 8; ++cpu) {
    machine_.files
        .values["sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/acpi_cppc/highest_perf"] =
        cpu == 3 ? "200" : "100";
  }
  const auto grant = Admit("{cores: '*1', attributes: priority=1.0}", 1000);
  ASSERT_TRUE(IsOk(grant.status()));
  EXPECT_EQ(ToString(grant->Cpus()), "3");
}

// For example, an interrupt that appeared since the admission.
TEST_F(CciDriverTest, AnInterruptThatStaysFailsTheStartAndNothingRemains) {
  ASSERT_TRUE(IsOk(Admit("{cores: 'cpu:2', attributes: 'no-irq, no-idle'}", 1000).status()));
  machine_.files.on_write[KnobMachine::Irq(6)] = test::RefuseWrite;
  machine_.files.values["proc/irq/6/effective_affinity_list"] = "2";
  EXPECT_THAT(MessageOf(Add()), HasSubstr("the interrupt of proc/irq/6 stays on CPUs 2"));
  machine_.files.values["proc/irq/6/effective_affinity_list"] = "5";
  EXPECT_EQ(machine_.files.values, before_);
  EXPECT_TRUE(IsOk(Add())) << "it may use other CPUs, too";
}

TEST_F(CciDriverTest, RealTimeIsRejectedOrUnmetWhereContainersHaveNoBudget) {
  std::ofstream(dir_ / "cpu.rt_runtime_us") << "950000\n";
  scheduling_.files_root = dir_.path();
  Start();
  EXPECT_THAT(
      MessageOf(Admit("{cores: '*', container_attributes: 'sched=fifo:10'}", 1000).status()),
      HasSubstr("sched=fifo:10 is not possible: policy fifo 10 "));
  const auto grant = Admit("{cores: '*', container_attributes: 'sched=fifo:10?'}", 1000);
  ASSERT_TRUE(IsOk(grant.status()));
  EXPECT_EQ(grant->unmet[0].token, "sched=fifo:10?");
  EXPECT_EQ(grant->envs.at("CCI_UNMET"), "sched=fifo:10?");
  EXPECT_FALSE(grant->envs.contains("CCI_CONTAINER"));
}

TEST_F(CciDriverTest, AContainerAttributeThatAnotherProcessSetIsRejectedOrUnmet) {
  EXPECT_THAT(MessageOf(Admit("{cores: '*', container_attributes: 'x/y=1'}", 1000).status()),
              HasSubstr("x/y=1 is not supported by this driver"));
  EXPECT_TRUE(IsOk(Admit("{cores: '*', container_attributes: 'x/y=1?'}", 1000).status()));
}

// The proposal's examples, on 32 CPUs; the blocks of example 1 are indented as YAML.
constexpr char kExampleOne[] =
    "cores: |\n  2\n  6\n  4\n"
    "compute_attributes: |\n"
    "  exclusive, smt-sibling-required, 2.1Ghz, 1.0 priority, no-irq\n"
    "  exclusive\n"
    "  shared\n";

class ProposalTest : public testing::Test {
 protected:
  StatusOr<sdk::ComputeGrant> Admit(const std::string& spec, int64_t milli_cpus) {
    driver_ = std::make_unique<CciDriver>(
        *Discover(*MachineSource::Parse("synthetic:package:2 [numa] core:8 pu:2")), policies_,
        machine_.files, *kernel::KernelValues::Open(machine_.files, dir_ / "knobs.json"),
        kernel::KnobMachine());
    return driver_->Admit({.key = kKey,
                           .spec = spec,
                           .available = CpuSet::Range(1, 31),
                           .shared = CpuSet::Range(1, 31),
                           .milli_cpus = milli_cpus});
  }

  const test::TempDir dir_ = test::TempDir::InMemory();
  KnobMachine machine_;
  Policies policies_;
  std::unique_ptr<CciDriver> driver_;
};

TEST_F(ProposalTest, ExampleOneIsTwoSiblingsSixExclusiveAndFourSharedCpusOfTwelve) {
  for (int cpu = 0; cpu < 32; ++cpu) {
    machine_.AddPolicy(cpu, std::to_string(cpu));
    machine_.AddPreferences(cpu);
  }
  const auto grant = Admit(kExampleOne, 12000);
  ASSERT_TRUE(IsOk(grant.status()));
  ASSERT_EQ(grant->parts.size(), 3U);
  EXPECT_EQ(ToString(grant->parts[0].cpus), "2-3");
  EXPECT_EQ(grant->parts[1].cpus.Count(), 6);
  EXPECT_EQ(grant->Cpus().Count(), 8) << "four of the twelve are shared";
  EXPECT_TRUE(grant->parts[2].shared);
  EXPECT_THAT(grant->warnings, ElementsAre());

  ASSERT_TRUE(IsOk(driver_->Add({.key = kKey, .container_id = "c1"})));
  for (const std::string cpu : {"2", "3"}) {
    const std::string policy = "sys/devices/system/cpu/cpufreq/policy" + cpu + "/";
    EXPECT_EQ(machine_.files.values[policy + "scaling_min_freq"], "2100000");
    EXPECT_EQ(machine_.files.values[policy + "energy_performance_preference"], "performance");
  }
  EXPECT_EQ(machine_.files.values[KnobMachine::Irq(5)], "0-1,4-7");
}

TEST_F(ProposalTest, ExampleOneWithoutCpufreqIsRejectedWithItsName) {
  std::erase_if(machine_.files.values,
                [](const auto& file) { return file.first.find("cpufreq") != std::string::npos; });
  EXPECT_THAT(MessageOf(Admit(kExampleOne, 12000).status()),
              HasSubstr("cores, line 1: freq=2100000kHz is not possible: CPU 2 has no cpufreq"));
}

TEST_F(ProposalTest, ExampleTwoIsAPolicyInTheDriversFileForAllPodsThatSayNothing) {
  const auto file = config::Section::Parse(
      "policies: {default: {attributes: 'exclusive, smt-sibling-required'}}", "cci.yaml");
  policies_ = *ParseConfig(*file);
  const auto grant = Admit("", 4000);
  ASSERT_TRUE(IsOk(grant.status()));
  EXPECT_EQ(ToString(grant->Cpus()), "2-5") << "exclusive whole cores, as static gives them";
  EXPECT_THAT(MessageOf(Admit("", 3000).status()), HasSubstr("cannot take 3 CPUs as whole cores"));
  EXPECT_EQ(ToString(Admit("{cores: 'cpu:7'}", 1000)->Cpus()), "7") << "the pod's own spec";
}

class BalancerTest : public CciDriverTest {
 protected:
  BalancerTest() { StartBalancer("77"); }
  void StartBalancer(const std::string& process) {
    machine_.files.values["proc/" + process + "/comm"] = "irqbalance";
    machine_.files.values[kernel::BanFile(process)] = "7";
  }
  void StopBalancer(const std::string& process) {
    machine_.files.values.erase("proc/" + process + "/comm");
    machine_.files.values.erase(kernel::BanFile(process));
  }
};

TEST_F(BalancerTest, ABalancerLeavesQuietCpusUntilTheEnd) {
  const auto before = machine_.files.values;
  ASSERT_TRUE(IsOk(Admit("{cores: 'cpu:2', attributes: no-irq}", 1000).status()));
  ASSERT_TRUE(IsOk(Add()));
  EXPECT_EQ(Value(kernel::BanFile("77")), "2,7");
  ASSERT_TRUE(IsOk(driver_->Remove(kKey)));
  EXPECT_EQ(machine_.files.values, before);
}

TEST_F(BalancerTest, ARestartedBalancerGetsTheBansAtTheNextChangeAndKeepsItsBans) {
  ASSERT_TRUE(IsOk(Admit("{cores: 'cpu:2', attributes: no-irq}", 1000).status()));
  ASSERT_TRUE(IsOk(Add()));
  StopBalancer("77");
  StartBalancer("99");
  machine_.files.values[kernel::BanFile("99")] = "6";
  ASSERT_TRUE(IsOk(driver_->Remove({"uid", "another"})));
  EXPECT_EQ(Value(kernel::BanFile("99")), "2,6");
  ASSERT_TRUE(IsOk(driver_->Remove(kKey)));
  EXPECT_EQ(Value(kernel::BanFile("99")), "6");
}

TEST_F(BalancerTest, ABalancerThatStartedWhileTheDriverWasNotRunningGetsTheBansAtTheDriversStart) {
  StopBalancer("77");
  ASSERT_TRUE(IsOk(Admit("{cores: 'cpu:2', attributes: no-irq}", 1000).status()));
  ASSERT_TRUE(IsOk(Add()));
  StartBalancer("99");
  Start();
  ASSERT_TRUE(IsOk(driver_->Restore(grants_)));
  EXPECT_EQ(Value(kernel::BanFile("99")), "2,7");
}

TEST_F(BalancerTest, ABalancerThatDoesNotAnswerFailsTheStartAndNothingRemains) {
  const auto before = machine_.files.values;
  ASSERT_TRUE(IsOk(Admit("{cores: 'cpu:2', attributes: no-irq}", 1000).status()));
  machine_.files.on_write[kernel::BanFile("77")] = test::RefuseWrite;
  EXPECT_FALSE(Add().ok());
  EXPECT_EQ(machine_.files.values, before);
}

class PartitionTest : public CciDriverTest {
 protected:
  PartitionTest() {
    for (const std::string cgroup : {"kubepods", "kubepods/pod1", "kubepods/pod1/c1"}) {
      AddCgroup(cgroup);
    }
  }
  void AddCgroup(const std::string& cgroup) {
    machine_.files.values[Exclusive(cgroup)] = "";
    machine_.files.values[Partition(cgroup)] = "member";
  }
  static std::string Exclusive(const std::string& cgroup) {
    return "sys/fs/cgroup/" + cgroup + "/cpuset.cpus.exclusive";
  }
  static std::string Partition(const std::string& cgroup) {
    return "sys/fs/cgroup/" + cgroup + "/cpuset.cpus.partition";
  }
  Status AddIn(const std::string& cgroup) {
    return driver_->Add({.key = kKey, .container_id = "c", .cgroup = "/" + cgroup});
  }
};

TEST_F(PartitionTest, AContainerThatIsNotBalancedIsAPartitionUntilItIsGone) {
  const auto before = machine_.files.values;
  ASSERT_TRUE(IsOk(Admit("{cores: '2-3', attributes: no-balance}", 2000).status()));
  machine_.files.writes.clear();
  ASSERT_TRUE(IsOk(AddIn("kubepods/pod1/c1")));
  using Write = std::pair<std::string, std::string>;
  EXPECT_THAT(machine_.files.writes,
              testing::ElementsAre(Write(Exclusive("kubepods"), "2-3"),
                                   Write(Exclusive("kubepods/pod1"), "2-3"),
                                   Write(Exclusive("kubepods/pod1/c1"), "2-3"),
                                   Write(Partition("kubepods/pod1/c1"), "isolated")))
      << "from the top down";
  ASSERT_TRUE(IsOk(driver_->Remove(kKey)));
  EXPECT_EQ(machine_.files.values, before);
}

TEST_F(PartitionTest, AnInstanceThatFollowsLeavesNothingOnTheCgroupBeforeIt) {
  AddCgroup("kubepods/pod1/c2");
  ASSERT_TRUE(IsOk(Admit("{cores: '2-3', attributes: no-balance}", 2000).status()));
  ASSERT_TRUE(IsOk(AddIn("kubepods/pod1/c1")));
  ASSERT_TRUE(IsOk(AddIn("kubepods/pod1/c2")));
  EXPECT_EQ(Value(Partition("kubepods/pod1/c1")) + " " + Value(Exclusive("kubepods/pod1/c1")),
            "member ");
  EXPECT_EQ(Value(Partition("kubepods/pod1/c2")), "isolated");
  EXPECT_EQ(Value(Exclusive("kubepods")), "2-3");
}

TEST_F(PartitionTest, LinesThatAreBalancedAndOnesThatAreNotAreRejected) {
  EXPECT_THAT(
      MessageOf(
          Admit("{cores: ['cpu:2', 'cpu:3'], attributes: [no-balance, exclusive]}", 2000).status()),
      HasSubstr("no-balance applies to all CPUs of a container, but is in 1 of 2 lines"));
}

TEST_F(CciDriverTest, AnInterruptThatOnlyLooksAsIfItCouldBeMovedIsFoundAtTheAdmission) {
  machine_.files.on_write[KnobMachine::Irq(6)] = test::RefuseWrite;
  machine_.files.values["proc/irq/6/effective_affinity_list"] = "2";
  EXPECT_THAT(MessageOf(Admit("{cores: 'cpu:2', attributes: no-irq}", 1000).status()),
              HasSubstr("the kernel does not allow interrupt 6 on CPUs 2 to be moved"));
  const auto grant = Admit("{cores: 'cpu:2', attributes: 'exclusive, no-irq?'}", 1000);
  ASSERT_TRUE(IsOk(grant.status()));
  EXPECT_EQ(grant->unmet[0].token, "no-irq?");
}

TEST_F(CciDriverTest, ARemovalThatCannotRestoreIsToComeAgain) {
  ASSERT_TRUE(IsOk(Admit("{cores: 'cpu:2', attributes: no-idle}", 1000).status()));
  ASSERT_TRUE(IsOk(Add()));
  machine_.files.on_write[KnobMachine::Latency(2)] = test::RefuseWrite;
  EXPECT_FALSE(driver_->Remove(kKey).ok());
  machine_.files.on_write.clear();
  EXPECT_TRUE(IsOk(driver_->Remove(kKey)));
  EXPECT_EQ(machine_.files.values, before_);
}

}  // namespace
}  // namespace qrm::cci::cci_driver_test
