// qrmctl checkpoint: the state on disk, with and without a daemon.
#include <fstream>
#include <string>

#include <unistd.h>

#include <gmock/gmock.h>

#include "checkpoint/store.h"
#include "manager/state/state_lock.h"
#include "test/checkpoint/sample_state.h"
#include "test/tools/qrmctl/qrmctl_fixture.h"

namespace qrm::manager::cli::qrmctl_checkpoint_test {
namespace {

using test::Admit;
using test::OwnCpus;
using test::SamplePod;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

/// The state on disk, without a server.
class QrmctlCheckpointTest : public QrmctlTest {
 protected:
  QrmctlCheckpointTest() {
    const checkpoint::OpenedStore opened = test::OpenStore(state_);
    EXPECT_TRUE(
        opened.store->Commit(Admit(SamplePod("db", "shop"), "main", {{"cpu", OwnCpus("1-2")}}))
            .ok());
  }

  int RunOn(const std::string& directory, Args args) {
    args.insert(args.begin(), "checkpoint");
    args.insert(args.end(), {"--state-dir", directory});
    return RunAsTyped(args);
  }

  const std::string state_ = dir_ / "state";
};

TEST_F(QrmctlCheckpointTest, VerifyCountsASoundCheckpoint) {
  EXPECT_EQ(RunOn(state_, {"verify"}), kDone) << err();
  EXPECT_EQ(out(), state_ + "/checkpoint.db is sound: 1 pod with 1 container\n");
}

TEST_F(QrmctlCheckpointTest, VerifyFailsForADamagedCheckpoint) {
  std::ofstream(state_ + "/checkpoint.db") << "no database";
  EXPECT_EQ(RunOn(state_, {"verify"}), kFailed);
  EXPECT_THAT(err(), StartsWith("qrmctl checkpoint verify: cannot "));
}

TEST_F(QrmctlCheckpointTest, VerifyWithoutRightsSaysSoAndWhatToDo) {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to drop its rights for a while";
  }
  ASSERT_EQ(::seteuid(kNobody), 0);
  const int code = RunOn(state_, {"verify"});
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(code, kFailed);
  EXPECT_THAT(err(), AllOf(HasSubstr("Permission denied"), HasSubstr("try as root")));
}

TEST_F(QrmctlCheckpointTest, DumpPrintsWhatTheDiskSays) {
  EXPECT_EQ(RunOn(state_, {"dump"}), kDone) << err();
  EXPECT_EQ(out(),
            "NAMESPACE   POD   ROLE   CONTAINER   TYPE   CPUS   MEMS   OTHER\n"
            "shop        db    -      main        MAIN   1-2*   -      -\n");
}

TEST_F(QrmctlCheckpointTest, AnExportCanBeVerifiedAndImportedElsewhere) {
  const std::string file = dir_ / "kubelet_qrm_checkpoint";
  EXPECT_EQ(RunOn(state_, {"export", file}), kDone) << err();
  EXPECT_EQ(out(), "wrote 1 pod with 1 container to " + file + "\n");
  EXPECT_EQ(RunOn(state_, {"verify", file}), kDone) << err();
  EXPECT_EQ(out(), file + " is sound: 1 pod with 1 container\n");

  const std::string other = dir_ / "other";
  EXPECT_EQ(RunOn(other, {"import", file}), kDone) << err();
  EXPECT_EQ(out(), "imported 1 pod with 1 container into " + other + "/checkpoint.db\n");
  EXPECT_EQ(RunOn(other, {"dump", "uid-db"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("CpusetCpus:   1-2"));
}

TEST_F(QrmctlCheckpointTest, ExportToADashWritesTheFileToStandardOutput) {
  EXPECT_EQ(RunOn(state_, {"export", "-"}), kDone) << err();
  EXPECT_THAT(out(), StartsWith("{"));
}

TEST_F(QrmctlCheckpointTest, ImportFailsWhileQrmdRuns) {
  const std::string file = dir_ / "kubelet_qrm_checkpoint";
  ASSERT_EQ(RunOn(state_, {"export", file}), kDone);
  const auto qrmd = StateLock::Take(state_);
  ASSERT_TRUE(qrmd.ok());
  EXPECT_EQ(RunOn(state_, {"import", file}), kFailed);
  EXPECT_THAT(err(), HasSubstr("uses it; stop that process"));
}

TEST_F(QrmctlCheckpointTest, ImportRejectsAFileThatIsNotACheckpoint) {
  const std::string file = dir_ / "wrong";
  std::ofstream(file) << "{}";
  EXPECT_EQ(RunOn(state_, {"import", file}), kFailed);
  EXPECT_EQ(RunOn(state_, {"import", dir_ / "none"}), kFailed);
  EXPECT_THAT(err(), HasSubstr("cannot read"));
}

TEST_F(QrmctlCheckpointTest, AnUnknownVerbSaysWhatToType) {
  EXPECT_EQ(RunAsTyped({"checkpoint"}), kMisuse);
  EXPECT_EQ(RunAsTyped({"checkpoint", "drop"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("there is no verb \"drop\"; try: qrmctl checkpoint verify"));
}

}  // namespace
}  // namespace qrm::manager::cli::qrmctl_checkpoint_test
