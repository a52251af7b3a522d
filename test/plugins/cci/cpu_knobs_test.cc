// The settings that a machine supports, read from its files, and what attributes change of them.
#include "plugins/cci/cpu_knobs.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "plugins/kernel/interrupts.h"
#include "test/plugins/cci/knob_machine.h"
#include "test/support/is_ok.h"

namespace qrm::cci::cpu_knobs_test {
namespace {

using testing::HasSubstr;

struct Case {
  std::string name;
  std::string attributes;
  std::string cpus;
  std::string want;  ///< "FILE=VALUE ...", or a piece of the error
  std::string own = "0-7";
};

/// Checks each attribute, then what all of them set; files by their last two names.
std::string Outcome(const Case& asked, const kernel::TunableMachine& knobs) {
  const CpuSet cpus = *CpuSet::Parse(asked.cpus);
  const std::vector<Attribute> attributes = *ParseAttributes(asked.attributes);
  for (const Attribute& attribute : attributes) {
    const Status good = CheckKnob(attribute, cpus, *CpuSet::Parse(asked.own), knobs);
    if (!good.ok()) {
      return MessageOf(good);
    }
  }
  std::vector<std::string> claims;
  for (const kernel::Claim& claim : ClaimsOf(attributes, cpus, knobs)) {
    const auto slash = claim.path.rfind('/', claim.path.rfind('/') - 1);
    claims.push_back(fmt::format("{}={}{}", claim.path.substr(slash + 1), claim.value,
                                 claim.is_optional ? "?" : ""));
  }
  return fmt::format("{}", fmt::join(claims, " "));
}

class CpuKnobsTest : public testing::TestWithParam<Case> {};

TEST_P(CpuKnobsTest, AreCheckedAndSet) {
  const test::KnobMachine machine;
  EXPECT_THAT(Outcome(GetParam(), kernel::ReadTunableMachine(machine.files, true)),
              HasSubstr(GetParam().want));
}

// CPUs 0-1 share a policy, 2 to 5 have one each, 6 and 7 none.
const Case kCases[] = {
    {"Floor", "freq=1.2GHz", "2", "policy2/scaling_min_freq=1200000"},
    {"Bounds", "freq=1GHz-2GHz", "2",
     "policy2/scaling_max_freq=2000000 policy2/scaling_min_freq=1000000"},
    {"Ceiling", "freq-max=2GHz", "2-3",
     "policy2/scaling_max_freq=2000000 policy3/scaling_max_freq=2000000"},
    {"TooFast", "freq=4GHz", "2",
     "CPUs 2 run at 800000kHz to 3000000kHz; write a frequency in this range"},
    {"TooSlow", "freq-max=100MHz", "2", "write a frequency in this range"},
    {"SharedPolicy", "freq=1.2GHz", "0",
     "CPU 0 changes its frequency with CPUs 0-1, but the container lacks CPUs 1", "0,2-7"},
    {"WholePolicy", "freq=1.2GHz", "0-1", "policy0/scaling_min_freq=1200000", "0-1"},
    {"NoPolicy", "freq=1.2GHz", "6", "CPU 6 has no cpufreq that this driver may set"},
    {"GovernorBeforePreference", "epp=power, governor=powersave", "3",
     "policy3/scaling_governor=powersave policy3/energy_performance_preference=power"},
    {"NoGovernor", "governor=ondemand", "3",
     "CPUs 3 have the governors performance, powersave; name one of them"},
    {"NoPreference", "epp=lazy", "3", "CPUs 3 have the energy preferences performance"},
    {"NoneAtAll", "epp=power", "4", "CPUs 4 have the energy preferences none"},
    {"HighPriority", "priority=1.0", "3", "policy3/energy_performance_preference=performance"},
    {"LowPriority", "priority=0.1", "3", "policy3/energy_performance_preference=power"},
    {"PriorityOfNothing", "priority=0.3", "4", "CPUs 4 have no energy preference balance_power"},
    {"Latency", "idle-latency=20", "2-3",
     "power/pm_qos_resume_latency_us=20 power/pm_qos_resume_latency_us=20"},
    {"NoIdle", "no-idle", "2", "power/pm_qos_resume_latency_us=n/a"},
    {"ZeroLatencyIsNoIdle", "idle-latency=0", "2", "power/pm_qos_resume_latency_us=n/a"},
    {"LatencyThatIsNotThere", "no-idle", "6-7",
     "CPUs 7 have no pm_qos_resume_latency_us that this driver may write"},
    {"Quiet", "no-irq", "2-3",
     "irq/default_smp_affinity=2-3 5/smp_affinity_list=2-3? 6/smp_affinity_list=2-3?"},
    {"Unbalanced", "no-balance", "2-3",
     "no-balance is not possible: this driver cannot make a container's cgroup a partition: that "
     "needs cgroup v2, Linux 6.7"},
    {"ManagedInterrupt", "no-irq", "4-5",
     "the kernel does not allow interrupt 9 on CPUs 5 to be moved; request other CPUs"},
};
INSTANTIATE_TEST_SUITE_P(Attributes, CpuKnobsTest, testing::ValuesIn(kCases),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(CpuKnobsMachineTest, AProcessThatMovesInterruptsIsNamed) {
  test::KnobMachine machine;
  machine.files.values["proc/77/comm"] = "irqbalance";
  EXPECT_THAT(
      Outcome({.attributes = "no-irq", .cpus = "2"},
              kernel::ReadTunableMachine(machine.files, true)),
      HasSubstr("irqbalance (process 77) moves interrupts back within seconds; stop irqbalance"));
}

TEST(CpuKnobsMachineTest, AProcessThatMovesInterruptsIsNotifiedBeforeTheyAreMoved) {
  test::KnobMachine machine;
  machine.files.values["proc/77/comm"] = "irqbalance";
  machine.files.values[kernel::BanFile("77")] = "";
  EXPECT_THAT(Outcome({.attributes = "no-irq", .cpus = "2"},
                      kernel::ReadTunableMachine(machine.files, true)),
              testing::StartsWith("irqbalance/irqbalance77.sock=2 irq/default_smp_affinity=2 "));
}

TEST(CpuKnobsMachineTest, AnUnprivilegedDriverSetsNothing) {
  test::KnobMachine machine;
  for (const auto& [path, value] : machine.files.values) {
    machine.files.read_only.insert(path);
  }
  const kernel::TunableMachine knobs = kernel::ReadTunableMachine(machine.files, true);
  for (const char* attribute : {"no-irq", "no-idle", "freq=1GHz"}) {
    EXPECT_THAT(Outcome({.attributes = attribute, .cpus = "2"}, knobs),
                HasSubstr("this driver may"));
  }
}

}  // namespace
}  // namespace qrm::cci::cpu_knobs_test
