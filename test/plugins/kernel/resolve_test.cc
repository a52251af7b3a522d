// The values of classes for files that CPUs share.
#include "plugins/kernel/resolve.h"

#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace qrm::kernel::resolve_test {
namespace {

using Meaning = Frequency::Meaning;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

CpuSet Cpus(const char* list) {
  return *CpuSet::Parse(list);
}

/// 800 MHz to 3 GHz, 2 GHz without turbo.
FrequencyPolicy Policy(const std::string& name, const char* cpus) {
  return {.directory = name,
          .cpus = Cpus(cpus),
          .least = 800000,
          .most = 3000000,
          .base = 2000000,
          .governors = {"performance", "schedutil", "powersave"},
          .preferences = {"default", "performance", "balance_performance", "power"}};
}

/// Two CPUs that share a frequency policy, and two with separate ones.
TunableMachine FourCpus() {
  return {
      .cpus = Cpus("0-3"),
      .policies = {Policy("both", "0-1"), Policy("two", "2"), Policy("three", "3")},
      .wake_up = Cpus("0-3"),
      .uncores = {{.directory = "die", .cpus = Cpus("0-3"), .least = 800000, .most = 2400000}},
      .interrupts = {.movable = {"proc/irq/5"}, .fixed = {{.name = "9 nvme", .cpus = Cpus("3")}}}};
}

const TuningProfile kFast = {.frequency = {{Meaning::kBase}, {Meaning::kMost}},
                             .governor = "performance",
                             .preference = "performance"};
const TuningProfile kSlow = {
    .frequency = {{}, {Meaning::kBase}}, .governor = "powersave", .preference = "power"};

TuningPlan Plan(const std::map<std::string, const char*>& cpus) {
  TuningPlan plan{.profiles = {{"fast", kFast}, {"slow", kSlow}}};
  for (const auto& [name, list] : cpus) {
    plan.cpus[name] = Cpus(list);
  }
  return plan;
}

std::map<std::string, std::string> ValuesOf(const Resolved& resolved) {
  std::map<std::string, std::string> values;
  for (const TunedFile& file : resolved.files) {
    values[file.claim.path] = file.claim.value;
  }
  return values;
}

std::vector<std::string> ProblemsOf(const Resolved& resolved) {
  std::vector<std::string> texts;
  texts.reserve(resolved.problems.size());
  for (const TuningProblem& problem : resolved.problems) {
    texts.push_back(problem.text);
  }
  return texts;
}

TEST(ResolveTest, ExclusiveCpusHaveTheValuesOfTheirClass) {
  const Resolved resolved = Resolve(Plan({{"fast", "2"}, {"slow", "3"}}), FourCpus());
  EXPECT_THAT(ValuesOf(resolved),
              UnorderedElementsAre(Pair("two/scaling_governor", "performance"),
                                   Pair("two/energy_performance_preference", "performance"),
                                   Pair("two/scaling_min_freq", "2000000"),
                                   Pair("two/scaling_max_freq", "3000000"),
                                   Pair("three/scaling_governor", "powersave"),
                                   Pair("three/energy_performance_preference", "power"),
                                   Pair("three/scaling_max_freq", "2000000")));
  EXPECT_THAT(ProblemsOf(resolved), IsEmpty());
  EXPECT_EQ(resolved.files.front().claim.path, "two/scaling_governor") << "it comes first";
  EXPECT_THAT(resolved.files.front().profiles, ElementsAre("fast"));
}

TEST(ResolveTest, CpusThatShareAFrequencyHaveTheMostPerforming) {
  const Resolved resolved = Resolve(Plan({{"fast", "0"}, {"slow", "1"}}), FourCpus());
  EXPECT_THAT(ValuesOf(resolved),
              UnorderedElementsAre(Pair("both/scaling_governor", "performance"),
                                   Pair("both/energy_performance_preference", "performance"),
                                   Pair("both/scaling_min_freq", "2000000"),
                                   Pair("both/scaling_max_freq", "3000000")));
  EXPECT_THAT(ProblemsOf(resolved),
              ElementsAre(AllOf(HasSubstr("CPUs 0-1 change their frequency together"),
                                HasSubstr("fast, slow"))));
}

TEST(ResolveTest, ACpuWithoutClassIsNotSlowedDownByItsNeighbour) {
  const Resolved resolved = Resolve(Plan({{"slow", "1"}}), FourCpus());
  EXPECT_THAT(ValuesOf(resolved), IsEmpty());
  EXPECT_THAT(ProblemsOf(resolved), ElementsAre(HasSubstr("slow and no class")));
}

TEST(ResolveTest, ACpuWithoutClassMayBeFasterForItsNeighbour) {
  const Resolved resolved = Resolve(Plan({{"fast", "1"}}), FourCpus());
  EXPECT_THAT(ValuesOf(resolved),
              UnorderedElementsAre(Pair("both/scaling_governor", "performance"),
                                   Pair("both/energy_performance_preference", "performance"),
                                   Pair("both/scaling_min_freq", "2000000")));
}

TEST(ResolveTest, WhatADriversCpusShareIsNotChanged) {
  TuningPlan plan = Plan({{"fast", "0,2"}});
  plan.profiles.at("fast").uncore.least = {Meaning::kMost};
  plan.foreign = Cpus("1");
  const auto values = ValuesOf(Resolve(plan, FourCpus()));
  EXPECT_TRUE(values.contains("two/scaling_governor"));
  EXPECT_FALSE(values.contains("both/scaling_governor"));
  EXPECT_FALSE(values.contains("die/min_freq_khz"));
}

TEST(ResolveTest, AnUncoreRunsAsFastAsAnyOfItsDieWants) {
  TuningPlan plan = Plan({{"fast", "2"}, {"slow", "3"}});
  plan.profiles.at("fast") = {.uncore = {.least = {Meaning::kMost}}};
  plan.profiles.at("slow") = {.uncore = {.most = {Meaning::kLeast}}};
  EXPECT_THAT(ValuesOf(Resolve(plan, FourCpus())),
              ElementsAre(Pair("die/min_freq_khz", "2400000")));
  plan.cpus = {{"slow", Cpus("0-3")}};
  EXPECT_THAT(ValuesOf(Resolve(plan, FourCpus())), ElementsAre(Pair("die/max_freq_khz", "800000")));
}

TEST(ResolveTest, AnUncoresMinimumStaysBelowTheMaximumOfAnAdministrator) {
  TunableMachine machine = FourCpus();
  machine.uncores.front().bound = 2000000;
  TuningPlan plan = Plan({{"fast", "0-3"}});
  plan.profiles.at("fast") = {.uncore = {.least = {Meaning::kMost}}};
  EXPECT_THAT(ValuesOf(Resolve(plan, machine)), ElementsAre(Pair("die/min_freq_khz", "2000000")));
  plan.profiles.at("fast").uncore.most = {Meaning::kMost};
  EXPECT_THAT(ValuesOf(Resolve(plan, machine)), ElementsAre(Pair("die/max_freq_khz", "2400000"),
                                                            Pair("die/min_freq_khz", "2400000")));
}

TEST(ResolveTest, ACpuThatIsToWakeUpAtOnceNeverSleeps) {
  TuningPlan plan = Plan({{"fast", "2"}, {"slow", "3"}});
  plan.profiles.at("fast") = {.wake_up_us = 0};
  plan.profiles.at("slow") = {.wake_up_us = 70};
  EXPECT_THAT(ValuesOf(Resolve(plan, FourCpus())),
              UnorderedElementsAre(Pair(WakeUpFile(2), "n/a"), Pair(WakeUpFile(3), "70")));
}

TEST(ResolveTest, ANumberBeyondTheHardwareIsItsBound) {
  TuningPlan plan = Plan({{"fast", "2"}});
  plan.profiles.at("fast") = {.frequency = {{}, {Meaning::kNumber, 9000000}}};
  EXPECT_THAT(ValuesOf(Resolve(plan, FourCpus())),
              ElementsAre(Pair("two/scaling_max_freq", "3000000")));
}

/// The CPUs that interrupts are kept off.
std::string QuietOf(const Resolved& resolved) {
  return ValuesOf(resolved)["proc/irq/5/smp_affinity_list"];
}

TuningPlan Quiet(const std::map<std::string, const char*>& cpus) {
  TuningPlan plan = Plan(cpus);
  plan.profiles = {{"quiet", {.irq = IrqRule::kNone}},
                   {"sink", {.irq = IrqRule::kSink}},
                   {"other", {.wake_up_us = 5}}};
  return plan;
}

TEST(ResolveTest, InterruptsAreKeptOffTheCpusOfClassesWithoutThem) {
  const Resolved resolved = Resolve(Quiet({{"quiet", "1-2"}, {"other", "3"}}), FourCpus());
  EXPECT_EQ(QuietOf(resolved), "1-2");
  EXPECT_THAT(ProblemsOf(resolved), IsEmpty());
}

TEST(ResolveTest, WhereASinkTakesInterruptsAllOthersHaveNone) {
  EXPECT_EQ(QuietOf(Resolve(Quiet({{"sink", "0"}}), FourCpus())), "1-3");
  EXPECT_EQ(QuietOf(Resolve(Quiet({{"sink", "0-1"}, {"quiet", "2"}}), FourCpus())), "2-3");
}

TEST(ResolveTest, ReportsAnInterruptThatCannotBeMoved) {
  EXPECT_THAT(
      ProblemsOf(Resolve(Quiet({{"quiet", "2-3"}}), FourCpus())),
      ElementsAre(HasSubstr("off CPUs 3, but the kernel does not allow 9 nvme to be moved")));
}

TEST(ResolveTest, SaysWhyNoCpuCanBeQuiet) {
  TuningPlan plan = Quiet({{"quiet", "2"}});
  const auto problem_of = [&](const TunableMachine& machine) {
    const Resolved resolved = Resolve(plan, machine);
    EXPECT_EQ(QuietOf(resolved), "");
    return resolved.problems.empty() ? "" : resolved.problems.front().text;
  };
  TunableMachine machine = FourCpus();
  machine.interrupts.balancers = {{.process = "77"}};
  EXPECT_THAT(problem_of(machine), HasSubstr("irqbalance (process 77) moves them back"));
  machine.interrupts = {};
  EXPECT_THAT(problem_of(machine), HasSubstr("this process may not move any"));
  plan.foreign = Cpus("1");
  EXPECT_THAT(problem_of(FourCpus()),
              HasSubstr("a compute driver does so while it has containers here"));
  plan = Quiet({{"quiet", "0-3"}});
  EXPECT_THAT(problem_of(FourCpus()), HasSubstr("no CPU to handle interrupts"));
}

TEST(ResolveTest, ReportsUnsupportedValues) {
  TunableMachine machine = FourCpus();
  machine.policies.erase(machine.policies.begin());
  machine.policies[0].base = 0;
  machine.policies[1].governors = {"powersave"};
  machine.wake_up = Cpus("3");
  TuningPlan plan = Plan({{"fast", "1-3"}});
  plan.profiles.at("fast").wake_up_us = 5;
  EXPECT_THAT(ProblemsOf(Resolve(plan, machine)),
              UnorderedElementsAre(
                  HasSubstr("class fast requests governor performance, but CPUs 3 have powersave"),
                  HasSubstr("CPUs 1 have no cpufreq that this process may write"),
                  HasSubstr("the kernel reports none for CPUs 2"),
                  HasSubstr("CPUs 1-2 have no pm_qos_resume_latency_us")));
}

}  // namespace
}  // namespace qrm::kernel::resolve_test
