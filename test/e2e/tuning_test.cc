// CPUs that are tuned for their owners by a real qrmd, or by the cpu plugin as a process, on a copy
// of a machine's files: through reloads, and through kill -9.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/sysfs_machine.h"
#include "test/support/temp_dir.h"

namespace qrm::test::tuning_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr char kRoleLabel[] = "katalyst.kubewharf.io/pod_role";
constexpr char kClasses[] = R"(
classes: {fast: {freq: {min: base}}, slow: {freq: {max: base}}}
roles: {trading: {class: fast, share-numa-with: [trading]}}
pools: {web: {cpus: "5", roles: [web], class: slow}}
)";

class TuningTest : public testing::Test {
 protected:
  TuningTest() {
    WriteSysfsMachine(machine_, {.cpus = 6});
    WriteSysfsFile(machine_ / "proc/sys/kernel/random/boot_id", "first");
    for (int cpu = 0; cpu < 6; ++cpu) {
      WriteSysfsFile(PolicyOf(cpu) / "affected_cpus", std::to_string(cpu));
      WriteSysfsFile(PolicyOf(cpu) / "cpuinfo_min_freq", "800000");
      WriteSysfsFile(PolicyOf(cpu) / "cpuinfo_max_freq", "3000000");
      WriteSysfsFile(PolicyOf(cpu) / "base_frequency", "2000000");
      WriteSysfsFile(PolicyOf(cpu) / "scaling_min_freq", "900000");
      WriteSysfsFile(PolicyOf(cpu) / "scaling_max_freq", "2900000");
    }
  }

  fs::path PolicyOf(int cpu) const {
    return machine_ / fmt::format("sys/devices/system/cpu/cpufreq/policy{}", cpu);
  }
  std::string Bound(int cpu, const char* file) const {
    std::ifstream stream(PolicyOf(cpu) / file);
    std::string value;
    std::getline(stream, value);
    return value;
  }
  std::string Least(int cpu) const { return Bound(cpu, "scaling_min_freq"); }
  std::string Most(int cpu) const { return Bound(cpu, "scaling_max_freq"); }

  std::string Machine() const { return fmt::format("machine: \"fsroot:{}\"\n", machine_.string()); }
  void Configure(const std::string& plugins) {
    std::ofstream(dir_ / "qrmd.yaml") << Machine() << plugins;
  }
  void StartNode(const std::string& builtin_plugins) {
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = fs::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = dir_ / "qrmd.yaml",
                      .nri_socket = runtime_.nri_socket(),
                      .cri_socket = runtime_.cri_socket(),
                      .builtin_plugins = builtin_plugins,
                      .reconcile_period = "100ms"});
    ASSERT_TRUE(IsOk(node_->Start(builtin_plugins.empty() ? 0 : 1)));
  }
  Status Trade() {
    return runtime_.RunPod({.name = "desk",
                            .uid = "uid-desk",
                            .labels = {{kRoleLabel, "trading"}},
                            .container = {.milli_cpus = 1000}});
  }

  const TempDir dir_;
  const fs::path machine_ = dir_ / "machine";
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
};

std::string Indented(const std::string& keys) {
  std::string flat = keys;
  for (std::size_t at = 0; (at = flat.find('\n', at)) != std::string::npos; at += 3) {
    flat.replace(at, 1, "\n  ");
  }
  return flat;
}

TEST_F(TuningTest, ACrashLosesNothingAndAReloadWithoutClassesPutsAllBack) {
  Configure("plugins:\n cpu:" + Indented(kClasses) + "\n");
  StartNode("cpu");
  ASSERT_TRUE(IsOk(Trade()));
  EXPECT_TRUE(Await([&] { return Least(0) == "2000000" && Most(5) == "2000000"; }));
  const auto pools = node_->Qrmctl({"pool", "get"});
  ASSERT_TRUE(IsOk(pools.status()));
  EXPECT_THAT(*pools, HasSubstr("5 (class: slow)"));

  node_->KillDaemon();
  EXPECT_EQ(Least(0), "2000000") << "no process puts it back";
  Configure("plugins: {cpu: {}}\n");
  StartNode("cpu");
  EXPECT_TRUE(Await([&] { return Least(0) == "900000" && Most(5) == "2900000"; }));

  Configure("plugins:\n cpu:" + Indented(kClasses) + "\n");
  ASSERT_EQ(::kill(node_->daemon_pid(), SIGHUP), 0);
  EXPECT_TRUE(Await([&] { return Most(5) == "2000000"; })) << "the pool has its class again";
  Configure("plugins: {cpu: {}}\n");
  ASSERT_EQ(::kill(node_->daemon_pid(), SIGHUP), 0);
  EXPECT_TRUE(Await([&] { return Most(5) == "2900000"; }));
}

TEST_F(TuningTest, AConfigurationThatIsOnlyTriedTunesNothing) {
  Configure("plugins: {cpu: {}}\n");
  StartNode("cpu");
  const fs::path next = dir_ / "next.yaml";
  std::ofstream(next) << Machine() << "plugins:\n cpu:" << Indented(kClasses) << "\n";
  const auto tried = node_->Qrmctl({"policy", "diff", next.string()});
  ASSERT_TRUE(IsOk(tried.status()));
  ASSERT_TRUE(IsOk(node_->Reconcile()));
  EXPECT_EQ(Most(5), "2900000");
}

TEST_F(TuningTest, APluginInASeparateProcessTunesToo) {
  Configure("");
  std::ofstream(dir_ / "cpu.yaml") << Machine() << kClasses;
  StartNode("");
  ASSERT_TRUE(IsOk(node_->StartPlugin("cpu", "cpu", dir_ / "cpu.yaml")));
  ASSERT_TRUE(IsOk(Trade()));
  EXPECT_TRUE(Await([&] { return Least(0) == "2000000" && Most(5) == "2000000"; }));
  node_->KillPlugin("cpu");
  EXPECT_EQ(Least(0), "2000000");
  std::ofstream(dir_ / "cpu.yaml") << Machine();
  ASSERT_TRUE(IsOk(node_->StartPlugin("cpu", "cpu", dir_ / "cpu.yaml")));
  EXPECT_TRUE(Await([&] { return Least(0) == "900000" && Most(5) == "2900000"; }));
}

}  // namespace
}  // namespace qrm::test::tuning_test
