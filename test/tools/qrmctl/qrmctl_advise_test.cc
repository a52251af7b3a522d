// qrmctl pool advise, on the socket of a cpu plugin.
#include <chrono>
#include <memory>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/plugins/cpu/elastic_fixture.h"
#include "test/support/temp_dir.h"
#include "tools/qrmctl/command.h"

namespace qrm::cpu::qrmctl_advise_test {
namespace {

using manager::cli::Args;
using testing::HasSubstr;

constexpr char kPools[] = R"(
rules: [{select: {role: team}, pool: team}]
pools:
  batch: {size: {min: 2, max: 40, per: advice, step: 4}}
  team: {size: {min: 1}, instances: {by: namespace}}
  default: {size: {min: 2}}
)";

class QrmctlAdviseTest : public ElasticPlugins {
 protected:
  void SetUp() override {
    plugin_ = std::make_unique<test::Drive>(
        Start(std::string(kPools) + "advisor: {socket: " + socket_ + ", pools: [batch, team]}\n"));
    plugin_->plugin().Begin("");
  }
  void TearDown() override { plugin_->plugin().Retire(); }

  int Advise(const Args& words) {
    Args args = {"pool", "advise", "--socket", socket_};
    args.insert(args.end(), words.begin(), words.end());
    out_.str("");
    err_.str("");
    return manager::cli::RunQrmctl(args, out_, err_);
  }

  test::TempDir dir_;
  const std::string socket_ = dir_.path() + "/advisors/advisor.sock";
  std::unique_ptr<test::Drive> plugin_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(QrmctlAdviseTest, ShowsWhatAdvisorsSee) {
  Admit(*plugin_, "a", "team", 3);
  plugin_->Reconcile();
  EXPECT_EQ(Advise({}), manager::cli::kDone) << err_.str();
  EXPECT_EQ(out_.str(),
            "POOL           MIN   MAX   SIZE   ASKED   ADVISED\n"
            "batch          2     40    2      2       -\n"
            "default        2     -     2      2       not to be\n"
            "team/default   1     -     3      3       -\n");
}

TEST_F(QrmctlAdviseTest, AdvisesPoolsAndInstancesAndSaysWhatComesOfIt) {
  Admit(*plugin_, "a", "team", 3);
  plugin_->Reconcile();
  EXPECT_EQ(Advise({"batch=30", "team/default=8", "default=9"}), manager::cli::kDone) << err_.str();
  EXPECT_EQ(out_.str(),
            "POOL           ADVISED   NEXT   CLIPPED BY\n"
            "batch          30        6      step\n"
            "team/default   8         8      -\n"
            "default        9         0      unknown\n");
  clock_.Advance(std::chrono::seconds(1));
  plugin_->Reconcile();
  EXPECT_EQ(Size(*plugin_, "batch"), 6);
  EXPECT_EQ(Size(*plugin_, "team/default"), 8);
}

TEST_F(QrmctlAdviseTest, CountsForItsLease) {
  EXPECT_EQ(Advise({"batch=6", "--lease", "5s"}), manager::cli::kDone) << err_.str();
  EXPECT_EQ(Advise({"batch=6", "--advisor", "other"}), manager::cli::kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("qrmctl leads pool batch"));
  clock_.Advance(std::chrono::seconds(5));
  EXPECT_EQ(Advise({"batch=6", "--advisor", "other"}), manager::cli::kDone) << err_.str();
}

TEST_F(QrmctlAdviseTest, SaysWhichWordIsWrong) {
  EXPECT_EQ(Advise({"batch"}), manager::cli::kMisuse);
  EXPECT_THAT(err_.str(), HasSubstr("\"batch\" is not of the form NAME=COUNT"));
  EXPECT_EQ(Advise({"batch=-1"}), manager::cli::kMisuse);
  EXPECT_EQ(Advise({"=1"}), manager::cli::kMisuse);
  EXPECT_EQ(Advise({"batch=1", "--lease", "soon"}), manager::cli::kMisuse);
  EXPECT_THAT(err_.str(), HasSubstr("\"soon\" is not a duration"));
  EXPECT_EQ(manager::cli::RunQrmctl({"pool", "advise"}, out_, err_), manager::cli::kMisuse);
  EXPECT_THAT(err_.str(), HasSubstr("--socket is missing"));
}

}  // namespace
}  // namespace qrm::cpu::qrmctl_advise_test
