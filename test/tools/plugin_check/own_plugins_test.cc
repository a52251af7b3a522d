// The plugins that we ship keep the protocol: shared pools and exclusive CPUs alike.
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/await.h"
#include "test/support/child_process.h"
#include "test/support/temp_dir.h"
#include "tools/plugin_check/check_command.h"

namespace qrm::manager {
namespace {

using testing::HasSubstr;
using testing::Not;

struct OwnPlugin {
  std::string name;
  std::string resource;
  std::string role;
  std::string amount;
  std::string sees;  ///< part of a line that proves that the case is met
};

class OwnPluginsTest : public testing::TestWithParam<OwnPlugin> {};

TEST_P(OwnPluginsTest, KeepEveryRule) {
  const auto& [name, resource, role, amount, sees] = GetParam();
  const test::TempDir dir;
  const std::string program = resource == "NIC" ? "nic" : resource;
  const test::ChildProcess plugin({std::string(QRM_BIN) + "/qrm-plugin-" + program, "--config",
                                   "docs/samples/example3/" + program + ".yaml", "--state-dir",
                                   dir.path(), "--plugins-registry-dir", dir.path()},
                                  dir / "log");
  const std::string socket = dir / (resource + ".sock");
  ASSERT_TRUE(test::Await([&] { return std::filesystem::exists(socket); })) << plugin.Output();

  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(RunPluginCheck({socket, "--machine", "synthetic:package:2 [numa] core:20 pu:2",
                            "--role", role, "--amount", amount},
                           out, err),
            0)
      << out.str() << err.str();
  EXPECT_THAT(out.str(), HasSubstr(sees));
  EXPECT_THAT(out.str(), Not(HasSubstr("skipped")));
}

const OwnPlugin kOwnPlugins[] = {
    {"CpuPool", "cpu", "anything", "2", "container main: cpu: CpusetCpus=2-39,42-79"},
    {"CpuExclusive", "cpu", "numa-enhancement", "10", "container main: cpu: CpusetCpus=2-11"},
    {"Memory", "memory", "numa-enhancement", "20000000000", "memory: CpusetMems=0"},
    {"Nic", "NIC", "numa-enhancement", "1", "container main: NIC: no knob="},
};
INSTANTIATE_TEST_SUITE_P(Samples, OwnPluginsTest, testing::ValuesIn(kOwnPlugins),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace qrm::manager
