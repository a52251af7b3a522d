#include "manager/state/state_loop.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/base/log_level.h"
#include "manager/state/state_lock.h"
#include "test/support/memory_store.h"
#include "test/support/sample_node.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::state_loop_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(StateLoopTest, RunsWorkInTheOrderOfItsPosting) {
  test::Journal journal;
  std::vector<int> order;
  {
    StateLoop state(test::OpenMemoryStore(journal));
    for (int i = 0; i < 3; ++i) {
      state.Post([&order, i] { order.push_back(i); });
    }
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
}

TEST(StateLoopTest, DropsWorkAfterItStopped) {
  test::Journal journal;
  StateLoop state(test::OpenMemoryStore(journal));
  state.Stop();
  bool ran = false;
  state.Post([&ran] { ran = true; });
  state.Stop();
  EXPECT_FALSE(ran);
}

TEST(StateLoopTest, PublishesCommittedStates) {
  test::Journal journal;
  StateLoop state(test::OpenMemoryStore(journal));
  const auto before = state.Load();
  const Status saved = test::RunOn(
      state, [&] { return state.Commit(test::Admit(test::SamplePod("web"), "main", {})); });
  ASSERT_TRUE(saved.ok());
  EXPECT_EQ(before->pod_count(), 0u) << "a snapshot never changes";
  EXPECT_EQ(state.Load()->pod_count(), 1u);
}

TEST(StateLoopTest, ReportsWhenTheStateCouldBeReadAtLast) {
  test::Journal journal;
  int returned = 0;
  std::vector<std::string> refused;
  StateLoop state(test::OpenMemoryStore(journal),
                  {.on_disk_refused = [&](const std::string& why) { refused.push_back(why); },
                   .on_disk_returned = [&returned] { ++returned; }});
  const auto recall = [&] { return test::RunOn(state, [&] { return state.Recall().code(); }); };
  EXPECT_EQ(recall(), StatusCode::kOk);
  EXPECT_EQ(returned, 0);
  journal.Hide(Errorf(StatusCode::kFailedPrecondition, "no permission"));
  EXPECT_EQ(recall(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(recall(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused, ElementsAre(HasSubstr("no permission"))) << "once";
  journal.Hide(OkStatus());
  const auto before = state.Load();
  EXPECT_EQ(recall(), StatusCode::kOk);
  EXPECT_NE(state.Load(), before) << "it is published";
  EXPECT_EQ(returned, 1);
}

TEST(StateLoopTest, PublishesWhatTheDiskHoldsBeforeTheFirstDecisionByIt) {
  test::Journal journal;
  journal.Hide(Errorf(StatusCode::kFailedPrecondition, "no permission"));
  StateLoop state(test::OpenMemoryStore(journal));
  EXPECT_FALSE(state.known());
  const auto before = state.Load();

  journal.Hide(OkStatus());
  EXPECT_TRUE(test::RunOn(state, [&] { return state.Recall(); }).ok());

  EXPECT_TRUE(state.known());
  EXPECT_NE(state.Load(), before) << "it is published";
}

TEST(StateLoopTest, ReportsTheStateThatTheStartCouldNotRead) {
  test::Journal journal;
  journal.Hide(Errorf(StatusCode::kFailedPrecondition, "no permission"));
  int recalled = 0;
  StateLoop state(test::OpenMemoryStore(journal),
                  {.on_recalled = [&recalled](const checkpoint::NodeState&) { ++recalled; }});
  state.KeepValue("cpu", "of a plugin that knew nothing");
  journal.Hide(OkStatus());
  EXPECT_TRUE(test::RunOn(state, [&] { return state.Recall(); }).ok());
  EXPECT_TRUE(test::RunOn(state, [&] { return state.Remember({}); }).ok());
  EXPECT_EQ(recalled, 1);
  EXPECT_TRUE(state.Load()->plugin_values().empty());
}

TEST(StateLoopTest, WritesWhatAPluginKeepsWithTheNextChangeOnce) {
  test::Journal journal;
  StateLoop state(test::OpenMemoryStore(journal));
  state.KeepValue("cpu", "pools");
  EXPECT_EQ(journal.commits(), 0u);
  const auto commit = [&](const std::string& pod) {
    return test::RunOn(state,
                       [&] { return state.Commit(test::Admit(test::SamplePod(pod), "main", {})); });
  };
  ASSERT_TRUE(commit("web").ok());
  ASSERT_TRUE(commit("db").ok());
  const std::vector<checkpoint::Change> changes = journal.changes();
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].put_plugin_values, (StringMap{{"cpu", "pools"}}));
  EXPECT_TRUE(changes[1].put_plugin_values.empty());
  EXPECT_EQ(state.Load()->plugin_values().at("cpu"), "pools");
}

TEST(StateLoopTest, WritesWhatAPluginKeepsWithAnEmptyChange) {
  test::Journal journal;
  StateLoop state(test::OpenMemoryStore(journal));
  state.KeepValue("cpu", "pools");
  EXPECT_TRUE(test::RunOn(state, [&] { return state.Remember({}); }).ok());
  EXPECT_EQ(state.Load()->plugin_values().at("cpu"), "pools");
  EXPECT_TRUE(test::RunOn(state, [&] { return state.Remember({}); }).ok());
  EXPECT_EQ(journal.commits(), 1u);
}

TEST(StateLoopTest, KnowsHowLongTheDiskTakes) {
  using std::chrono::seconds;
  test::Journal journal;
  StateLoop state(test::OpenMemoryStore(journal));
  const auto begun = std::chrono::steady_clock::now();
  journal.on_commit = [&](const checkpoint::Change&) {
    EXPECT_GE(state.write_pace().Took(std::chrono::steady_clock::now() + seconds(9)), seconds(9));
  };
  EXPECT_TRUE(test::RunOn(state, [&] {
                return state.Commit(test::Admit(test::SamplePod("web"), "main", {}));
              }).ok());
  const auto ended = std::chrono::steady_clock::now();
  EXPECT_LE(state.write_pace().Took(ended), ended - begun);
  EXPECT_EQ(state.write_pace().Took(ended + seconds(61)).count(), 0) << "it is not news";
}

TEST(StateLoopTest, PublishesNothingThatTheStoreRejected) {
  test::Journal journal;
  journal.Fail(Errorf(StatusCode::kResourceExhausted, "disk full"));
  StateLoop state(test::OpenMemoryStore(journal));
  const Status saved = test::RunOn(
      state, [&] { return state.Commit(test::Admit(test::SamplePod("web"), "main", {})); });
  EXPECT_EQ(saved.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(state.Load()->pod_count(), 0u);
}

TEST(StateLoopTest, PublishesStatesInMemoryAndReportsWhenTheDiskTakesThem) {
  test::Journal journal;
  int returned = 0;
  StateLoop state(test::OpenMemoryStore(journal),
                  {.on_disk_returned = [&returned] { ++returned; }});
  const auto remember = [&](const checkpoint::Change& change) {
    return test::RunOn(state, [&] { return state.Remember(change); });
  };
  journal.Fail(Errorf(StatusCode::kResourceExhausted, "disk full"));
  EXPECT_TRUE(remember(test::Admit(test::SamplePod("web"), "main", {})).ok());
  EXPECT_EQ(state.Load()->pod_count(), 1u);
  EXPECT_EQ(returned, 0);

  journal.Fail(OkStatus());
  EXPECT_TRUE(remember({}).ok());
  EXPECT_TRUE(remember({}).ok());
  EXPECT_EQ(returned, 1);

  journal.Fail(Errorf(StatusCode::kInvalidArgument, "not UTF-8"));
  EXPECT_FALSE(remember(test::Admit(test::SamplePod("bad"), "main", {})).ok());
  EXPECT_EQ(state.Load()->pod_count(), 1u);
}

TEST(StateLockTest, RejectsASecondDaemonOnTheSameDirectory) {
  const test::TempDir dir;
  const auto first = StateLock::Take(dir / "state");
  ASSERT_TRUE(first.ok());
  const auto second = StateLock::Take(dir / "state");
  EXPECT_EQ(second.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(second.status()), HasSubstr("pid " + std::to_string(::getpid())));
}

TEST(StateLockTest, IsFreeAgainWhenItsHolderIsGone) {
  const test::TempDir dir;
  {
    ASSERT_TRUE(StateLock::Take(dir / "state").ok());
  }
  EXPECT_TRUE(StateLock::Take(dir / "state").ok());
}

TEST(StateLockTest, MakesThePrivateDirectory) {
  const test::TempDir dir;
  const auto lock = StateLock::Take(dir / "a/b");
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(std::filesystem::status(dir / "a/b").permissions(), std::filesystem::perms::owner_all);
}

TEST(StateLockTest, FollowsNoLinkWhenItWrites) {
  namespace fs = std::filesystem;
  for (const auto make_link : {&::link, &::symlink}) {
    const test::TempDir dir;
    std::ofstream(dir / "target") << "of another program";
    fs::create_directory(dir / "state");
    ASSERT_EQ(make_link((dir / "target").c_str(), (dir / "state/qrmd.lock").c_str()), 0);
    EXPECT_TRUE(StateLock::Take(dir / "state").ok());
    EXPECT_EQ(fs::file_size(dir / "target"), 18u);
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(dir / "state/qrmd.lock")));
  }
}

TEST(StateLockTest, ClosesADirectoryOfItsUserToOthers) {
  using std::filesystem::perms;
  const test::TempDir dir;
  std::filesystem::create_directory(dir / "state");
  std::filesystem::permissions(dir / "state", perms::all);
  std::vector<std::string> said;
  log::SetSink([&said](log::Level, const std::string& line) { said.push_back(line); });
  const auto lock = StateLock::Take(dir / "state");
  log::SetSink({});
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(std::filesystem::status(dir / "state").permissions(), perms::owner_all);
  EXPECT_THAT(said, ElementsAre(testing::AllOf(HasSubstr("state directory closed to other users"),
                                               HasSubstr("777"))));
}

TEST(StateLockTest, RejectsADirectoryForAllToWriteIn) {
  using std::filesystem::perms;
  const test::TempDir dir;
  std::filesystem::permissions(dir.path(), perms::all | perms::sticky_bit);
  EXPECT_THAT(MessageOf(StateLock::Take(dir.path()).status()),
              HasSubstr("other users may write there (mode 1777)"));
}

TEST(StateLockTest, RejectsADirectoryOfAnotherUserWithTheRemedy) {
  const test::TempDir dir;
  if (::chown(dir.path().c_str(), 12345, 0) != 0) {
    GTEST_SKIP() << "needs root";
  }
  EXPECT_THAT(MessageOf(StateLock::Take(dir.path()).status()),
              testing::AllOf(HasSubstr("belongs to user 12345"), HasSubstr("chown root")));
}

TEST(StateLoopTest, ReportsEachWriteWithTheRepairsSoFar) {
  const test::TempDir dir = test::TempDir::InMemory();
  std::ofstream(dir / "checkpoint.db") << "another program's";
  std::vector<std::size_t> repairs;
  std::vector<bool> accepted;
  StateLoop state(
      *checkpoint::OpenSqliteStore(dir.path()),
      {.on_written = [&](const WritePace& pace, const Status& written, std::size_t so_far) {
        EXPECT_TRUE(pace.ended.has_value());
        repairs.push_back(so_far);
        accepted.push_back(written.ok());
      }});
  EXPECT_THAT(repairs, ElementsAre(1)) << "of the database that was found";
  std::filesystem::remove(dir / "checkpoint.db");
  const Status saved = test::RunOn(
      state, [&] { return state.Commit(test::Admit(test::SamplePod("web"), "main", {})); });
  EXPECT_TRUE(saved.ok());
  EXPECT_GT(repairs.back(), 1U);
  EXPECT_THAT(accepted, testing::Each(true));
}

}  // namespace
}  // namespace qrm::manager::state_loop_test
