#include "scheduler/simulate/simulate_command.h"

#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace qrm::scheduler::simulate_command_test {
namespace {

using testing::HasSubstr;

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};

Ran Simulate(const std::vector<std::string>& args) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunSimulate(args, out, err);
  return {code, out.str(), err.str()};
}

TEST(SimulateCommandTest, PlaysTheSampleTrace) {
  const Ran ran = Simulate({"docs/samples/trace.yaml", "--output", "json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const nlohmann::json report = nlohmann::json::parse(ran.out);
  EXPECT_EQ(report.at("pods"), 9);
  EXPECT_EQ(report.at("false_accepts"), 0);
  EXPECT_EQ(report.at("waiting"), 0);
}

TEST(SimulateCommandTest, ShowsWhatTheFilterPrevents) {
  const Ran ran = Simulate({"docs/samples/trace.yaml", "--without", "numa", "-o", "json"});
  EXPECT_GT(nlohmann::json::parse(ran.out).at("false_accepts"), 0);
}

TEST(SimulateCommandTest, PrintsForPeople) {
  const Ran ran = Simulate({"docs/samples/trace.yaml"});
  EXPECT_THAT(ran.out, HasSubstr("false accepts  0\n"));
  EXPECT_THAT(ran.out, HasSubstr("fragmentation  "));
  EXPECT_THAT(ran.out, HasSubstr("utilisation    cpu    "));
}

TEST(SimulateCommandTest, SaysWhatIsWrong) {
  EXPECT_EQ(Simulate({"no/such/file"}).code, 1);
  EXPECT_THAT(Simulate({"no/such/file"}).err, HasSubstr("cannot read no/such/file: no such file"));
  EXPECT_EQ(Simulate({}).code, 2);
  EXPECT_THAT(Simulate({"--nonsense"}).err, HasSubstr("try: qrm-scheduler simulate --help"));
  EXPECT_THAT(Simulate({"--help"}).out, HasSubstr("TRACE"));
}

}  // namespace
}  // namespace qrm::scheduler::simulate_command_test
