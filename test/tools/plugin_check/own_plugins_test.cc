// The plugins that we ship follow the protocol: shared pools and exclusive CPUs alike.
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "tools/plugin_check/check_command.h"

namespace qrm::manager::own_plugins_test {
namespace {

using testing::HasSubstr;

struct OwnPlugin {
  std::string name;
  std::string resource;
  std::string role;
  std::string amount;
  std::string sees;  ///< part of a line that proves that the case occurs
};

class OwnPluginsTest : public testing::TestWithParam<OwnPlugin> {};

TEST_P(OwnPluginsTest, KeepEveryRule) {
  const auto& [name, resource, role, amount, sees] = GetParam();
  const test::TempDir dir;
  const std::string program = resource == "NIC" ? "nic" : resource;
  const std::string socket = dir / (resource + ".sock");
  const std::string command = fmt::format(
      "exec {}/qrm-plugin-{} --config docs/samples/example3/{}.yaml --state-dir {} "
      "--plugins-registry-dir {} >> {} 2>&1",
      QRM_BIN, program, program, dir.path(), dir.path(), dir / "log");

  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(RunPluginCheck({socket, "--machine", "synthetic:package:2 [numa] core:20 pu:2",
                            "--role", role, "--amount", amount, "--command", command},
                           out, err),
            0)
      << out.str() << err.str();
  EXPECT_THAT(out.str(), HasSubstr(sees));
  EXPECT_THAT(out.str(), HasSubstr("ok      has after kill -9 and a start what it gave before"));
}

const OwnPlugin kOwnPlugins[] = {
    {"CpuPool", "cpu", "anything", "2", "container main: cpu: CpusetCpus=2-39,42-79"},
    {"CpuExclusive", "cpu", "numa-enhancement", "10", "container main: cpu: CpusetCpus=2-11"},
    {"Memory", "memory", "numa-enhancement", "20000000000", "memory: CpusetMems=0"},
    {"Nic", "NIC", "numa-enhancement", "1", "container main: NIC: no knob="},
};
INSTANTIATE_TEST_SUITE_P(Samples, OwnPluginsTest, testing::ValuesIn(kOwnPlugins),
                         [](const auto& param_info) { return param_info.param.name; });

struct Example {
  std::string name;
  std::string socket;
  std::string command;  ///< `{}` are the directory of sockets and that of its state
  std::string sees;
};

class ExamplesTest : public testing::TestWithParam<Example> {};

TEST_P(ExamplesTest, KeepEveryRule) {
  const test::TempDir dir;
  const test::TempDir state;
  const std::string command =
      fmt::format(fmt::runtime(GetParam().command), fmt::arg("bin", QRM_BIN),
                  fmt::arg("sockets", dir.path()), fmt::arg("state", state.path()));
  std::ostringstream out;
  std::ostringstream err;
  const int exit = RunPluginCheck(
      {dir / GetParam().socket, "--machine", "synthetic:package:2 [numa] core:4 pu:1", "--command",
       command + " >> " + (state / "log") + " 2>&1"},
      out, err);
  if (std::ifstream log(state / "log"); log.peek() == 's') {
    GTEST_SKIP() << log.rdbuf();
  }
  EXPECT_EQ(exit, 0) << out.str() << err.str();
  EXPECT_THAT(out.str(), HasSubstr(GetParam().sees));
  EXPECT_THAT(out.str(), HasSubstr("ok      has after kill -9 and a start what it gave before"));
}

const Example kExamples[] = {
    {"DeviceWithAMountAndAVariable", "example.com_serial-port.sock",
     "mkdir -p {state}/tty/ttyS0 {state}/tty/ttyS1 {state}/tty/tty1 && "
     "exec {bin}/qrm-example-serial-port-plugin --sysfs {state}/tty --plugins-registry-dir "
     "{sockets} --state-dir "
     "{state}",
     "/dev/serial"},
    {"Python", "example.com_lane.sock",
     "exec test/interop/python.sh {state}/modules plugins/examples/python_lanes/lane_plugin.py "
     "{sockets} {state}/lanes.json",
     "LANE=0"},
};
INSTANTIATE_TEST_SUITE_P(Examples, ExamplesTest, testing::ValuesIn(kExamples),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace qrm::manager::own_plugins_test
