#include "topology/machine_text.h"

#include <cstddef>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/discovery.h"

namespace qrm::machine_text_test {
namespace {

using testing::HasSubstr;

Machine Synthetic(const std::string& description) {
  auto machine = Discover({.kind = MachineSource::Kind::kSynthetic, .argument = description});
  EXPECT_TRUE(machine.ok()) << machine.status();
  return *std::move(machine);
}

TEST(MachineTextTest, SaysWhatRepeatsOnce) {
  EXPECT_EQ(MachineText(Synthetic("package:2 [numa(memory=8GiB)] core:4 pu:1")),
            "cpus=0-7 cores=0-7 l3s=0*4,4*4 packages=0*4,1*4 cpu-nodes=0*4,1*4 without-l3=0-7 "
            "nodes=0,1 node-packages=0,1 memory=8589934592*2");
}

TEST(MachineTextTest, ReportsKindsOfMemoryAndWhatTheyAreNearTo) {
  MachineParts parts;
  parts.cpus = {{.id = 0, .node = 0}, {.id = 1, .core = 1, .node = 1}};
  parts.nodes = {{.id = 0}, {.id = 1}, {.id = 2, .memory_kind = MemoryKind::kCxl, .homes = {0, 1}}};
  const auto read = ParseMachineText(MachineText(Machine(std::move(parts))));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->FindNode(1)->memory_kind, MemoryKind::kDram);
  EXPECT_EQ(read->FindNode(2)->memory_kind, MemoryKind::kCxl);
  EXPECT_EQ(read->FindNode(2)->homes, (NumaMask{0, 1}));
}

TEST(MachineTextTest, RejectsWhatMemoryCannotBe) {
  const std::string machine =
      "cpus=0 cores=0 l3s=0 packages=0 cpu-nodes=0 nodes=0,1 "
      "node-packages=0,0 memory=1,1";
  ASSERT_TRUE(ParseMachineText(machine).ok());
  for (const char* word : {" memory-kinds=0", " memory-kinds=0,6", " homes-1=2", " homes-1=x"}) {
    EXPECT_EQ(ParseMachineText(machine + word).status().code(), StatusCode::kInvalidArgument)
        << word;
  }
}

TEST(MachineTextTest, AMachineOf512CpusTakesLessThanTwoKilobytes) {
  EXPECT_LT(MachineText(Synthetic("package:2 [numa(memory=512GiB)] l3:16 core:8 pu:2")).size(),
            2000);
}

TEST(MachineTextTest, KeepsNumberingKindsHugepagesAndDistances) {
  MachineParts parts;
  for (const int id : {0, 1, 2, 3, 8, 9}) {
    parts.cpus.push_back({.id = id,
                          .core = id & ~2,
                          .l3 = id & 1,
                          .node = id % 2 == 0 ? 0 : 5,
                          .package = id % 2,
                          .core_kind = id < 8 ? 1 : 0,
                          .has_l3 = id < 8});
  }
  parts.nodes = {{.id = 0, .package = 0, .memory_bytes = 1000, .hugepages = {{2097152, 512}}},
                 {.id = 5, .package = 1, .memory_bytes = 0, .hugepages = {{2097152, 0}}},
                 {.id = 6, .package = 1, .memory_bytes = 77, .hugepages = {{2097152, 3}}}};
  parts.distances = {{10, 21, 17}, {21, 10, 28}, {17, 28, 10}};
  parts.memory_bytes = 1100;
  parts.isolated = {2, 8};
  const Machine machine(parts);
  const auto read = ParseMachineText(MachineText(machine));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->cpus().size(), machine.cpus().size());
  for (std::size_t i = 0; i < machine.cpus().size(); ++i) {
    const Cpu& was = machine.cpus()[i];
    const Cpu& is = read->cpus()[i];
    EXPECT_EQ(std::tie(is.id, is.core, is.l3, is.node, is.package, is.core_kind, is.has_l3),
              std::tie(was.id, was.core, was.l3, was.node, was.package, was.core_kind, was.has_l3));
  }
  ASSERT_EQ(read->nodes().size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const NumaNode& was = machine.nodes()[i];
    const NumaNode& is = read->nodes()[i];
    EXPECT_EQ(std::tie(is.id, is.package, is.memory_bytes, is.hugepages),
              std::tie(was.id, was.package, was.memory_bytes, was.hugepages));
  }
  EXPECT_EQ(read->parts().distances, parts.distances);
  EXPECT_EQ(read->memory_bytes(), 1100U);
  EXPECT_EQ(read->parts().isolated, parts.isolated);
}

struct BadText {
  std::string name;
  std::string text;
  std::string shown;
};

class BadMachineTextTest : public testing::TestWithParam<BadText> {};

TEST_P(BadMachineTextTest, IsRejectedByName) {
  const auto read = ParseMachineText(GetParam().text);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(MessageOf(read.status()), HasSubstr("'" + GetParam().shown + "'"));
}

const std::string kCpus = "cpus=0-1 cores=0,1 l3s=0*2 packages=0*2 ";
const std::string kNodes = " nodes=0 node-packages=0 memory=1000";
const BadText kBadTexts[] = {
    {"NoWord", "package:2", "package:2"},
    {"TwiceTheSame", "cpus=0 cpus=1", "cpus=1"},
    {"NoCpuList", "cpus=a", "cpus=a"},
    {"TooFewNumbers", "cpus=0-1 cores=0", "cores=0"},
    {"TooManyNumbers", "cpus=0-1 cores=0*3", "cores=0*3"},
    {"EndlessRun", "cpus=0-1 cores=0*18446744073709551615", "cores=0*18446744073709551615"},
    {"NegativeId", "cpus=0-1 cores=-1,2", "cores=-1,2"},
    {"HugeId", "cpus=0-1 cores=0,99999999", "cores=0,99999999"},
    {"BackwardRun", "cpus=0-1 cores=1-0", "cores=1-0"},
    {"CpuWithoutItsNode", kCpus + "cpu-nodes=0,7" + kNodes, "cpu-nodes of CPU 1"},
    {"MoreNodesThanTheKernelHas", "nodes=0-2000", "nodes"},
    {"DistancesOfOtherNodes", kCpus + "cpu-nodes=0*2" + kNodes + " distances=10,20",
     "distances=10,20"},
    {"HugepagesOfNoSize", kCpus + "cpu-nodes=0*2" + kNodes + " hugepages-0=1", "hugepages-0"},
    {"MoreHugepagesThanFit",
     kCpus + "cpu-nodes=0*2" + kNodes + " hugepages-1073741824=18446744073709551615",
     "hugepages-1073741824=18446744073709551615"},
};
INSTANTIATE_TEST_SUITE_P(Words, BadMachineTextTest, testing::ValuesIn(kBadTexts),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace qrm::machine_text_test
