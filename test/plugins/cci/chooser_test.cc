// Which CPUs a specification gets: a table of rooms and answers on a machine with SMT and two
// nodes.
#include "plugins/cci/chooser.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "test/support/is_ok.h"
#include "topology/discovery.h"

namespace qrm::cci::chooser_test {
namespace {

using testing::HasSubstr;

/// CPUs 0-7 on node 0 and 8-15 on node 1; 0 and 1 are threads of one core, and so on.
const CpuLayout& TwoNodes() {
  static const Machine machine =
      *Discover(*MachineSource::Parse("synthetic:package:2 [numa] core:4 pu:2"));
  static const CpuLayout layout(machine);
  return layout;
}

/// CPUs 0-3 are two fast cores of two threads, 4-7 are four slow cores of one thread.
const CpuLayout& Hybrid() {
  static const Machine machine([] {
    MachineParts parts;
    parts.nodes = {{.id = 0}};
    for (int id = 0; id < 8; ++id) {
      parts.cpus.push_back(
          {.id = id, .core = id < 4 ? id / 2 * 2 : id, .core_kind = id < 4 ? 1 : 0});
    }
    return parts;
  }());
  static const CpuLayout layout(machine);
  return layout;
}

struct Case {
  std::string name;
  std::string spec;
  std::string available;
  int cpus = 0;
  std::string want;  ///< "2-3 idle 5; 6 | unmet", or a piece of the error
  std::string near;
};

std::string TextOf(const sdk::ComputeGrant& grant) {
  std::string text;
  for (const sdk::ComputePart& part : grant.parts) {
    text += fmt::format("{}{}{}{}", text.empty() ? "" : "; ", ToString(part.cpus),
                        part.idle.Empty() ? "" : " idle " + ToString(part.idle),
                        part.shared ? " shared" : "");
  }
  for (const sdk::UnmetWish& wish : grant.unmet) {
    text += " | " + wish.token;
  }
  return text + (grant.mems.Empty() ? "" : " mems " + ToString(grant.mems));
}

StatusOr<sdk::ComputeGrant> ChooseOn(const CpuLayout& layout, const Case& asked) {
  return Choose(ReadPodSpec(asked.spec, {}, asked.cpus)->lines,
                {.available = *CpuSet::Parse(asked.available),
                 .near = *NumaMask::Parse(asked.near),
                 .cpus = asked.cpus,
                 .shared = *CpuSet::Parse(asked.available)},
                layout, kernel::TunableMachine());
}

class ChooserTest : public testing::TestWithParam<Case> {};
class HybridChooserTest : public testing::TestWithParam<Case> {};
class RejectionTest : public testing::TestWithParam<Case> {};

TEST_P(ChooserTest, GivesWhatIsAsked) {
  const auto grant = ChooseOn(TwoNodes(), GetParam());
  ASSERT_TRUE(test::IsOk(grant.status()));
  EXPECT_EQ(TextOf(*grant), GetParam().want);
}

TEST_P(HybridChooserTest, KnowsKindsOfCores) {
  const auto grant = ChooseOn(Hybrid(), GetParam());
  ASSERT_TRUE(test::IsOk(grant.status()));
  EXPECT_EQ(TextOf(*grant), GetParam().want);
}

TEST_P(RejectionTest, SaysWhyAndTheCure) {
  const auto grant = ChooseOn(TwoNodes(), GetParam());
  ASSERT_FALSE(grant.ok()) << TextOf(*grant);
  EXPECT_THAT(MessageOf(grant.status()), HasSubstr(GetParam().want));
}

const Case kCases[] = {
    {"Nothing", "", "1-15", 2, "2-3"},
    {"Named", "{cores: ['cpu:5', '9-10']}", "1-15", 3, "5; 9-10"},
    {"NearTheOtherResources", "{cores: '*2'}", "1-15", 2, "8-9", "1"},
    {"NamedBeforeAny", "{cores: ['*2', '2-3']}", "2-5", 4, "4-5; 2-3"},
    {"WholeCores", "{cores: '*2', attributes: smt-sibling-required}", "1-2,4-5", 2, "4-5"},
    {"WholeCoresBeforeOthers",
     "{cores: ['*1', '*2'], attributes: [exclusive, smt-sibling-required]}", "1,4-5", 3, "1; 4-5"},
    {"PreferredIsWhatFits", "{cores: '*3', attributes: smt-sibling-preferred}", "1-2,4-5", 3,
     "1,4-5"},
    {"DeniedSiblingsAreIdle", "{cores: '*2', attributes: smt-sibling-denied}", "1-7", 4,
     "2,4 idle 3,5"},
    {"NamedAndDenied", "{cores: 'cpu:5', attributes: smt-sibling-denied}", "1-7", 2, "5 idle 4"},
    {"Nodes", "{cores: '*2', attributes: numa=1}", "1-15", 2, "8-9"},
    {"OneNodeForTheLine", "{cores: '*4', attributes: numa-single}", "5-7,8-11", 4, "8-11"},
    {"OneNodeThatIsNear", "{cores: '*2', attributes: numa-single}", "5-7,8-15", 2, "8-9", "1"},
    {"NodesArePackedDensely", "{cores: '*2', attributes: numa-single}", "4-7,8-15", 2, "4-5"},
    {"MemoryOfTheSameNode", "{cores: '*2', attributes: 'numa=1, mem=bind'}", "1-15", 2,
     "8-9 mems 1"},
    {"WishKept", "{cores: '*2', attributes: 'exclusive, smt-sibling-required?'}", "1-2,4-5", 2,
     "4-5"},
    {"WishUnmet", "{cores: '*2', attributes: 'exclusive, smt-sibling-required?'}", "1-2,5", 2,
     "1-2 | smt-sibling-required?"},
    {"FirstWishWins", "{cores: '*2', attributes: 'numa=0?, numa-single?, no-quota?'}", "5,8-9", 2,
     "8-9 | numa=0? | no-quota?"},
    {"SomebodysOwnWish", "{cores: '*1', attributes: 'vendor/x=1?'}", "1", 1, "1 | vendor/x=1?"},
    {"WholePoolBesideItsOwn", "{cores: ['*2', '*1'], attributes: [exclusive, shared]}", "1-7", 3,
     "2-3;  shared"},
    {"NamedCpusOfThePool", "{cores: ['*2', '2-3'], attributes: [exclusive, shared]}", "2-7", 4,
     "4-5; 2-3 shared"},
    {"WholePoolAlone", "{cores: '*2', attributes: shared}", "1-7", 2, " shared"},
    {"NamedCpusBesideThePool", "{cores: ['2', 'cpu:3'], attributes: shared}", "1-7", 3,
     " shared; 3 shared"},
    {"SharedWish", "{cores: 'cpu:1', attributes: 'shared?'}", "1", 1, "1 | shared?"},
};
INSTANTIATE_TEST_SUITE_P(Rooms, ChooserTest, testing::ValuesIn(kCases),
                         [](const auto& param_info) { return param_info.param.name; });

const Case kHybridCases[] = {
    {"Fast", "{cores: '*2', attributes: core-type=performance}", "0-7", 2, "0-1"},
    {"Slow", "{cores: '*2', attributes: core-type=efficiency}", "0-7", 2, "4-5"},
    {"WholeCoresOfBothKinds", "{cores: '*3', attributes: smt-sibling-required}", "0-4", 3, "0-1,4"},
    {"LargeCoresWhereSmallOnesDoNotAddUp", "{cores: '*2', attributes: smt-sibling-required}", "0-4",
     2, "0-1"},
    {"SlowCoresHaveNoSibling",
     "{cores: '*2', attributes: 'smt-sibling-denied, core-type=efficiency'}", "0-7", 2, "4-5"},
};
INSTANTIATE_TEST_SUITE_P(Rooms, HybridChooserTest, testing::ValuesIn(kHybridCases),
                         [](const auto& param_info) { return param_info.param.name; });

const Case kRefusals[] = {
    {"TooFew", "{cores: '*4'}", "1-3", 4, "cores, line 1: "},
    {"NamedAndTaken", "{cores: 'cpu:5'}", "1-4", 1,
     "cores, line 1: CPUs 5 are not available, only CPUs 1-4 are; name those, or write *1"},
    {"UnknownCpu", "{cores: 'cpu:99'}", "1-4,99", 1, "CPUs 99 are not available"},
    {"MoreThanRequested", "{cores: '*3'}", "1-7", 2,
     "the spec asks for 3 CPUs, but the container requests 2; make them equal"},
    {"LessThanRequested", "{cores: '*1'}", "1-7", 2,
     "the spec takes 1 CPUs, including idle thread siblings, but the container requests 2"},
    {"IdleSiblingsCount", "{cores: '*2', attributes: smt-sibling-denied}", "1-7", 2,
     "the spec takes 4 CPUs"},
    {"HalfACore", "{cores: 'cpu:5', attributes: smt-sibling-required}", "1-7", 1,
     "smt-sibling-required also needs CPUs 4, the other threads of the cores of 5"},
    {"NoWholeCore", "{cores: '*2', attributes: smt-sibling-required}", "1-2", 2,
     "smt-sibling-required permits CPUs none, but 2 CPUs are requested"},
    {"TakenSibling", "{cores: 'cpu:5', attributes: smt-sibling-denied}", "1-3,5", 2,
     "CPUs 5 cannot have smt-sibling-denied"},
    {"BothThreads", "{cores: '4-5', attributes: smt-sibling-denied}", "1-7", 2,
     "threads of the same cores; name one thread of each"},
    {"NamedOnTwoNodes", "{cores: '7-8', attributes: numa-single}", "1-15", 2,
     "CPUs 7-8 are on nodes 0-1; name CPUs of one node"},
    {"NoNodeHasRoom", "{cores: '*4', attributes: numa-single}", "5-7,8-10", 4,
     "no single NUMA node has 4 of the CPUs 5-10"},
    {"NoSuchNode", "{cores: '*1', attributes: numa=7}", "1-15", 1, "numa=7 permits CPUs none"},
    {"AllCoresAlike", "{cores: '*1', attributes: core-type=performance}", "1-15", 1,
     "all cores of this machine are alike"},
    {"NamedCpusOfThePoolAlone", "{cores: 'cpu:3', attributes: shared}", "1-15", 1,
     "all of its CPUs would be shared ones that the pool may lose; write exclusive for at least"},
    {"SharedAndQuiet", "{cores: ['*1', '*1'], attributes: [exclusive, 'shared, no-irq']}", "1-7", 2,
     "cores, line 2: no-irq applies only to exclusive CPUs, but the line is shared"},
    {"SharedOutsideThePool", "{cores: ['*1', 'cpu:9'], attributes: [exclusive, shared]}", "1-7", 2,
     "CPUs 9 are not in the default pool, only CPUs 1-7 are"},
    {"LessThanRequestedWithShared", "{cores: ['*1', '*1'], attributes: [exclusive, shared]}", "1-7",
     3, "the spec takes 2 CPUs"},
    {"NotKept", "{cores: '*1', attributes: no-quota}", "1-15", 1,
     "cores, line 1: no-quota is not supported by this driver; remove it, or write "
     "no-quota?"},
    {"MemoryPolicy", "{cores: '*1', attributes: mem=interleave}", "1-15", 1, "write mem=bind"},
};
INSTANTIATE_TEST_SUITE_P(Rooms, RejectionTest, testing::ValuesIn(kRefusals),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(ChosenPartTest, IsNamedAfterWhatItKeeps) {
  const auto grant =
      ChooseOn(TwoNodes(), {.spec = "{cores: '*2', attributes: 'Exclusive, no-quota?, numa=0?'}",
                            .available = "1-15",
                            .cpus = 2});
  ASSERT_TRUE(test::IsOk(grant.status()));
  EXPECT_EQ(grant->parts[0].name, "exclusive, numa=0");
  EXPECT_THAT(grant->unmet[0].reason, HasSubstr("cores, line 1: no-quota is not supported"));
}

}  // namespace
}  // namespace qrm::cci::chooser_test
