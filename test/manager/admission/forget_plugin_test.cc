// The records and the entry of a plugin that is forgotten.
#include "manager/admission/forget_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "test/manager/admission/admitter_fixture.h"

namespace qrm::test::forget_plugin_test {
namespace {

using manager::ForgetPlugin;
using manager::RecordsToForget;
using ::testing::SizeIs;

class ForgetPluginTest : public AdmitterTest {
 protected:
  ForgetPluginTest() { EXPECT_TRUE(Admit(Demand()).ok()); }

  void Lose(const std::string& resource) {
    PluginScript away;
    away.live = false;
    plugins_.Set(resource, away);
  }
  StatusOr<checkpoint::PluginRecords> Forget(const std::string& resource) {
    return RunOn(state_, [&] { return ForgetPlugin(resource, state_, plugins_); });
  }
};

TEST_F(ForgetPluginTest, DropsItsRecordsAndItsEntryInOneCommit) {
  Lose("cpu");
  const std::size_t commits = journal_.commits();
  const auto forgotten = Forget("cpu");
  ASSERT_TRUE(forgotten.ok()) << forgotten.status();
  EXPECT_THAT(forgotten->allocations, SizeIs(1));
  EXPECT_EQ(journal_.commits(), commits + 1);
  EXPECT_EQ(Record(Demand())->allocations.count("cpu"), 0U);
  EXPECT_EQ(Record(Demand())->allocations.count("memory"), 1U);
  EXPECT_FALSE(plugins_.Find("cpu").has_value());
}

TEST_F(ForgetPluginTest, RejectsWhileThePluginIsLive) {
  EXPECT_EQ(MessageOf(Forget("cpu").status()),
            "cannot forget plugin cpu: it is live at /run/cpu.sock; take it out of builtin-plugins "
            "and restart qrmd first");
  EXPECT_EQ(Record(Demand())->allocations.count("cpu"), 1U);
}

TEST_F(ForgetPluginTest, SaysThatAPluginIsNotKnown) {
  EXPECT_EQ(MessageOf(Forget("example.com/typo").status()),
            "cannot forget plugin example.com/typo: it is not known; qrmctl plugins lists the "
            "known plugins");
}

TEST_F(ForgetPluginTest, ChangesNothingWhenTheDiskRejects) {
  Lose("cpu");
  journal_.Fail(Errorf(StatusCode::kResourceExhausted, "disk full"));
  EXPECT_FALSE(Forget("cpu").ok());
  EXPECT_EQ(Record(Demand())->allocations.count("cpu"), 1U);
  EXPECT_TRUE(plugins_.Find("cpu").has_value());
}

TEST_F(ForgetPluginTest, DryRunOnlyReportsWhatItWouldForget) {
  Lose("cpu");
  const auto records = RecordsToForget("cpu", *state_.Load(), plugins_);
  ASSERT_TRUE(records.ok());
  EXPECT_THAT(records->allocations, SizeIs(1));
  EXPECT_EQ(Record(Demand())->allocations.count("cpu"), 1U);
}

}  // namespace
}  // namespace qrm::test::forget_plugin_test
