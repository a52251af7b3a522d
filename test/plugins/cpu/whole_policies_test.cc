// Whole policies, with rules, grants, pools and classes together, and their allocations.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/plugins/cpu/elastic_fixture.h"

namespace qrm::cpu::whole_policies_test {
namespace {

using test::Drive;
using test::Request;
using testing::HasSubstr;

class WholePoliciesTest : public ElasticPlugins {
 protected:
  static ContainerRequest Guaranteed(const std::string& pod, double cpus) {
    ContainerRequest request = Request(pod, "", "cpu", cpus);
    request.native_qos_class = "Guaranteed";
    return request;
  }
};

/// The fourth worked example.
TEST_F(WholePoliciesTest, PacketsAreProcessedOnIsolatedCoresAndHelpersShareAPool) {
  Drive drive = Start(R"(
isolated-cpus: 8-15,40-47
rules: [{select: {role: dpdk}, grant: dataplane}]
grants:
  dataplane: {numa: one, whole-cores: true, isolated: prefer, containers: main, plus: helpers, class: quiet}
pools: {helpers: {size: {min: 2, max: 4}}}
classes: {quiet: {irq: none, idle-latency-us: 2, governor: performance}}
)");
  const auto main = drive.Admit(Request("a", "dpdk", "cpu", 4.5));
  ASSERT_TRUE(main.ok()) << main.status();
  EXPECT_EQ(main->value, "8-9,40-41");
  EXPECT_EQ(main->shares, ToString(Pool(drive, "helpers")));
  EXPECT_EQ(CpuSet::Parse(main->shares)->Count(), 2);

  ContainerRequest sidecar = Request("a", "dpdk", "cpu", 0.5);
  sidecar.key.container = "sidecar";
  sidecar.type = ContainerType::kSidecar;
  const auto beside = drive.Admit(sidecar);
  ASSERT_TRUE(beside.ok()) << beside.status();
  EXPECT_FALSE(beside->exclusive);
  EXPECT_EQ(beside->value, ToString(Pool(drive, "helpers")));
}

/// The seventh worked example; the values of its classes are tested with them.
TEST_F(WholePoliciesTest, TradersHaveCpusOfOneNodeBesideAPoolForTheWeb) {
  Drive drive = Start(R"(
reserved-cpus: 0-1
reserved-class: slow
idle-class: slow
rules: [{select: {label: {tier: trading}, cpu: whole}, grant: trading}, {select: {label: {tier: web}}, pool: web}]
grants: {trading: {numa: one, class: fast}}
pools: {web: {size: {min: 8, max: 40}}, default: {size: {min: 2}}}
classes:
  slow: {freq: {max: base}, governor: powersave, epp: power}
  fast: {freq: {min: base, max: turbo}, idle-latency-us: 10, uncore: {min: max}}
)");
  ContainerRequest trading = Request("a", "", "cpu", 6);
  trading.labels = {{"tier", "trading"}};
  const auto own = drive.Admit(trading);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_TRUE(own->exclusive);
  const CpuSet cpus = *CpuSet::Parse(own->value);
  EXPECT_EQ(cpus.Count(), 6);
  EXPECT_EQ(TwoNodes().NodesOf(cpus).Count(), 1);
  EXPECT_EQ(Size(drive, "web"), 8);
}

/// The eighth worked example.
TEST_F(WholePoliciesTest, KubeletsStrictFullCoresAndMainContainersOfBurstablePods) {
  Drive drive = Start(R"(
reserved-cpus: 2
rules:
  - {select: {qos: Guaranteed, cpu: whole}, grant: static}
  - {select: {qos: Burstable, annotation: {qrm.io/own-cpus: "true"}, container-type: main, cpu: whole}, grant: static}
grants: {static: {numa: any, whole-cores: true, align-l3: true}}
)");
  const auto four = drive.Admit(Guaranteed("a", 4));
  ASSERT_TRUE(four.ok()) << four.status();
  const CpuSet cpus = *CpuSet::Parse(four->value);
  EXPECT_EQ(cpus.Count(), 4);
  EXPECT_EQ(TwoNodes().CoresOf(cpus), cpus);
  EXPECT_THAT(MessageOf(drive.Admit(Guaranteed("b", 3)).status()), HasSubstr("multiple of 2"));

  ContainerRequest burstable = Request("c", "", "cpu", 2);
  burstable.annotations = {{"qrm.io/own-cpus", "true"}};
  burstable.native_qos_class = "Burstable";
  const auto core = drive.Admit(burstable);
  ASSERT_TRUE(core.ok()) << core.status();
  EXPECT_EQ(TwoNodes().CoresOf(*CpuSet::Parse(core->value)), *CpuSet::Parse(core->value));
  burstable.key.container = "sidecar";
  burstable.type = ContainerType::kSidecar;
  EXPECT_FALSE(drive.Admit(burstable)->exclusive);
}

}  // namespace
}  // namespace qrm::cpu::whole_policies_test
