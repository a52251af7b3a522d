// A record has what a plugin was asked and what it gave.
#include "plugins/placement/recorded_grants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/sample_node.h"

namespace qrm::manager::recorded_grants_test {
namespace {

using checkpoint::Change;
using checkpoint::ContainerRecord;
using checkpoint::NodeState;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kBytes = 1 << 20;

ResourceAllocation Gpu() {
  return {.is_scalar_resource = true,
          .quantity = 3,
          .hints = {{{.nodes = {1}, .preferred = true}}},
          .amount_by_node = {{1, 3}}};
}

NodeState StateWith(const ContainerRecord& record) {
  Change change;
  change.put_containers.push_back({test::SamplePod("web"), "main", record});
  return NodeState().With(std::move(change));
}

sdk::Grants GrantsOf(const ContainerRecord& record, const std::string& resource,
                     const placement::AdmissionOptions& options = {}) {
  return placement::RecordedGrants(StateWith(record), resource, options);
}

TEST(RecordedGrantsTest, HaveTheRequestAsThePodMadeIt) {
  const sdk::Grants grants = GrantsOf({.index = 2,
                                       .requests = {{"example.com/gpu", 1}, {"cpu", 2}},
                                       .runtime_class = "kata",
                                       .allocations = {{"gpu", Gpu()}}},
                                      "gpu", {.resource_names = {{"example.com/gpu", {"gpu"}}}});
  ASSERT_THAT(grants, SizeIs(1));
  const ContainerRequest& request = grants.begin()->second.request;
  EXPECT_EQ(request.key, (ContainerKey{"uid-web", "main"}));
  EXPECT_EQ(request.resource, "gpu");
  EXPECT_EQ(request.requests, (std::map<std::string, double>{{"example.com/gpu", 1}}));
  EXPECT_EQ(request.index, 2u);
  EXPECT_EQ(request.runtime_class, "kata");
  EXPECT_EQ(request.hint, (TopologyHint{.nodes = {1}, .preferred = true}));
  EXPECT_EQ(grants.begin()->second.allocation, Gpu());
}

TEST(RecordedGrantsTest, AreForTheAllocationWhereTheRequestIsNotOnRecord) {
  const sdk::Grants grants = GrantsOf({.allocations = {{"gpu", Gpu()}}}, "gpu");
  EXPECT_EQ(grants.at({"uid-web", "main"}).request.quantity(), 3);
}

TEST(RecordedGrantsTest, PassHugepagesToTheMemoryPlugin) {
  const sdk::Grants grants = GrantsOf(
      {.requests = {{"memory", kBytes}, {"hugepages-2Mi", kBytes}},
       .allocations = {{"memory",
                        ResourceAllocation{.is_scalar_resource = true, .quantity = kBytes}}}},
      "memory");
  EXPECT_EQ(grants.at({"uid-web", "main"}).request.requests.at("hugepages-2Mi"), kBytes);
}

TEST(RecordedGrantsTest, LeaveOutWhatAnotherPluginGave) {
  EXPECT_THAT(
      GrantsOf({.allocations = {{"gpu", Gpu()}}, .origins = {{"gpu", {.plugin = "nic"}}}}, "gpu"),
      IsEmpty());
}

TEST(RecordedGrantsTest, ReportWhatTheContainerWasAdmittedWith) {
  const sdk::Grants grants = GrantsOf(
      {.allocations = {{"gpu", Gpu()}},
       .origins = {{"gpu",
                    {.plugin = "gpu",
                     .admitted = checkpoint::Amounts{.quantity = 1, .by_node = {{0, 1}}}}}}},
      "gpu");
  const sdk::Grant& grant = grants.at({"uid-web", "main"});
  EXPECT_EQ(grant.allocation->quantity, 3);
  ASSERT_NE(grant.admitted, nullptr);
  EXPECT_EQ(grant.admitted->quantity, 1);
}

}  // namespace
}  // namespace qrm::manager::recorded_grants_test
