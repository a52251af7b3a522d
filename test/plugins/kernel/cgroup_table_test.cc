#include "plugins/kernel/cgroup_table.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/base/number.h"
#include "test/support/is_ok.h"

namespace qrm::kernel::cgroup_table_test {
namespace {

using test::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

const std::vector<CgroupFile> kFiles = {{"write_bps", LineForm::kKeyed, "0", "0"},
                                        {"weight", LineForm::kWhole, "100", "100"}};

// A kernel that keeps a line of each write, and lets a test look after each write.
class FakeCgroup final : public KernelFiles {
 public:
  [[nodiscard]] StatusOr<std::string> Read(const std::string& file) const override {
    const auto found = table.find(file);
    if (!exists || found == table.end()) {
      return Errorf(StatusCode::kNotFound, "no {}", file);
    }
    std::string text;
    for (const auto& [key, value] : found->second) {
      text += fmt::format("{}{}{}\n", key, key.empty() ? "" : " ", value);
    }
    return text;
  }
  Status Write(const std::string& file, const std::string& line) override {
    writes.push_back(file + ": " + line);
    if (!exists || !table.contains(file)) {
      return Errorf(StatusCode::kNotFound, "no {}", file);
    }
    if (const auto error = errors.find(line); error != errors.end()) {
      return error->second;
    }
    const std::size_t space = line.find(' ');
    const std::string key = space == std::string::npos ? "" : line.substr(0, space);
    const std::string value = space == std::string::npos ? line : line.substr(space + 1);
    table[file][key] = value;
    if (value == "0") {
      table[file].erase(key);
    }
    after_write(*this);
    return OkStatus();
  }
  [[nodiscard]] std::vector<std::string> List(const std::string& /*directory*/) const override {
    return exists ? std::vector<std::string>{"cgroup.procs"} : std::vector<std::string>();
  }
  [[nodiscard]] bool MayWrite(const std::string& file) const override {
    return table.contains(file);
  }

  /// The limits of the device for the writer; unlimited without a line.
  uint64_t LimitOf(const std::string& key) const {
    const auto& lines = table.at("write_bps");
    const auto line = lines.find(key);
    return line == lines.end() ? std::numeric_limits<uint64_t>::max()
                               : ParseNumber<uint64_t>(line->second).value_or(0);
  }

  bool exists = true;
  CgroupTable table = {{"write_bps", {}}, {"weight", {{"", "100"}}}};
  std::map<std::string, Status> errors;
  std::vector<std::string> writes;
  std::function<void(const FakeCgroup&)> after_write = [](const FakeCgroup&) {};
};

TEST(CgroupTableTest, WritesOneLineAtATimeAndReadsItBack) {
  FakeCgroup cgroup;
  const CgroupTable wanted = {{"write_bps", {{"7:0", "10"}, {"7:1", "20"}}},
                              {"weight", {{kNoKey, "300"}}}};
  ASSERT_TRUE(IsOk(WriteTable(cgroup, kFiles, wanted)));
  EXPECT_THAT(cgroup.writes, ElementsAre("write_bps: 7:0 10", "write_bps: 7:1 20", "weight: 300"));
  EXPECT_EQ(ReadTable(cgroup, kFiles).value_or(CgroupTable()), wanted);
}

TEST(CgroupTableTest, ACgroupThatHasItAllSeesNoWrite) {
  FakeCgroup cgroup;
  cgroup.table["write_bps"]["7:0"] = "10";
  ASSERT_TRUE(IsOk(WriteTable(cgroup, kFiles, {{"write_bps", {{"7:0", "10"}}}})));
  EXPECT_THAT(cgroup.writes, IsEmpty());
}

TEST(CgroupTableTest, IsNeverLooserThanTheLooserOfOldAndNew) {
  struct Limits {
    std::map<std::string, std::string> from, to;
  };
  const std::vector<Limits> changes = {
      {{{"7:0", "10"}}, {{"7:0", "40"}}},
      {{{"7:0", "40"}}, {{"7:0", "10"}}},
      {{{"7:0", "10"}, {"7:1", "10"}}, {{"7:1", "20"}, {"7:2", "5"}}},
      {{}, {{"7:0", "10"}}},
  };
  for (const auto& [from, to] : changes) {
    FakeCgroup before;
    before.table["write_bps"] = from;
    FakeCgroup after;
    after.table["write_bps"] = to;
    FakeCgroup cgroup = before;
    cgroup.after_write = [&](const FakeCgroup& now) {
      for (const char* device : {"7:0", "7:1", "7:2"}) {
        EXPECT_LE(now.LimitOf(device), std::max(before.LimitOf(device), after.LimitOf(device)));
      }
    };
    ASSERT_TRUE(IsOk(WriteTable(cgroup, kFiles, {{"write_bps", to}})));
    EXPECT_EQ(cgroup.table["write_bps"], to);
  }
}

TEST(CgroupTableTest, SetsEveryNewLimitBeforeItLiftsAnOldOne) {
  FakeCgroup cgroup;
  cgroup.table["write_bps"] = {{"7:0", "10"}};
  ASSERT_TRUE(IsOk(WriteTable(cgroup, kFiles, {{"write_bps", {{"7:1", "10"}}}})));
  EXPECT_THAT(cgroup.writes, ElementsAre("write_bps: 7:1 10", "write_bps: 7:0 0"));
}

TEST(CgroupTableTest, AFailureRestoresTheFormerValues) {
  FakeCgroup cgroup;
  cgroup.table["write_bps"] = {{"7:0", "10"}};
  cgroup.errors["7:1 20"] = Errorf(StatusCode::kInvalidArgument, "refused");
  const Status failed = WriteTable(cgroup, kFiles, {{"write_bps", {{"7:0", "5"}, {"7:1", "20"}}}});
  EXPECT_EQ(failed.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(cgroup.table["write_bps"], ElementsAre(Pair("7:0", "10")));
}

TEST(CgroupTableTest, ARemovedDiskFailsNoContainer) {
  FakeCgroup cgroup;
  cgroup.errors["7:1 20"] = Errorf(StatusCode::kNotFound, "no such device");
  ASSERT_TRUE(IsOk(WriteTable(cgroup, kFiles, {{"write_bps", {{"7:0", "5"}, {"7:1", "20"}}}})));
  EXPECT_THAT(cgroup.table["write_bps"], ElementsAre(Pair("7:0", "5")));
}

TEST(CgroupTableTest, AMissingFileIsTheNodesFaultAndAMissingCgroupIsAnEnd) {
  FakeCgroup cgroup;
  cgroup.table.erase("weight");
  const Status lacks = WriteTable(cgroup, kFiles, {{"weight", {{kNoKey, "300"}}}});
  EXPECT_EQ(lacks.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(lacks), HasSubstr("no weight; enable its controller"));
  cgroup.exists = false;
  EXPECT_EQ(WriteTable(cgroup, kFiles, {}).code(), StatusCode::kNotFound);
}

TEST(CgroupTableTest, ValuesThatSayNothingAreNotRead) {
  FakeCgroup cgroup;
  cgroup.table["write_bps"] = {{"7:0", "10"}};
  EXPECT_THAT(ReadTable(cgroup, kFiles).value_or(CgroupTable()),
              ElementsAre(Pair("write_bps", ElementsAre(Pair("7:0", "10")))));
}

}  // namespace
}  // namespace qrm::kernel::cgroup_table_test
