// The executor on files that behave as nastily as the kernel's.
#include "plugins/kernel/kernel_values.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/base/errorf.h"
#include "test/plugins/kernel/nasty_files.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::kernel::kernel_values_test {
namespace {

using test::IsOk;
using test::NastyFiles;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr char kMin[] = "cpu2/scaling_min_freq";
constexpr char kMax[] = "cpu2/scaling_max_freq";
constexpr char kIrq[] = "proc/irq/5/smp_affinity_list";
constexpr char kBootId[] = "proc/sys/kernel/random/boot_id";

Claim Floor(const std::string& value) {
  return {.path = kMin, .form = ClaimForm::kFloor, .value = value};
}
Claim Ceiling(const std::string& value) {
  return {.path = kMax, .form = ClaimForm::kCeiling, .value = value};
}
Claim Quiet(const std::string& cpus) {
  return {.path = kIrq, .form = ClaimForm::kCpuList, .value = cpus, .is_optional = true};
}

class KernelValuesTest : public testing::Test {
 protected:
  KernelValuesTest() {
    files_.values[kMin] = "800";
    files_.values[kMax] = "3000";
    files_.values[kIrq] = "0-7";
    Open();
  }
  /// As a new process.
  void Open() {
    knobs_.reset();
    auto knobs = KernelValues::Open(files_, journal_);
    ASSERT_TRUE(IsOk(knobs.status()));
    knobs_ = *std::move(knobs);
  }
  Status Hold(const std::string& owner, const std::vector<Claim>& claims) {
    return knobs_->Hold(owner, claims).status();
  }
  const std::string& Value(const char* path) { return files_.values[path]; }

  const test::TempDir dir_ = test::TempDir::InMemory();
  const std::string journal_ = dir_ / "knobs.json";
  NastyFiles files_;
  std::unique_ptr<KernelValues> knobs_;
};

TEST_F(KernelValuesTest, AKeptValueIsNotWrittenAndIsRestoredWhateverItHasBecome) {
  ASSERT_TRUE(IsOk(Hold("a", {{.path = kMin, .form = ClaimForm::kKept}})));
  EXPECT_EQ(Value(kMin), "800");
  files_.values[kMin] = "0";  // as the kernel does
  Open();
  ASSERT_TRUE(IsOk(knobs_->Release("a")));
  EXPECT_EQ(Value(kMin), "800");
}

TEST_F(KernelValuesTest, AReleasedFileIsReleasedByAllOwners) {
  ASSERT_TRUE(IsOk(Hold("a", {Floor("1200"), Ceiling("2000")})));
  ASSERT_TRUE(IsOk(Hold("b", {Floor("1500")})));
  ASSERT_TRUE(IsOk(knobs_->ReleaseFile(kMin)));
  EXPECT_EQ(Value(kMin), "800");
  EXPECT_EQ(Value(kMax), "2000");
  EXPECT_TRUE(IsOk(knobs_->ReleaseFile(kMin))) << "once more";
  ASSERT_TRUE(IsOk(Hold("a", {Ceiling("2000")})));
  files_.values.erase(kMax);
  EXPECT_TRUE(IsOk(knobs_->ReleaseFile(kMax))) << "what is gone needs nothing";
  EXPECT_THAT(knobs_->records(), IsEmpty());
}

TEST_F(KernelValuesTest, TheLastOwnerLeavesTheFormerValue) {
  ASSERT_TRUE(IsOk(Hold("a", {Floor("1200")})));
  ASSERT_TRUE(IsOk(Hold("b", {Floor("2000")})));
  EXPECT_EQ(Value(kMin), "2000");
  ASSERT_TRUE(IsOk(knobs_->Release("b")));
  EXPECT_EQ(Value(kMin), "1200");
  ASSERT_TRUE(IsOk(knobs_->Release("a")));
  EXPECT_EQ(Value(kMin), "800");
  EXPECT_THAT(knobs_->records(), IsEmpty());
  EXPECT_TRUE(IsOk(knobs_->Release("a"))) << "once more";
}

TEST_F(KernelValuesTest, TheFormerValueIsNotReadAgainWhileThereAreOwners) {
  ASSERT_TRUE(IsOk(Hold("a", {Floor("1200")})));
  Open();
  ASSERT_TRUE(IsOk(knobs_->KeepOnly({"a"})));
  ASSERT_TRUE(IsOk(Hold("b", {Floor("2000")})));
  ASSERT_TRUE(IsOk(knobs_->Release("a")));
  ASSERT_TRUE(IsOk(knobs_->Release("b")));
  EXPECT_EQ(Value(kMin), "800");
}

TEST_F(KernelValuesTest, FilesAreRestoredInReverseOrder) {
  ASSERT_TRUE(IsOk(Hold("a", {Floor("1200"), Ceiling("2000")})));
  files_.writes.clear();
  ASSERT_TRUE(IsOk(knobs_->Release("a")));
  EXPECT_THAT(files_.writes, ElementsAre(Pair(kMax, "3000"), Pair(kMin, "800")));
}

TEST_F(KernelValuesTest, ALimitThatTheOtherOneHoldsBackIsWrittenAfterIt) {
  files_.on_write[kMin] = [&](const std::string& value) -> StatusOr<std::string> {
    return std::stoi(value) <= std::stoi(files_.values[kMax])
               ? StatusOr<std::string>(value)
               : Errorf(StatusCode::kInvalidArgument, "cannot write {}: Invalid argument", value);
  };
  files_.values[kMax] = "1000";
  ASSERT_TRUE(IsOk(Hold("a", {Floor("2000"), {kMax, ClaimForm::kCeiling, "2500"}})));
  EXPECT_EQ(Value(kMin) + " " + Value(kMax), "2000 2500");
}

TEST_F(KernelValuesTest, AValueThatComesBackOtherwiseFailsAndIsUndone) {
  files_.on_write[kMax] = [](const std::string& value) {
    return value == "2000" ? StatusOr<std::string>("1800") : StatusOr<std::string>(value);
  };
  const Status held = Hold("a", {Floor("1200"), Ceiling("2000")});
  EXPECT_EQ(MessageOf(held),
            "cannot set cpu2/scaling_max_freq to 2000: the kernel accepted it but shows 1800; "
            "request a value that the kernel keeps");
  EXPECT_EQ(Value(kMin), "800");
  EXPECT_EQ(Value(kMax), "3000");
  EXPECT_THAT(knobs_->records(), IsEmpty());
}

TEST_F(KernelValuesTest, APartitionThatTheKernelCallsInvalidFailsAndIsUndone) {
  constexpr char kPartition[] = "a/cpuset.cpus.partition";
  files_.values[kPartition] = "member";
  files_.on_write[kPartition] = [](const std::string& value) -> StatusOr<std::string> {
    return value == "isolated" ? value + " invalid (Parent is not a partition root)" : value;
  };
  EXPECT_EQ(MessageOf(Hold("a", {{kPartition, ClaimForm::kPartition, "isolated"}})),
            "cannot set a/cpuset.cpus.partition to isolated: the kernel accepted it but shows "
            "isolated invalid (Parent is not a partition root); request a value that the kernel "
            "keeps");
  EXPECT_EQ(Value(kPartition), "member");
}

TEST_F(KernelValuesTest, APartitionThatBecameInvalidSinceIsOursToUndo) {
  constexpr char kPartition[] = "a/cpuset.cpus.partition";
  files_.values[kPartition] = "member";
  ASSERT_TRUE(IsOk(Hold("a", {{kPartition, ClaimForm::kPartition, "isolated"}})));
  files_.values[kPartition] = "isolated invalid (No cpu available due to hotplug)";
  ASSERT_TRUE(IsOk(knobs_->Release("a")));
  EXPECT_EQ(Value(kPartition), "member");
}

TEST_F(KernelValuesTest, AHeldValueStaysUntilAnotherProcessWrites) {
  EXPECT_FALSE(knobs_->Holds("a", {Quiet("2-3")}));
  ASSERT_TRUE(IsOk(Hold("a", {Quiet("2-3")})));
  EXPECT_TRUE(knobs_->Holds("a", {Quiet("2-3")})) << Value(kIrq) << " is what is left";
  EXPECT_FALSE(knobs_->Holds("b", {Quiet("2-3")}));
  EXPECT_FALSE(knobs_->Holds("a", {Quiet("2")}));
  files_.values[kIrq] = "0-7";
  EXPECT_FALSE(knobs_->Holds("a", {Quiet("2-3")}));
}

TEST_F(KernelValuesTest, AnOwnerReleasesAllExceptWhatItStillWants) {
  ASSERT_TRUE(IsOk(Hold("a", {Floor("1200"), Ceiling("2000")})));
  ASSERT_TRUE(IsOk(Hold("b", {Floor("1000")})));
  ASSERT_TRUE(IsOk(knobs_->ReleaseAllBut("a", {Ceiling("2000")})));
  EXPECT_EQ(Value(kMin) + " " + Value(kMax), "1000 2000");
}

TEST_F(KernelValuesTest, KilledBeforeItCouldReadBackItRestoresWhateverTheKernelMadeOfTheValue) {
  files_.on_write[kMax] = [](const std::string& value) {
    return value == "2000" ? StatusOr<std::string>("1800") : StatusOr<std::string>(value);
  };
  files_.steps_to_live = 3;  // reads it twice, writes it
  EXPECT_THROW((void)Hold("a", {Ceiling("2000")}), NastyFiles::Killed);
  files_.steps_to_live = -1;
  ASSERT_EQ(Value(kMax), "1800");
  Open();
  ASSERT_TRUE(IsOk(knobs_->KeepOnly({})));
  EXPECT_EQ(Value(kMax), "3000");
}

TEST_F(KernelValuesTest, AnOptionalRejectionIsReportedAndHasNoOwner) {
  files_.on_write[kIrq] = test::RefuseWrite;
  const auto refusals = knobs_->Hold("a", {Quiet("2-3"), Floor("1200")});
  ASSERT_TRUE(IsOk(refusals.status()));
  ASSERT_EQ(refusals->size(), 1u);
  EXPECT_EQ(refusals->front().path, kIrq);
  EXPECT_THAT(refusals->front().reason, HasSubstr("Input/output error"));
  EXPECT_EQ(Value(kMin), "1200");
  EXPECT_THAT(knobs_->records(), ElementsAre(testing::Field(&JournalRecord::path, kMin)));
}

TEST_F(KernelValuesTest, NothingIsWrittenForClaimsThatExcludeEachOther) {
  ASSERT_TRUE(IsOk(Hold("a", {{kMin, ClaimForm::kWord, "1"}})));
  files_.writes.clear();
  EXPECT_THAT(MessageOf(Hold("b", {Ceiling("9"), {kMin, ClaimForm::kWord, "2"}})),
              HasSubstr("cannot set cpu2/scaling_min_freq: '1' and '2' are requested at once"));
  EXPECT_THAT(files_.writes, IsEmpty());
}

TEST_F(KernelValuesTest, NothingIsWrittenWhenAFileIsMissing) {
  EXPECT_THAT(MessageOf(Hold("a", {Floor("1200"), {"none", ClaimForm::kWord, "1"}})),
              HasSubstr("cannot read none"));
  EXPECT_THAT(files_.writes, IsEmpty());
}

TEST_F(KernelValuesTest, NothingIsWrittenThatTheJournalDoesNotHave) {
  std::filesystem::create_directory(journal_);  // where the file would be
  EXPECT_FALSE(Hold("a", {Floor("1200")}).ok());
  EXPECT_THAT(files_.writes, IsEmpty());
}

TEST_F(KernelValuesTest, AValueThatAnotherProcessSetSinceIsNotChanged) {
  ASSERT_TRUE(IsOk(Hold("a", {Floor("1200")})));
  files_.values[kMin] = "1500";
  ASSERT_TRUE(IsOk(knobs_->Release("a")));
  EXPECT_EQ(Value(kMin), "1500");
}

TEST_F(KernelValuesTest, AValueThatAnotherProcessSetWhileNoneRanIsRestored) {
  ASSERT_TRUE(IsOk(Hold("a", {Floor("1200"), Quiet("2-3")})));
  files_.values[kMin] = "1000";
  files_.values[kIrq] = "4-5";  // also the kernel moves interrupts
  Open();
  ASSERT_TRUE(IsOk(knobs_->KeepOnly({"a"})));
  EXPECT_EQ(Value(kMin), "1200");
  Open();  // the journal has it
  ASSERT_TRUE(IsOk(knobs_->Release("a")));
  EXPECT_EQ(Value(kMin) + " " + Value(kIrq), "1000 0-7");
}

TEST_F(KernelValuesTest, ADeviceThatIsGoneNeedsNoRestoring) {
  ASSERT_TRUE(IsOk(Hold("a", {Floor("1200")})));
  files_.values.erase(kMin);
  EXPECT_TRUE(IsOk(knobs_->Release("a")));
  EXPECT_THAT(knobs_->records(), IsEmpty());
}

TEST_F(KernelValuesTest, WhatCannotBeRestoredIsTriedAgain) {
  ASSERT_TRUE(IsOk(Hold("a", {Floor("1200"), Ceiling("2000")})));
  files_.on_write[kMin] = test::RefuseWrite;
  EXPECT_THAT(MessageOf(knobs_->Release("a")), HasSubstr("Input/output error"));
  EXPECT_EQ(Value(kMax), "3000") << "the others are";
  files_.on_write.clear();
  Open();
  EXPECT_TRUE(IsOk(knobs_->Release("a")));
  EXPECT_EQ(Value(kMin), "800");
}

TEST_F(KernelValuesTest, AnotherBootsJournalWritesNothing) {
  ASSERT_TRUE(IsOk(Hold("a", {Floor("1200")})));
  files_.values[kBootId] = "second";
  files_.writes.clear();
  Open();
  EXPECT_TRUE(IsOk(knobs_->KeepOnly({})));
  EXPECT_TRUE(IsOk(knobs_->Release("a")));
  EXPECT_THAT(files_.writes, IsEmpty());
  ASSERT_TRUE(IsOk(Hold("b", {Floor("1500")})));
  ASSERT_TRUE(IsOk(knobs_->Release("b")));
  EXPECT_EQ(Value(kMin), "1200") << "what the new boot began with";
}

TEST_F(KernelValuesTest, AStartPutsBackWhatLivingOwnersLost) {
  ASSERT_TRUE(IsOk(Hold("a", {Floor("1200")})));
  ASSERT_TRUE(IsOk(Hold("gone", {Ceiling("2000")})));
  files_.values[kMin] = "800";  // a driver of the kernel was loaded again
  Open();
  ASSERT_TRUE(IsOk(knobs_->KeepOnly({"a"})));
  EXPECT_EQ(Value(kMin) + " " + Value(kMax), "1200 3000");
}

TEST_F(KernelValuesTest, ADamagedJournalIsNotOverwritten) {
  knobs_.reset();
  std::ofstream(journal_) << "{\"boot\":";
  const auto knobs = KernelValues::Open(files_, journal_);
  EXPECT_THAT(MessageOf(knobs.status()), HasSubstr("move it aside"));
}

// For a kill at each step of each life: the next process repairs by the journal, and once there is
// no owner, every file has its former bytes.
TEST_F(KernelValuesTest, KilledAtAnyStepEveryFileComesBack) {
  const std::map<std::string, std::string> before = files_.values;
  const auto live = [&] {
    Open();
    ASSERT_TRUE(IsOk(knobs_->KeepOnly({"a"})));
    ASSERT_TRUE(IsOk(Hold("a", {Floor("1200"), Ceiling("2000"), Quiet("2-3")})));
    ASSERT_TRUE(IsOk(Hold("b", {Floor("1500"), Quiet("4")})));
    ASSERT_TRUE(IsOk(knobs_->Release("a")));
    ASSERT_TRUE(IsOk(knobs_->Release("b")));
  };
  int deaths = 0;
  for (bool killed = true; killed; ++deaths) {
    files_.steps_to_live = deaths;
    killed = false;
    try {
      live();
    } catch (const NastyFiles::Killed&) {
      killed = true;
    }
    files_.steps_to_live = -1;
    Open();
    ASSERT_TRUE(IsOk(knobs_->KeepOnly({}))) << "killed at step " << deaths;
    ASSERT_EQ(files_.values, before) << "killed at step " << deaths;
  }
  EXPECT_GT(deaths, 30);
}

TEST_F(KernelValuesTest, KilledWhileItRestoresItRestoresTheRest) {
  const std::map<std::string, std::string> before = files_.values;
  for (int step = 0;; ++step) {
    Open();
    ASSERT_TRUE(IsOk(Hold("a", {Floor("1200"), Ceiling("2000"), Quiet("2-3")})));
    knobs_.reset();
    files_.steps_to_live = step;
    bool killed = false;
    try {
      auto knobs = KernelValues::Open(files_, journal_);
      ASSERT_TRUE(IsOk((*knobs)->KeepOnly({})));
    } catch (const NastyFiles::Killed&) {
      killed = true;
    }
    files_.steps_to_live = -1;
    Open();
    ASSERT_TRUE(IsOk(knobs_->KeepOnly({})));
    ASSERT_EQ(files_.values, before) << "killed at step " << step;
    if (!killed) {
      return;
    }
  }
}

}  // namespace
}  // namespace qrm::kernel::kernel_values_test
