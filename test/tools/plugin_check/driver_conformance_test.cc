// The conformance test of compute drivers: the example's process, and drivers that break a rule.
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/id_set.h"
#include "test/support/scripted_driver.h"
#include "test/support/temp_dir.h"
#include "tools/plugin_check/check_command.h"

namespace qrm::manager::driver_conformance_test {
namespace {

using test::DriverScript;
using test::ScriptedDriver;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class DriverConformanceTest : public testing::Test {
 protected:
  int Check(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {socket_, "--cci", "--machine",
                                          "synthetic:package:1 [numa] core:8 pu:1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::ostringstream errors;
    const int code = RunPluginCheck(std::move(arguments), out_, errors);
    EXPECT_EQ(errors.str(), "");
    return code;
  }
  /// Of the program `driver`, which is killed meanwhile.
  int CheckProgram(const std::string& driver, const std::vector<std::string>& more) {
    const std::string bin = std::filesystem::canonical("/proc/self/exe").parent_path();
    std::vector<std::string> arguments = {
        "--amount", "2", "--command",
        fmt::format("exec {}/{} --plugins-registry-dir {} --socket-name driver.sock --state-dir {} "
                    "--control-socket ''",
                    bin, driver, dir_.path(), dir_.path())};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Check(std::move(arguments));
  }
  int CheckScripted(DriverScript script) {
    const ScriptedDriver driver(socket_, std::move(script));
    return Check();
  }

  const test::TempDir dir_;
  const std::string socket_ = dir_ / "driver.sock";
  std::ostringstream out_;
};

TEST_F(DriverConformanceTest, TheExampleKeepsEveryRuleAlsoThroughKill) {
  EXPECT_EQ(CheckProgram("qrm-example-round-robin-driver", {}), 0) << out_.str();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("ok      keeps what it gave through kill -9"),
                                Not(HasSubstr("BROKEN")), Not(HasSubstr("skipped"))));
}

TEST_F(DriverConformanceTest, TheDriverOfAttributesKeepsEveryRuleAlsoThroughKill) {
  EXPECT_EQ(CheckProgram("qrm-cci-driver --machine 'synthetic:package:1 [numa] core:8 pu:1'",
                         {"--spec", "{cores: '*2', attributes: 'exclusive, numa-single'}"}),
            0)
      << out_.str();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("ok      keeps what it gave through kill -9"),
                                Not(HasSubstr("BROKEN")), Not(HasSubstr("skipped"))));
}

TEST_F(DriverConformanceTest, AnAnswerAboutARunningContainerDoesNotCountByItself) {
  DriverScript script;
  script.resizes = true;
  script.admit = [given = std::string()](const auto& request, auto& response) mutable {
    const CpuSet available = CpuSet::Parse(request.availablecpus()).value_or(CpuSet());
    if (available.Empty()) {
      response.set_err("none is left");
      return OkStatus();
    }
    if (given.empty() || !request.current_cpus().empty()) {
      given = request.current_cpus().empty()
                  ? ToString(available - CpuSet{available.First()} - CpuSet::Range(3, 7))
                  : "5";
    }
    response.mutable_rset()->set_cpuset(given);
    response.mutable_rset()->set_exclusive(true);
    return OkStatus();
  };
  EXPECT_EQ(CheckScripted(script), 1);
  EXPECT_THAT(
      out_.str(),
      AllOf(HasSubstr("BROKEN  chooses for a running container among the CPUs that it may have: it "
                      "gave CPUs 5 of which 5 were not offered"),
            HasSubstr("BROKEN  keeps what a container has while nothing else is in force")));
}

TEST_F(DriverConformanceTest, NamesTheRuleThatADriverBreaks) {
  DriverScript script;
  script.admit = [](const auto&, auto& response) {
    response.mutable_rset()->set_cpuset("0");  // never offered
    response.mutable_rset()->set_exclusive(true);
    return OkStatus();
  };
  EXPECT_EQ(CheckScripted(script), 1);
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("BROKEN  admits container main: it gave CPUs 0 of which 0 were not"),
                    HasSubstr("BROKEN  rejects a request when no CPU is left to choose from")));
}

TEST_F(DriverConformanceTest, CpusThatAreSharedAreTheSameWhenItIsAskedAgain) {
  DriverScript script;
  script.admit = [asked = 0](const auto& request, auto& response) mutable {
    const CpuSet available = CpuSet::Parse(request.availablecpus()).value_or(CpuSet());
    if (available.Empty()) {
      response.set_err("none is left");
      return OkStatus();
    }
    const CpuSet own = {available.Last()};
    const CpuSet shared = {asked++ == 0 ? 0 : 1};
    response.mutable_rset()->set_cpuset(ToString(own | shared));
    auto& part = *response.mutable_rset()->add_parts();
    part.set_cpuset(ToString(own));
    part.set_exclusive(true);
    response.mutable_rset()->add_parts()->set_cpuset(ToString(shared));
    return OkStatus();
  };
  EXPECT_EQ(CheckScripted(script), 1);
  EXPECT_THAT(out_.str(),
              HasSubstr("BROKEN  gives the same when it is asked again: first 7, sharing 0, then "
                        "7, sharing 1"));
}

TEST_F(DriverConformanceTest, ARejectionIsTheDriversRight) {
  DriverScript script;
  script.admit = [](const auto&, auto& response) {
    response.set_err("the moon is full");
    return OkStatus();
  };
  EXPECT_EQ(CheckScripted(script), 3);
  EXPECT_THAT(out_.str(), HasSubstr("refused admits container main: the moon is full"));
}

}  // namespace
}  // namespace qrm::manager::driver_conformance_test
