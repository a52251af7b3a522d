// Captured machines: discovery agrees with lstopo on the same input.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/captured_machine.h"
#include "test/support/child_process.h"
#include "test/support/temp_dir.h"
#include "topology/describe.h"
#include "topology/discovery.h"
#include "topology/machine_text.h"

namespace qrm::machines_test {
namespace {

namespace fs = std::filesystem;

/// The directories of captured machines: a few in the project, more of them beside the source tree.
const fs::path kMachines = QRM_MACHINES_DIR;

/// The output of a program that `env` finds, with the settings of its environment; empty when it
/// fails.
std::string OutputOf(std::vector<std::string> words) {
  const test::TempDir dir = test::TempDir::InMemory();
  words.insert(words.begin(), "/usr/bin/env");
  test::ChildProcess program(words, dir / "output");
  return program.Wait() == 0 ? program.Output() : "";
}

/// Counts by type of `lstopo -s`, whose lines are like " depth 3:  7 L2Cache (type #5)".
std::map<std::string, int> LstopoCounts(const std::vector<std::string>& words) {
  std::map<std::string, int> counts;
  std::istringstream lines(OutputOf(words));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    std::istringstream rest(colon == std::string::npos ? "" : line.substr(colon + 1));
    int count = 0;
    std::string type;
    if (rest >> count >> type) {
      counts[type] = count;
    }
  }
  return counts;
}

std::map<std::string, int> CountsOf(const Machine& machine) {
  std::map<std::string, int> counts = {{"Package", machine.package_count()},
                                       {"NUMANode", static_cast<int>(machine.nodes().size())},
                                       {"Core", machine.core_count()},
                                       {"PU", machine.cpu_set().Count()},
                                       {"L3Cache", machine.l3_count()}};
  return counts;
}

std::string ReadFile(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

class MachinesTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (OutputOf({"lstopo-no-graphics", "--version"}).empty()) {
      GTEST_SKIP() << "lstopo is not installed; run scripts/deps.sh";
    }
  }

  /// The machine, and how to start lstopo for the same input.
  void Open(const std::string& name) {
    const fs::path file = kMachines / name;
    const StatusOr<MachineSource> source = test::OpenCaptured(file, scratch_.path());
    ASSERT_TRUE(source.ok()) << source.status();
    source_ = *source;
    if (source_.kind == MachineSource::Kind::kFsRoot) {
      lstopo_ = {"HWLOC_FSROOT=" + source_.argument, "HWLOC_COMPONENTS=linux,stop",
                 "HWLOC_THISSYSTEM=0", "lstopo-no-graphics", "-s"};
      return;
    }
    // hwloc 2's lstopo counts alike in format 3, but rejects its number.
    std::string xml = ReadFile(file);
    if (const std::size_t format = xml.find("<topology version=\"3.");
        format != std::string::npos) {
      xml.replace(format, 20, "<topology version=\"2");
    }
    std::ofstream(scratch_ / "machine.xml") << xml;
    lstopo_ = {"lstopo-no-graphics", "-s", "-i", scratch_ / "machine.xml"};
  }

  const test::TempDir scratch_ = test::TempDir::InMemory();  // thousands of small files
  MachineSource source_;
  std::vector<std::string> lstopo_;
};

TEST_P(MachinesTest, CountWhatLstopoCountsAndShowTheWholeModel) {
  ASSERT_NO_FATAL_FAILURE(Open(GetParam()));
  const StatusOr<Machine> machine = Discover(source_);
  ASSERT_TRUE(machine.ok()) << MessageOf(machine.status());
  std::map<std::string, int> wanted = LstopoCounts(lstopo_);
  ASSERT_GT(wanted["PU"], 0) << fmt::format("{}", fmt::join(lstopo_, " "));
  for (const auto& [type, count] : CountsOf(*machine)) {
    EXPECT_EQ(count, wanted[type]) << type;
  }

  const nlohmann::ordered_json model = MachineToJson(*machine);
  EXPECT_EQ(model.at("cpus").size(), machine->cpus().size());
  EXPECT_EQ(model.at("nodes").size(), machine->nodes().size());
  EXPECT_EQ(model.at("counts").at("cores"), machine->core_count());
  const std::string map = DescribeMachine(*machine);
  for (const NumaNode& node : machine->nodes()) {
    EXPECT_NE(map.find(fmt::format("  node {}: ", node.id)), std::string::npos) << map;
  }
}

TEST_P(MachinesTest, AreTheSameAfterTheirTextWasReadBack) {
  ASSERT_NO_FATAL_FAILURE(Open(GetParam()));
  const StatusOr<Machine> machine = Discover(source_);
  ASSERT_TRUE(machine.ok()) << MessageOf(machine.status());
  const std::string text = MachineText(*machine);
  const StatusOr<Machine> read = ParseMachineText(text);
  ASSERT_TRUE(read.ok()) << MessageOf(read.status());
  EXPECT_EQ(MachineText(*read), text);

  const nlohmann::ordered_json there = MachineToJson(*machine);
  const nlohmann::ordered_json here = MachineToJson(*read);
  for (const char* const part : {"cpus", "nodes", "distances"}) {
    EXPECT_EQ(here.at(part), there.at(part)) << text;
  }
  EXPECT_EQ(read->memory_bytes(), machine->memory_bytes());
  EXPECT_EQ(read->package_count(), machine->package_count());
}

TEST(CapturedMachinesTest, AreThere) {
  if (QRM_MACHINES_OPTIONAL && test::CapturedMachines(kMachines).empty()) {
    GTEST_SKIP() << "no captured machines in " << kMachines << "; nothing was compared with lstopo";
  }
  EXPECT_FALSE(test::CapturedMachines(kMachines).empty()) << kMachines;
}

std::string CaseName(const testing::TestParamInfo<std::string>& info) {
  std::string name;
  for (const char c : info.param) {
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MachinesTest);
INSTANTIATE_TEST_SUITE_P(Captured, MachinesTest,
                         testing::ValuesIn(test::CapturedMachines(kMachines)), CaseName);

}  // namespace
}  // namespace qrm::machines_test
