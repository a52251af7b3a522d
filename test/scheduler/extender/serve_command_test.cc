#include "scheduler/extender/serve_command.h"

#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/topology/resource_types.h"

namespace qrm::scheduler::serve_command_test {
namespace {

using testing::HasSubstr;

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

Outcome ServeWith(const std::vector<std::string>& args) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunServe(
      {.name = "qrm-scheduler", .factories = ResourceFactories(), .resources = {kStandardResource}},
      args, out, err);
  return {code, out.str(), err.str()};
}

TEST(ServeCommandTest, HelpNamesEachKeyWithItsDefault) {
  const Outcome help = ServeWith({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("--address=127.0.0.1:9755"));
  EXPECT_THAT(help.out, HasSubstr("--resources=[numa]"));
}

TEST(ServeCommandTest, AGoodConfigurationIsSaidToBe) {
  const Outcome good =
      ServeWith({"--check-config", "--call-timeout=1s", "--resources", "numa,classes"});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("good"));
}

struct WrongCase {
  std::string name;  // CamelCase: part of the test's name
  std::vector<std::string> args;
  std::string says;
};
class WrongServeTest : public testing::TestWithParam<WrongCase> {};

TEST_P(WrongServeTest, IsRejectedWithTheCure) {
  const Outcome wrong = ServeWith(GetParam().args);
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr(GetParam().says));
}

const WrongCase kWrong[] = {
    {"UnknownKey", {"--adress=:1"}, "did you mean address"},
    {"NoValue", {"--address"}, "write --KEY=VALUE"},
    {"OpenAddress",
     {"--address=:9755"},
     "every client that reaches it could bind pods; set client-ca-file"},
    {"HalfACertificate", {"--key-file=/k"}, "set both certificate-file and key-file"},
    {"ClientsWithoutTls", {"--client-ca-file=/ca"}, "set certificate-file and key-file"},
    {"OptionsThatTheResourceDoesNotTake", {"--options={numa: {a: 1}}"}, "options.numa"},
    {"OptionsOfAnotherResource", {"--options={classes: {a: 1}}"}, "add it to resources"},
    {"UnknownVerdict", {"--unknown=maybe"}, "filter or pass"},
    {"UnknownResource", {"--resources=gpu"}, "write classes, compute-drivers, numa or numa-match"},
};
INSTANTIATE_TEST_SUITE_P(All, WrongServeTest, testing::ValuesIn(kWrong),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(ServeCommandTest, OutsideOfAClusterAKubeconfigIsAskedFor) {
  const Outcome nowhere = ServeWith({});
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("set kubeconfig"));
}

}  // namespace
}  // namespace qrm::scheduler::serve_command_test
