// The cpu plugin's settings of a class on a real machine, this one or that of scripts/vm.sh.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"
#include "plugins/cpu/cpu_plugin.h"
#include "plugins/kernel/kernel_files.h"
#include "plugins/kernel/tunable_machine.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"
#include "topology/discovery.h"

namespace qrm::cpu::tuning_test {
namespace {

using test::IsOk;

TEST(TuningTest, APoolsCpusWakeUpAsItsClassSaysAndAsBeforeWithoutIt) {
  const auto machine = Discover(MachineSource{});
  ASSERT_TRUE(IsOk(machine.status()));
  const int cpu = machine->cpu_set().Last();
  const kernel::SystemFiles files("/");
  if (!files.MayWrite(kernel::WakeUpFile(cpu))) {
    GTEST_SKIP() << "no /" << kernel::WakeUpFile(cpu) << " to write";
  }
  const auto now = [&] { return files.Read(kernel::WakeUpFile(cpu)).value_or(""); };
  const std::string before = now();
  const test::TempDir dir;
  const auto begin = [&](const std::string& keys) {
    const auto config = ParseCpuConfig(*config::Section::Parse(keys, "cpu.yaml"));
    auto plugin = MakeCpuPlugin(*config, *machine);
    (*plugin)->Begin(dir.path());
    return *std::move(plugin);
  };
  {
    const auto plugin = begin("{classes: {awake: {idle-latency-us: 25}}, pools: {a: {cpus: \"" +
                              std::to_string(cpu) + "\", class: awake}}}");
    EXPECT_TRUE(test::Await([&] { return now() == "25"; })) << now();
    EXPECT_EQ(plugin->Pools().front().class_problem, "");
  }
  EXPECT_EQ(now(), "25");
  const auto without = begin("{}");
  EXPECT_TRUE(test::Await([&] { return now() == before; })) << now();
}

}  // namespace
}  // namespace qrm::cpu::tuning_test
