// Cpu plugins on a machine of 64 CPUs and a clock of the test's, for tests of pools whose size
// follows their containers.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "test/plugins/cpu/made_plugin.h"
#include "test/plugins/plugin_driver.h"
#include "test/support/manual_clock.h"

namespace qrm::cpu {

/// 64 CPUs on two NUMA nodes; threads i and i+32 are a core, node 0 has 0-15 and 32-47.
inline Machine TwoNodes() {
  MachineParts parts;
  for (int cpu = 0; cpu < 64; ++cpu) {
    const int core = cpu % 32;
    const int node = core / 16;
    parts.cpus.push_back({.id = cpu, .core = core, .l3 = 16 * node, .node = node, .package = node});
  }
  parts.nodes = {{.id = 0, .package = 0}, {.id = 1, .package = 1}};
  return Machine(std::move(parts));
}

/// A plugin whose clock moves only when a test moves it.
class ElasticPlugins : public testing::Test {
 protected:
  test::Drive Start(const std::string& text) { return test::Drive(MakeElastic(text, TwoNodes())); }
  test::Drive Restart(const std::string& text, const test::Drive& before) {
    return {MakeElastic(text, TwoNodes()), before};
  }
  std::unique_ptr<sdk::ResourcePlugin> MakeElastic(const std::string& text,
                                                   const Machine& machine) {
    auto plugin = MakeCpuPlugin(Config(text), machine, clock_);
    EXPECT_TRUE(plugin.ok()) << plugin.status();
    return *std::move(plugin);
  }

  static CpuSet Pool(const test::Drive& drive, const std::string& name) {
    for (const sdk::Pool& pool : drive.plugin().Pools()) {
      if (pool.name == name) {
        return pool.cpus;
      }
    }
    return {};
  }
  static int Size(const test::Drive& drive, const std::string& name) {
    return Pool(drive, name).Count();
  }
  static void Admit(test::Drive& drive, const std::string& pod, const std::string& role,
                    double cpus) {
    const auto admitted = drive.Admit(test::Request(pod, role, "cpu", cpus));
    ASSERT_TRUE(admitted.ok()) << admitted.status();
  }

  test::ManualClock clock_;
};

}  // namespace qrm::cpu
