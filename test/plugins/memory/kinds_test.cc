// Kinds of memory by wish: two nodes with CPUs and DRAM, each with one node of HBM; expanded memory
// behind both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"
#include "plugins/memory/memory_plugin.h"
#include "test/plugins/example_machine.h"
#include "test/plugins/plugin_driver.h"

namespace qrm::memory::kinds_test {
namespace {

using test::Drive;
using test::Request;
using testing::HasSubstr;

using Hints = std::vector<TopologyHint>;

constexpr uint64_t kGiB = uint64_t{1} << 30;

Machine TwoOfEach() {
  MachineParts parts;
  parts.cpus = {{.id = 0, .node = 0}, {.id = 1, .core = 1, .node = 1}};
  parts.nodes = {{.id = 0, .memory_bytes = 64 * kGiB},
                 {.id = 1, .memory_bytes = 64 * kGiB},
                 {.id = 2, .memory_bytes = 8 * kGiB, .memory_kind = MemoryKind::kHbm},
                 {.id = 3, .memory_bytes = 8 * kGiB, .memory_kind = MemoryKind::kHbm},
                 {.id = 4, .memory_bytes = 96 * kGiB, .memory_kind = MemoryKind::kCxl}};
  parts.distances = {{10, 20, 13, 23, 24},
                     {20, 10, 23, 13, 24},
                     {13, 23, 10, 25, 30},
                     {23, 13, 25, 10, 30},
                     {24, 24, 30, 30, 10}};
  return Machine(std::move(parts));
}

StatusOr<MemoryPluginConfig> Read(const std::string& text) {
  QRM_ASSIGN_OR_RETURN(const config::Section section, config::Section::Parse(text, "memory.yaml"));
  return ParseMemoryConfig(section);
}

std::unique_ptr<sdk::ResourcePlugin> Make(const std::string& text) {
  const StatusOr<MemoryPluginConfig> config = Read(text);
  EXPECT_TRUE(config.ok()) << config.status();
  return *MakeMemoryPlugin(*config, TwoOfEach());
}

constexpr char kWishes[] = R"(roles:
  fast: {kinds: [hbm, dram], share-numa-with: ["*"]}
  only: {kinds: hbm, share-numa-with: ["*"]}
  wide: {kinds: hbm, numa: even, share-numa-with: ["*"]}
  big: {kinds: cxl, share-numa-with: ["*"]}
  grows: {kinds: [hbm, dram], moves: true, share-numa-with: ["*"]}
  any: {share-numa-with: ["*"]}
)";

ContainerRequest Ask(const std::string& pod, const std::string& role, uint64_t gib) {
  return Request(pod, role, "memory", static_cast<double>(gib * kGiB));
}

TEST(MemoryKindsTest, HintsSpeakOfTheCpusBesideTheMemory) {
  const auto plugin = Make(kWishes);
  const StatusOr<HintList> hints = plugin->Hints(Ask("pod", "only", 4));
  ASSERT_TRUE(hints.ok()) << hints.status();
  EXPECT_EQ(hints->hints(),
            (Hints{{.nodes = {0}, .preferred = true}, {.nodes = {1}, .preferred = true}}));
}

TEST(MemoryKindsTest, BindsToTheMemoryBesideTheCpusThatWereChosen) {
  const auto plugin = Make(kWishes);
  const auto given = plugin->Allocate(Ask("pod", "only", 4), {.nodes = {1}, .preferred = true});
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->value, "3");
  EXPECT_EQ(given->amount_by_node, (std::map<uint64_t, uint64_t>{{3, 4 * kGiB}}));
  EXPECT_EQ(given->hints, (Hints{{.nodes = {1}, .preferred = true}}));
}

TEST(MemoryKindsTest, TheNextKindServesWhereTheFirstIsFull) {
  Drive drive(Make(kWishes));
  EXPECT_EQ(drive.Admit(Ask("one", "fast", 8))->value, "2");
  EXPECT_EQ(drive.Admit(Ask("two", "fast", 8))->value, "3");
  EXPECT_EQ(drive.Admit(Ask("three", "fast", 8))->value, "0");
}

TEST(MemoryKindsTest, TheNextKindServesBesideCpusThatWereChosenForAnotherReason) {
  Drive drive(Make(kWishes));
  ASSERT_EQ(drive.Admit(Ask("one", "only", 8))->value, "2");
  const StatusOr<HintList> hints = drive.plugin().Hints(Ask("two", "fast", 8));
  EXPECT_EQ(hints->hints(),
            (Hints{{.nodes = {1}, .preferred = true}, {.nodes = {0}, .preferred = false}}));
  EXPECT_EQ(drive.plugin().Allocate(Ask("two", "fast", 8), {.nodes = {0}})->value, "0");
}

TEST(MemoryKindsTest, RejectsWhatItsKindDoesNotHave) {
  Drive drive(Make(kWishes));
  const Status refused = drive.plugin().Hints(Ask("pod", "only", 9)).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(
      MessageOf(refused),
      HasSubstr("no allowed NUMA nodes with hbm have 9663676416 bytes of memory for only; "
                "request less or delete a pod (node 2: 8589934592 free, node 3: 8589934592 free)"));
}

TEST(MemoryKindsTest, RejectsAKindThatTheMachineDoesNotHave) {
  const auto plugin = Make("roles: {r: {kinds: [pmem, gpu]}}");
  EXPECT_THAT(
      MessageOf(plugin->Hints(Ask("pod", "r", 1)).status()),
      HasSubstr("no allowed NUMA nodes with pmem or gpu have 1073741824 bytes of memory for "
                "r; request less or delete a pod (the machine has none)"));
}

TEST(MemoryKindsTest, MemoryAsNearToSeveralNodesIsBesideEach) {
  const auto plugin = Make(kWishes);
  EXPECT_EQ(plugin->Hints(Ask("pod", "big", 90))->hints(),
            (Hints{{.nodes = {0}, .preferred = true}, {.nodes = {1}, .preferred = true}}));
  EXPECT_EQ(plugin->Allocate(Ask("pod", "big", 90), {.nodes = {1}})->value, "4");
}

TEST(MemoryKindsTest, SpreadsOverNodesOfItsKind) {
  const auto plugin = Make(kWishes);
  const StatusOr<HintList> hints = plugin->Hints(Ask("pod", "wide", 12));
  EXPECT_EQ(hints->hints(), (Hints{{.nodes = {0, 1}, .preferred = true}}));
  const auto given = plugin->Allocate(Ask("pod", "wide", 12), hints->hints().front());
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->value, "2-3");
  EXPECT_EQ(given->amount_by_node, (std::map<uint64_t, uint64_t>{{2, 6 * kGiB}, {3, 6 * kGiB}}));
}

TEST(MemoryKindsTest, AllocationsAreTakenFromTheirKindOnly) {
  Drive drive(Make(kWishes));
  ASSERT_EQ(drive.Admit(Ask("one", "only", 6))->value, "2");
  EXPECT_EQ(drive.Admit(Ask("two", "any", 64))->value, "0") << "that node's own memory is all free";
  EXPECT_EQ(drive.Admit(Ask("three", "only", 4))->value, "3");
}

TEST(MemoryKindsTest, AResizeInPlaceKeepsTheKindThatItHas) {
  Drive drive(Make(kWishes));
  ASSERT_EQ(drive.Admit(Ask("first", "only", 8))->value, "2");
  ASSERT_EQ(drive.Admit(Ask("second", "only", 8))->value, "3");
  ASSERT_EQ(drive.Admit(Ask("pod", "fast", 2))->value, "0");
  drive.RemovePod("first");
  EXPECT_EQ(drive.Admit(Ask("pod", "fast", 4))->value, "0") << "though its kind has room";
}

TEST(MemoryKindsTest, MovesToTheNextKindWhenItGrowsAndMay) {
  Drive drive(Make(kWishes));
  ASSERT_EQ(drive.Admit(Ask("pod", "grows", 8))->value, "2");
  EXPECT_EQ(drive.Admit(Ask("pod", "grows", 12))->value, "0");
  EXPECT_EQ(drive.Admit(Ask("other", "only", 8))->value, "2") << "it left that";
}

TEST(MemoryKindsTest, KeepsItsMemoryThroughARestart) {
  Drive drive(Make(kWishes));
  ASSERT_EQ(drive.Admit(Ask("pod", "only", 8))->value, "2");
  Drive after(Make(kWishes), drive);
  after.Reconcile();
  EXPECT_EQ(after.Value("pod"), "2");
  EXPECT_EQ(after.Admit(Ask("next", "only", 8))->value, "3");
}

TEST(MemoryKindsTest, ARunningContainerIsNotMoved) {
  const auto plugin = Make(kWishes);
  ContainerRequest request = Ask("pod", "fast", 4);
  request.runs_near = {1};
  const StatusOr<HintList> hints = plugin->Hints(request);
  EXPECT_EQ(hints->hints(), (Hints{{.nodes = {1}, .preferred = true}}));
  EXPECT_EQ(plugin->Allocate(request, hints->hints().front())->value, "1") << "in DRAM";
}

TEST(MemoryKindsTest, RejectsMistakesWithTheirLocation) {
  for (const char* text : {"roles: {a: {kinds: []}}", "roles: {a: {kinds: [fast]}}",
                           "roles: {a: {kinds: [hbm, hbm]}}", "roles: {a: {kinds: {hbm: 1}}}"}) {
    const Status status = Read(text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(MessageOf(status), HasSubstr("cannot read memory.yaml:1")) << text;
  }
}

}  // namespace
}  // namespace qrm::memory::kinds_test
