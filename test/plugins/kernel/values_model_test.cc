// Random owners, claims, kills and other writers: what the last owner leaves behind.
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/base/log.h"
#include "plugins/kernel/kernel_values.h"
#include "test/plugins/kernel/nasty_files.h"
#include "test/support/is_ok.h"
#include "test/support/rounds.h"
#include "test/support/temp_dir.h"

namespace qrm::kernel::values_model_test {
namespace {

using test::IsOk;
using test::NastyFiles;

constexpr int kSteps = test::Rounds(100'000);
const std::vector<std::string> kOwners = {"a", "b", "c", "d"};

/// One file of the machine, with values that only owners, or only other processes, write.
struct Knob {
  std::string path;
  ClaimForm form;
  std::string first;
};
const std::vector<Knob> kKnobs = {{"cpu0/scaling_min_freq", ClaimForm::kFloor, "800"},
                                  {"cpu0/scaling_max_freq", ClaimForm::kCeiling, "3000"},
                                  {"cpu0/scaling_governor", ClaimForm::kWord, "powersave"},
                                  {"cpu1/flaky_governor", ClaimForm::kWord, "powersave"},
                                  {"cpu0/latency", ClaimForm::kLatency, "0"},
                                  {"proc/irq/5/smp_affinity_list", ClaimForm::kCpuList, "0-7"},
                                  {"proc/irq/default_smp_affinity", ClaimForm::kCpuMask, "ff"},
                                  {"irqbalance77.sock", ClaimForm::kCpuUnion, ""}};

class ValuesModelTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const Knob& knob : kKnobs) {
      files_.values[knob.path] = knob.first;
      files_.on_write[knob.path] = [this, knob](const std::string& value) {
        return Accept(knob, value);
      };
    }
    log::SetSink([this](log::Level, const std::string& line) { said_ += line; });
    Open();
  }
  void TearDown() override { log::SetSink(nullptr); }

  void Open() {
    values_.reset();
    auto opened = KernelValues::Open(files_, journal_);
    ASSERT_TRUE(IsOk(opened.status()));
    values_ = *std::move(opened);
    for (const JournalRecord& record : values_->records()) {
      const auto other = others_.find(record.path);
      if (other != others_.end() && record.original == other->second) {
        first_[record.path] = other->second;  // restored from now on
        others_.erase(other);
      }
    }
    Look();
  }

  /// The kernel rounds one limit, and rejects some writes of another file. Claims never make the
  /// first value, so a write of it restores it.
  StatusOr<std::string> Accept(const Knob& knob, const std::string& value) {
    const bool is_flaky = knob.path == "cpu1/flaky_governor";
    if (is_flaky && Dice(4) == 0) {
      return test::RefuseWrite(value);
    }
    if (others_.erase(knob.path) > 0 && value == first_[knob.path] && !is_flaky &&
        !unclear_.contains(knob.path)) {
      overwritten_ += knob.path + " ";
    }
    return knob.form == ClaimForm::kCeiling ? std::to_string(std::stoi(value) / 100 * 100) : value;
  }

  int Dice(int sides) { return std::uniform_int_distribution<int>(0, sides - 1)(random_); }
  const std::string& AnyOwner() { return kOwners[static_cast<std::size_t>(Dice(4))]; }
  const Knob& AnyKnob() {
    return kKnobs[static_cast<std::size_t>(Dice(static_cast<int>(kKnobs.size())))];
  }

  std::string Ours(ClaimForm form) {
    switch (form) {
      case ClaimForm::kWord:
      case ClaimForm::kPartition:
        return Dice(2) == 0 ? "performance" : "schedutil";
      case ClaimForm::kFloor:
      case ClaimForm::kCeiling:
        return std::to_string(1000 + 50 * Dice(20));
      case ClaimForm::kLatency:
        return Dice(5) == 0 ? "n/a" : std::to_string(10 + Dice(5));
      case ClaimForm::kCpuList:
      case ClaimForm::kCpuMask:
      case ClaimForm::kCpuUnion:
        return std::to_string(Dice(8));
      case ClaimForm::kKept:
        break;
    }
    return "";
  }

  /// A value that no owner's claims make.
  std::string Foreign(ClaimForm form) {
    const int number = ++foreign_;
    switch (form) {
      case ClaimForm::kWord:
      case ClaimForm::kPartition:
        return fmt::format("other{}", number);
      case ClaimForm::kCpuMask:
        return fmt::format("{:x}", 1 << (8 + number % 8));
      case ClaimForm::kCpuList:
      case ClaimForm::kCpuUnion:
        return std::to_string(8 + number % 100);
      default:
        return std::to_string(100 * (1000 + number));
    }
  }

  /// Another process writes, between ours or while ours is dead.
  void WriteAsAnother() {
    const Knob& knob = AnyKnob();
    others_[knob.path] = files_.values[knob.path] = Foreign(knob.form);
  }

  void Act() {
    std::vector<Claim> claims;
    for (int i = Dice(3); i >= 0; --i) {
      const Knob& knob = AnyKnob();
      claims.push_back({.path = knob.path,
                        .form = knob.form,
                        .value = Ours(knob.form),
                        .is_optional = Dice(3) == 0});
    }
    switch (Dice(8)) {
      case 0:
      case 1:
        values_->Release(AnyOwner()).IgnoreError();
        break;
      case 2:
        values_->ReleaseAllBut(AnyOwner(), claims).IgnoreError();
        break;
      case 3:
        values_->ReleaseFile(claims.front().path).IgnoreError();
        break;
      case 4:
        Open();
        values_->KeepOnly({AnyOwner(), AnyOwner()}).IgnoreError();
        break;
      default:
        values_->Hold(AnyOwner(), claims).IgnoreError();
    }
  }

  /// What the journal has now: a file without a record has its first value again.
  void Look() {
    std::set<std::string> recorded;
    unclear_.clear();
    for (const JournalRecord& record : values_->records()) {
      recorded.insert(record.path);
      if (!record.is_settled) {
        unclear_.insert(record.path);
      }
    }
    held_ = std::move(recorded);
  }

  /// Each file whose last owner has gone.
  void CheckReleased(const std::set<std::string>& before, const std::set<std::string>& unclear) {
    for (const Knob& knob : kKnobs) {
      if (held_.contains(knob.path)) {
        continue;
      }
      released_ += before.contains(knob.path) ? 1 : 0;
      const std::string& now = files_.values[knob.path];
      const auto other = others_.find(knob.path);
      // Not even the journal knows whose value it is if it was written while a kill left it
      // unclear.
      if (other == others_.end() || (unclear.contains(knob.path) && now == first_[knob.path])) {
        ASSERT_EQ(now, first_[knob.path]) << knob.path;
      } else if (before.contains(knob.path)) {
        ++kept_;
        ASSERT_EQ(now, other->second) << knob.path;
        ASSERT_TRUE(now == first_[knob.path] || said_.find("file=" + knob.path) != said_.npos)
            << knob.path << " was written by another process, which is not said: " << said_;
      }
    }
  }

  /// The values that files without an owner have.
  void NoteFirst() {
    for (const Knob& knob : kKnobs) {
      if (!held_.contains(knob.path)) {
        first_[knob.path] = files_.values[knob.path];
        others_.erase(knob.path);
      }
    }
  }

  void Step() {
    NoteFirst();
    if (Dice(6) == 0) {
      WriteAsAnother();
      NoteFirst();
    }
    const std::set<std::string> before = held_;
    std::set<std::string> unclear = unclear_;
    said_.clear();
    files_.steps_to_live = Dice(3) == 0 ? Dice(40) : -1;
    try {
      Act();
      files_.steps_to_live = -1;
    } catch (const NastyFiles::Killed&) {
      files_.steps_to_live = -1;
      ++kills_;
      if (Dice(2) == 0) {
        WriteAsAnother();
      }
      Open();
      unclear.insert(unclear_.begin(), unclear_.end());
    }
    Look();
    ASSERT_EQ(overwritten_, "") << "the value of another process was overwritten";
    CheckReleased(before, unclear);
  }

  std::mt19937 random_{53};  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same run each time
  const test::TempDir dir_ = test::TempDir::InMemory();
  const std::string journal_ = dir_ / "knobs.json";
  NastyFiles files_;
  std::string said_;
  std::string overwritten_;
  std::unique_ptr<KernelValues> values_;
  std::set<std::string> held_;                 // files with a record
  std::set<std::string> unclear_;              // files that a killed process may have written
  std::map<std::string, std::string> others_;  // of files that another process wrote last
  std::map<std::string, std::string> first_;
  int foreign_ = 0;
  int kills_ = 0;
  int released_ = 0;
  int kept_ = 0;
};

TEST_F(ValuesModelTest, TheLastOwnerLeavesTheFirstValueOrThatOfAnotherProcess) {
  for (int step = 0; step < kSteps; ++step) {
    Step();
    ASSERT_FALSE(HasFatalFailure()) << "step " << step;
  }
  for (int tries = 0; tries < 100 && !values_->records().empty(); ++tries) {
    values_->KeepOnly({}).IgnoreError();
  }
  EXPECT_TRUE(values_->records().empty());
  EXPECT_GT(kills_, kSteps / 50);
  EXPECT_GT(released_, kSteps / 10);
  EXPECT_GT(kept_, kSteps / 100);
}

}  // namespace
}  // namespace qrm::kernel::values_model_test
