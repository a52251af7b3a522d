#include "manager/drivers/driver_offer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/sample_node.h"

namespace qrm::manager::driver_offer_test {
namespace {

using checkpoint::Change;
using checkpoint::NodeState;
using testing::HasSubstr;

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
}  // namespace qrm::manager::driver_offer_test
