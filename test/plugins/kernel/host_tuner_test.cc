// Classes on files that behave as nastily as the kernel's.
#include "plugins/kernel/host_tuner.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/base/errorf.h"
#include "plugins/kernel/tunable_machine.h"
#include "test/plugins/kernel/nasty_files.h"
#include "test/support/manual_clock.h"
#include "test/support/rounds.h"
#include "test/support/temp_dir.h"

namespace qrm::kernel::host_tuner_test {
namespace {

using Meaning = Frequency::Meaning;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kSystem[] = "sys/devices/system/cpu";

std::string PolicyFile(int cpu, const char* name) {
  return fmt::format("{}/cpufreq/policy{}/{}", kSystem, cpu, name);
}

class HostTunerTest : public testing::Test {
 protected:
  HostTunerTest() {
    files_.values["sys/devices/system/cpu/online"] = "0-3";
    for (int cpu = 0; cpu < 4; ++cpu) {
      for (const auto& [name, value] : std::map<const char*, const char*>{
               {"affected_cpus", nullptr},
               {"cpuinfo_min_freq", "800000"},
               {"cpuinfo_max_freq", "3000000"},
               {"base_frequency", "2000000"},
               {"scaling_available_governors", "performance powersave"},
               {"energy_performance_available_preferences", "performance power"},
               {"scaling_min_freq", "800000"},
               {"scaling_max_freq", "2900000"},
               {"scaling_governor", "powersave"},
               {"energy_performance_preference", "power"}}) {
        files_.values[PolicyFile(cpu, name)] = value == nullptr ? std::to_string(cpu) : value;
      }
      const std::string topology = fmt::format("{}/cpu{}/topology", kSystem, cpu);
      files_.values[topology + "/physical_package_id"] = std::to_string(cpu / 2);
      files_.values[topology + "/die_id"] = "0";
    }
    for (const char* package : {"package_00_die_00", "package_01_die_00"}) {
      const std::string uncore = fmt::format("{}/intel_uncore_frequency/{}", kSystem, package);
      files_.values[uncore + "/initial_min_freq_khz"] = "800000";
      files_.values[uncore + "/initial_max_freq_khz"] = "2400000";
      files_.values[uncore + "/min_freq_khz"] = "900000";
      files_.values[uncore + "/max_freq_khz"] = "2400000";
    }
    files_.values["proc/irq/default_smp_affinity"] = "f";
    for (const int irq : {5, 6}) {
      files_.values[Irq(irq)] = "0-3";
      files_.values[Effective(irq)] = "2";
    }
    Start();
  }

  static std::string Irq(int irq) { return fmt::format("proc/irq/{}/smp_affinity_list", irq); }
  static std::string Effective(int irq) {
    return fmt::format("proc/irq/{}/effective_affinity_list", irq);
  }
  /// As a new process.
  void Start() {
    tuner_.reset();
    tuner_ = std::make_unique<HostTuner>(files_, journal_, clock_);
  }
  void Tune(const std::string& cpus) {
    TuningPlan plan{.profiles = {{"fast",
                                  {.frequency = {{Meaning::kBase}, {Meaning::kMost}},
                                   .governor = "performance",
                                   .uncore = {.least = {Meaning::kMost}}}}}};
    plan.cpus["fast"] = *CpuSet::Parse(cpus);
    Tune(plan);
  }
  void Quiet(const std::string& cpus) {
    TuningPlan plan{.profiles = {{"quiet", {.irq = IrqRule::kNone}}}};
    plan.cpus["quiet"] = *CpuSet::Parse(cpus);
    Tune(plan);
  }
  void Tune(const TuningPlan& plan) {
    tuner_->Tune(plan);
    tuner_->Finish();
  }
  std::string Least(int cpu) { return files_.values[PolicyFile(cpu, "scaling_min_freq")]; }
  std::string Governor(int cpu) { return files_.values[PolicyFile(cpu, "scaling_governor")]; }
  std::string Uncore(int package) {
    return files_.values[fmt::format("{}/intel_uncore_frequency/package_0{}_die_00/min_freq_khz",
                                     kSystem, package)];
  }

  const test::TempDir dir_ = test::TempDir::InMemory();
  const std::string journal_ = dir_ / "classes.json";
  test::NastyFiles files_;
  test::ManualClock clock_;
  std::unique_ptr<HostTuner> tuner_;
};

TEST_F(HostTunerTest, ACpuIsTunedWhileItIsOfTheClassAndThenAsBefore) {
  Tune("2");
  EXPECT_EQ(Least(2), "2000000");
  EXPECT_EQ(Governor(2), "performance");
  EXPECT_EQ(Uncore(1), "2400000");
  EXPECT_EQ(Uncore(0), "900000") << "the other package's";
  Tune("3");
  EXPECT_EQ(Least(2), "800000");
  EXPECT_EQ(Governor(2), "powersave");
  EXPECT_EQ(Least(3), "2000000");
  Tune(TuningPlan());
  EXPECT_EQ(Least(3), "800000");
  EXPECT_EQ(files_.values[PolicyFile(3, "scaling_max_freq")], "2900000");
  EXPECT_EQ(Uncore(1), "900000");
}

TEST_F(HostTunerTest, ANewProcessGoesOnAndKnowsWhatWasBefore) {
  Tune("2");
  files_.writes.clear();
  Start();
  EXPECT_EQ(Least(2), "2000000") << "the end of a process puts nothing back";
  Tune("2");
  EXPECT_THAT(files_.writes, IsEmpty());
  Start();
  Tune(TuningPlan());
  EXPECT_EQ(Least(2), "800000");
  EXPECT_EQ(Governor(2), "powersave");
}

TEST_F(HostTunerTest, WithoutClassesAndJournalItTouchesNothing) {
  Tune(TuningPlan());
  EXPECT_THAT(files_.writes, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(journal_));
}

TEST_F(HostTunerTest, WhatAnotherProcessChangedIsRepairedWithinHalfAMinute) {
  Tune("2");
  files_.values[PolicyFile(2, "scaling_min_freq")] = "1000000";
  clock_.Advance(seconds(29));
  Tune("2");
  EXPECT_EQ(Least(2), "1000000") << "the same plan is not compared with the machine each time";
  clock_.Advance(seconds(1));
  Tune("2");
  EXPECT_EQ(Least(2), "2000000");
}

TEST_F(HostTunerTest, APlanThatIsSoIsNotWrittenAgain) {
  Tune("2");
  files_.writes.clear();
  const auto before = std::filesystem::last_write_time(journal_);
  clock_.Advance(seconds(30));
  Tune("2");
  EXPECT_THAT(files_.writes, IsEmpty());
  EXPECT_EQ(std::filesystem::last_write_time(journal_), before);
}

TEST_F(HostTunerTest, AValueThatTheKernelRejectsIsReportedAndTheOthersAreSet) {
  files_.on_write[PolicyFile(2, "scaling_governor")] = [](const std::string& /*value*/) {
    return StatusOr<std::string>(
        Errorf(StatusCode::kPermissionDenied, "cannot write scaling_governor: Read-only"));
  };
  Tune("2");
  EXPECT_EQ(Least(2), "2000000");
  EXPECT_EQ(Governor(2), "powersave");
  EXPECT_THAT(tuner_->ProblemOf("fast"), HasSubstr("Read-only"));
  EXPECT_THAT(tuner_->ProblemOf("slow"), IsEmpty());
  files_.on_write.clear();
  clock_.Advance(seconds(30));
  Tune("2");
  EXPECT_EQ(Governor(2), "performance");
  EXPECT_THAT(tuner_->ProblemOf("fast"), IsEmpty());
}

TEST_F(HostTunerTest, AValueThatIsRejectedIsTriedLessAndLessOften) {
  files_.on_write[PolicyFile(2, "scaling_governor")] = test::RefuseWrite;
  int attempts = 0;
  for (int half_minutes = 0; half_minutes < 120; ++half_minutes) {
    files_.writes.clear();
    Tune("2");
    attempts += files_.writes.empty() ? 0 : 1;
    EXPECT_THAT(tuner_->ProblemOf("fast"), HasSubstr("Input/output error"));
    clock_.Advance(seconds(30));
  }
  EXPECT_EQ(attempts, 7) << "after 0, 0.5, 1.5, 3.5, 7.5, 15.5 and 31.5 minutes";
  Tune("2-3");
  EXPECT_EQ(Governor(3), "performance") << "others are set meanwhile";
}

TEST_F(HostTunerTest, ADamagedJournalIsReportedAndNothingIsWritten) {
  std::ofstream(journal_) << "{";
  Tune("2");
  EXPECT_THAT(files_.writes, IsEmpty());
  EXPECT_THAT(tuner_->ProblemOf("fast"), HasSubstr(journal_));
}

TEST_F(HostTunerTest, ACpuThatGoesOfflineTakesItsValuesWithIt) {
  Tune("2-3");
  files_.values["sys/devices/system/cpu/online"] = "0-2";
  std::erase_if(files_.values,
                [](const auto& file) { return file.first.starts_with(PolicyFile(3, "")); });
  Tune("2");
  EXPECT_THAT(tuner_->ProblemOf("fast"), IsEmpty());
  EXPECT_EQ(Least(2), "2000000");
}

TEST_F(HostTunerTest, InterruptsStayOffCpusWhileTheyAreToBeQuiet) {
  Quiet("2-3");
  EXPECT_EQ(files_.values[Irq(5)], "0-1");
  EXPECT_EQ(files_.values["proc/irq/default_smp_affinity"], "3");
  Quiet("3");
  EXPECT_EQ(files_.values[Irq(5)], "0-2");
  Start();
  Quiet("");
  EXPECT_EQ(files_.values[Irq(5)], "0-3");
  EXPECT_EQ(files_.values["proc/irq/default_smp_affinity"], "f");
}

TEST_F(HostTunerTest, AnInterruptThatDoesNotMoveIsReportedOnlyWhereItIsInTheWay) {
  files_.on_write[Irq(6)] = test::RefuseWrite;
  Quiet("3");
  EXPECT_THAT(tuner_->ProblemOf("quiet"), IsEmpty()) << "CPU 2 handles it";
  EXPECT_EQ(files_.values[Irq(5)], "0-2");
  Quiet("2-3");
  EXPECT_THAT(tuner_->ProblemOf("quiet"), HasSubstr("cannot write 0-1"));
  EXPECT_EQ(files_.values[Irq(5)], "0-1");
}

TEST_F(HostTunerTest, AnInterruptThatComesLaterStaysOffWithinHalfAMinute) {
  Quiet("2-3");
  files_.values[Irq(7)] = "0-3";
  clock_.Advance(seconds(30));
  Quiet("2-3");
  EXPECT_EQ(files_.values[Irq(7)], "0-1");
}

TEST_F(HostTunerTest, QuietCpusAreNotJournalledAgainWhileNothingChanges) {
  Quiet("2-3");
  const auto written = std::filesystem::last_write_time(journal_);
  const std::size_t writes = files_.writes.size();
  clock_.Advance(seconds(30));
  Quiet("2-3");
  EXPECT_EQ(files_.writes.size(), writes);
  EXPECT_EQ(std::filesystem::last_write_time(journal_), written);
}

/// Whatever owners come and go, and whenever the process dies, each file has its value by the
/// present classes, or its first value.
TEST_F(HostTunerTest, EveryFileHasALivingOwnerOrItsFormerValue) {
  const std::map<std::string, std::string> former = files_.values;
  std::mt19937 dice(1);
  const auto one_in = [&](unsigned many) { return dice() % many == 0; };
  for (int step = 0; step < test::Rounds(300); ++step) {
    TuningPlan plan{.profiles = {{"fast", {.frequency = {{Meaning::kBase}, {}}}},
                                 {"slow", {.frequency = {{}, {Meaning::kBase}}}},
                                 {"awake", {.governor = "performance", .irq = IrqRule::kNone}}}};
    for (int cpu = 0; cpu < 4; ++cpu) {
      const char* const names[] = {"fast", "slow", "awake"};
      if (!one_in(3)) {
        plan.cpus[names[dice() % 3]].Add(cpu);
      } else if (one_in(4)) {
        plan.foreign.Add(cpu);
      }
    }
    if (one_in(8)) {
      plan = TuningPlan();
    }
    if (one_in(5)) {
      Start();
    }
    Tune(plan);
    std::map<std::string, std::string> expected = former;
    for (const TunedFile& file : Resolve(plan, ReadTunableMachine(files_, true)).files) {
      expected[file.claim.path] = *Combine(file.claim.form, former.at(file.claim.path),
                                           {file.claim.value}, CpuSet::Range(0, 3));
    }
    ASSERT_EQ(files_.values, expected) << "step " << step;
  }
}

}  // namespace
}  // namespace qrm::kernel::host_tuner_test
