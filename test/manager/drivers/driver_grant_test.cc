#include "manager/drivers/driver_grant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/is_ok.h"
#include "test/support/sample_node.h"

namespace qrm::manager::driver_grant_test {
namespace {

using checkpoint::Change;
using checkpoint::NodeState;
using sdk::ComputeGrant;
using test::IsOk;
using testing::HasSubstr;

// Eight CPUs on two nodes, of which 2-7 are offered.
class DriverGrantTest : public testing::Test {
 protected:
  Status Check(const ComputeGrant& grant, double cpus = 2) const {
    return CheckGrant(
        grant, {.offer = offer_, .cpus = cpus, .machine = machine_, .pool_is_followed = true});
  }

  const Machine machine_ = test::SampleMachine();
  const DriverOffer offer_{.available = CpuSet::Range(2, 7), .shared = CpuSet::Range(2, 7)};
};

TEST_F(DriverGrantTest, AcceptsOfferedCpus) {
  EXPECT_TRUE(IsOk(Check({.parts = {{.cpus = {2, 5}}}})));
}

TEST_F(DriverGrantTest, RejectsOtherCpus) {
  EXPECT_THAT(MessageOf(Check({.parts = {{.cpus = {1, 2}}}})), HasSubstr("1 were not offered"));
  EXPECT_THAT(MessageOf(Check({.parts = {{.cpus = {2}, .idle = {0}}}})),
              HasSubstr("0 were not offered"));
}

TEST_F(DriverGrantTest, RejectsMoreThanIsRequestedIdleOnesIncluded) {
  EXPECT_THAT(MessageOf(Check({.parts = {{.cpus = {2, 3}, .idle = {4}}}})),
              HasSubstr("it gave 3 CPUs (2-4), but the container requests 2"));
}

TEST_F(DriverGrantTest, RejectsTextsThatARuntimeFailsOn) {
  const auto why = [this](const StringMap& envs) {
    return MessageOf(Check({.parts = {{.cpus = {2}}}, .envs = envs}));
  };
  EXPECT_THAT(why({{"A=B", "1"}}), HasSubstr("the environment variable 'A=B'"));
  EXPECT_THAT(why({{"A", std::string(100'000, 'a')}}), HasSubstr("have 100001 bytes"));
}

TEST_F(DriverGrantTest, LeavesTheSharedPoolACpu) {
  EXPECT_EQ(Check({.parts = {{.cpus = CpuSet::Range(2, 7)}}}, 6).code(),
            StatusCode::kResourceExhausted);
}

TEST_F(DriverGrantTest, MemoryNodesAreAmongThoseOfTheMemoryPlugin) {
  const ResourceAllocation memory = test::NodeMemory({{0, 1}});
  EXPECT_TRUE(IsOk(CheckMems({.parts = {}, .mems = {0}}, &memory)));
  EXPECT_TRUE(IsOk(CheckMems({.parts = {}, .mems = {1}}, nullptr)));
  EXPECT_THAT(MessageOf(CheckMems({.parts = {}, .mems = {1}}, &memory)),
              HasSubstr("on NUMA nodes 1, but the memory plugin allocated it on 0"));
}

TEST_F(DriverGrantTest, IdleCpusAreWithheldAndNotTheContainers) {
  const ComputeGrant grant{.parts = {{.cpus = {2}, .idle = {3}}}};
  const AllocationByResource records = RecordsOf("cci.qrm.io/fast", grant, machine_);
  EXPECT_EQ(records.at("cci.qrm.io/fast")->value, "2");
  EXPECT_EQ(WithheldBy(grant, machine_, offer_.shared).value, "2-3");
}

TEST_F(DriverGrantTest, SharedCpusAreThoseOfThePoolThatTheContainerDoesNotOwn) {
  const ComputeGrant grant{.parts = {{.cpus = {2}, .idle = {3}}, {.shared = true}}};
  EXPECT_TRUE(IsOk(Check(grant)));
  const ResourceAllocation withheld = WithheldBy(grant, machine_, offer_.shared);
  EXPECT_EQ(withheld.value, "2-3");
  EXPECT_EQ(withheld.shares, "4-7");
  EXPECT_EQ(withheld.may_share, "0-1,4-7");
}

TEST_F(DriverGrantTest, NamedSharedCpusAreInThePool) {
  EXPECT_TRUE(IsOk(Check({.parts = {{.cpus = {2}}, {.cpus = {4, 5}, .shared = true}}})));
  EXPECT_THAT(MessageOf(Check({.parts = {{.cpus = {2}}, {.cpus = {1, 4}, .shared = true}}})),
              HasSubstr("of which 1 are not in the default pool, which is 2-7"));
}

TEST_F(DriverGrantTest, NothingIsSharedWithoutAPluginThatReportsChangesOfThePool) {
  const ComputeGrant grant{.parts = {{.cpus = {2}}, {.shared = true}}};
  EXPECT_THAT(MessageOf(CheckGrant(grant, {.offer = offer_, .cpus = 2, .machine = machine_})),
              HasSubstr("but no cpu plugin has such a pool"));
}

TEST_F(DriverGrantTest, MemoryNodesHaveASeparateRecord) {
  const AllocationByResource records =
      RecordsOf("cci.qrm.io/fast", {.parts = {{.cpus = {2}}}, .mems = {1}}, machine_);
  EXPECT_EQ(records.at("cci.qrm.io/fast.mems")->value, "1");
}

const ContainerKey kKey{"uid-web", "main"};

// Eight CPUs on two nodes; 0 is reserved, 1 in a separate pool.
class DriverOfferTest : public testing::Test {
 protected:
  DriverOfferTest() {
    account_.pools = {{.name = "batch", .cpus = {1}},
                      {.name = "default", .cpus = {2, 3, 4, 5, 6, 7}}};
    account_.allocatable.allocatable_cpus = CpuSet::Range(1, 7);
  }

  static NodeState With(const std::string& pod, const std::string& container, ContainerType type,
                        const std::string& cpus) {
    Change change;
    change.put_containers.push_back(
        {test::SamplePod(pod),
         container,
         {.type = type, .allocations = {{"cpu", test::OwnCpus(cpus)}}}});
    return NodeState().With(std::move(change));
  }
  DriverOffer Offer(const NodeState& state) const {
    return MakeOffer(kKey, ContainerType::kMain, machine_, state, &account_);
  }

  const Machine machine_ = test::SampleMachine();
  CpuAccount account_;
};

TEST_F(DriverOfferTest, IsWhatTheDefaultPoolCouldGiveAway) {
  const DriverOffer offer = Offer(NodeState());
  EXPECT_EQ(ToString(offer.available), "2-7");
  EXPECT_EQ(ToString(offer.shared), "2-7");
  EXPECT_EQ(ToString(offer.reserved), "0");
}

TEST_F(DriverOfferTest, LeavesOutReservedCpusInAPoolThatMayUseThem) {
  account_.pools[1].cpus = CpuSet::Range(0, 7);
  EXPECT_EQ(ToString(Offer(NodeState()).available), "1-7");
}

TEST_F(DriverOfferTest, LeavesOutExclusiveCpusOnRecord) {
  EXPECT_EQ(ToString(Offer(With("db", "main", ContainerType::kMain, "2-3")).available), "4-7");
}

TEST_F(DriverOfferTest, LendsWhatInitContainersOfThePodHold) {
  account_.pools[1].cpus = CpuSet::Range(4, 7);
  EXPECT_EQ(ToString(Offer(With("web", "init", ContainerType::kInit, "2-3")).available), "2-7");
}

TEST_F(DriverOfferTest, IsAllFreeCpusWithoutACpuPlugin) {
  const NodeState state = With("db", "main", ContainerType::kMain, "2-3");
  const DriverOffer offer = MakeOffer(kKey, ContainerType::kMain, machine_, state, nullptr);
  EXPECT_EQ(ToString(offer.available), "0-1,4-7");
}

TEST_F(DriverOfferTest, HintsAreTheNodesWithEnoughOfIt) {
  const StatusOr<HintList> hints = HintsOf(Offer(NodeState()), 3, machine_);
  ASSERT_TRUE(hints.ok());
  EXPECT_EQ(hints->hints().front(), (TopologyHint{.nodes = {1}, .preferred = true}));
}

TEST_F(DriverOfferTest, TooFewCpusAreSaidWithBothNumbers) {
  EXPECT_THAT(MessageOf(HintsOf(Offer(NodeState()), 7, machine_).status()),
              HasSubstr("it requests 7 CPUs, but only 6 are free (2-7)"));
}

}  // namespace
}  // namespace qrm::manager::driver_grant_test
