// Published tests of nri-plugins, played step by step: what its balloons and topology-aware
// policies promise there, as tables of places.
//
// Source: containers/nri-plugins v0.14.0-30-g0705acc8 (2026-08-21), test/e2e/policies.test-suite,
// machine n4c16: balloons test05-namespace and test10-allocator-opts, topology-aware
// test07-mixed-allocations and test14-burstable.
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/plugins/cpu/elastic_fixture.h"
#include "test/plugins/cpu/four_nodes.h"

namespace qrm::cpu::peers_test {
namespace {

using test::Drive;
using test::Request;

/// A container that comes, and what it must get.
struct Step {
  std::string container;  ///< "POD/CONTAINER"
  std::string from;       ///< its namespace, or its role
  double cpus = 0;
  std::string pool;  ///< the pool or instance that it uses
  std::string uses;  ///< all CPUs that it may run on, with exclusive ones
  std::string own;   ///< its exclusive CPUs
};

class PeersTest : public ElasticPlugins {
 protected:
  enum class From { kNamespaces, kRoles };

  Drive StartOn(const std::string& text) { return Drive(MakeElastic(text, FourNodes())); }

  static ContainerRequest RequestOf(const Step& step, From from) {
    const std::size_t slash = step.container.find('/');
    ContainerRequest request = Request(step.container.substr(0, slash),
                                       from == From::kRoles ? step.from : "", "cpu", step.cpus);
    request.key.container = step.container.substr(slash + 1);
    request.pod_namespace = from == From::kNamespaces ? step.from : "default";
    return request;
  }
  static const ResourceAllocation& Of(const Drive& drive, const std::string& container) {
    const std::size_t slash = container.find('/');
    return drive.grants()
        .at({.pod_uid = container.substr(0, slash) + "-uid",
             .container = container.substr(slash + 1)})
        .allocation;
  }
  static CpuSet Uses(const Drive& drive, const std::string& container) {
    const ResourceAllocation& has = Of(drive, container);
    return *CpuSet::Parse(has.value) | *CpuSet::Parse(has.shares);
  }
  static void Play(Drive& drive, From from, const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      const auto admitted = drive.Admit(RequestOf(step, from));
      ASSERT_TRUE(admitted.ok()) << step.container << ": " << admitted.status();
      drive.Reconcile();
      if (!step.pool.empty()) {
        EXPECT_EQ(Of(drive, step.container).shares_of, step.pool) << step.container;
      }
      EXPECT_EQ(ToString(Uses(drive, step.container)), step.uses) << step.container;
      EXPECT_EQ(Of(drive, step.container).exclusive ? Of(drive, step.container).value : "",
                step.own)
          << step.container;
    }
  }
  static int CoresOf(const CpuSet& cpus) {
    std::set<int> cores;
    for (const int cpu : cpus) {
      cores.insert(FourNodes().FindCpu(cpu)->core);
    }
    return static_cast<int>(cores.size());
  }
};

// test05-namespace: a balloon of 2 to 4 CPUs for each namespace, a second one when it is full, and
// a shared one when there are no CPUs for another. Its last step is about a pod that the policy
// skips: `leave-alone` here.
TEST_F(PeersTest, BalloonsByNamespaceHaveASecondInstanceWhenOneIsFull) {
  Drive drive = StartOn(R"(
reserved-cpus: "0"
rules: [{select: {namespace: "!kube-system"}, pool: ns}]
pools:
  ns: {size: {min: 2, max: 4}, instances: {by: namespace, when-full: any}}
  default: {size: {}}
)");
  Play(drive, From::kNamespaces,
       {
           {"pod0/c0", "default", 0, "", "2-3", ""},
           {"pod0/c1", "default", 0, "", "2-3", ""},
           {"pod1/c0", "e2e-a", 0, "", "4-5", ""},
           {"pod1/c1", "e2e-a", 0, "", "4-5", ""},
           {"pod2/c0", "default", 2, "", "2-3", ""},
           {"pod2/c1", "default", 2, "", "1-3,6", ""},
           {"pod3/c0", "default", 0.1, "ns/default:2", "8-9", ""},
           {"pod3/c1", "default", 0.1, "ns/default:2", "8-9", ""},
           {"pod4/c0", "e2e-b", 2, "", "10-11", ""},
           {"pod4/c1", "e2e-b", 2, "", "10-13", ""},
           {"pod5/c0", "e2e-c", 0.1, "", "14-15", ""},
           {"pod5/c1", "e2e-c", 0.1, "", "14-15", ""},
           {"pod6/c0", "e2e-d", 0.1, "ns/e2e-a", "4-5", ""},
           {"pod6/c1", "e2e-d", 0.1, "ns/e2e-a", "4-5", ""},
       });
  EXPECT_EQ(ToString(Uses(drive, "pod0/c0")), "1-3,6") << "with pod2, which its namespace has";
}

// test10-allocator-opts: instances that exist beforehand, one thread of each core first, whole
// cores, and a node that is kept for one type. That type stays on one node here.
TEST_F(PeersTest, BalloonsSpreadOverCoresAndKeepTheNodeOfADevice) {
  Drive drive = StartOn(R"(
reserved-cpus: "0"
devices: {node2: 2}
pools:
  policydefaults:
    {roles: [policydefaults], size: {min: 2, shrink-after: 0s}, place: {threads: spread},
     instances: {by: all, when-full: another, min: 2}}
  topo1cores0:
    {roles: [topo1cores0], size: {min: 2, shrink-after: 0s}, place: {threads: whole-cores},
     instances: {by: all, when-full: another, min: 1}}
  topo0cores0:
    {roles: [topo0cores0], size: {shrink-after: 0s}, place: {threads: whole-cores},
     instances: {by: all, when-full: another}}
  topo1cores1:
    {roles: [topo1cores1], size: {shrink-after: 0s}, place: {threads: spread},
     instances: {by: all, when-full: another}}
  device-node2:
    {roles: [device-node2], size: {}, instances: {by: container, when-full: any},
     place: {threads: spread, numa: one, require: numa, near: node2, keep-near: true}}
  default: {size: {}}
)");
  const auto add = [&](const std::string& container, const std::string& role, double cpus) {
    const auto given = drive.Admit(RequestOf({container, role, cpus, "", "", ""}, From::kRoles));
    EXPECT_TRUE(given.ok()) << container << ": " << given.status();
    drive.Reconcile();
    return given.ok() ? Uses(drive, container) : CpuSet();
  };
  const CpuSet node2 = CpuSet::Range(8, 11);

  const CpuSet pod0 = add("pod0/c0", "policydefaults", 0.1);
  EXPECT_EQ(pod0.Count(), 2);
  EXPECT_EQ(CoresOf(pod0), 2);
  const CpuSet pod1 = add("pod1/c0", "topo1cores0", 0.1);
  EXPECT_EQ(pod1.Count(), 2);
  EXPECT_EQ(CoresOf(pod1), 1);
  add("pod2/c0", "topo1cores1", 1);
  const CpuSet pod2 = add("pod2/c1", "topo1cores1", 1);
  EXPECT_EQ(pod2.Count(), 2);
  EXPECT_EQ(CoresOf(pod2), 2);
  EXPECT_EQ(Uses(drive, "pod2/c0"), pod2);
  EXPECT_FALSE((pod0 | pod1 | pod2).Intersects(node2)) << ToString(pod0 | pod1 | pod2);
  for (const char* pod : {"pod0", "pod1", "pod2"}) {
    drive.RemovePod(pod);
  }
  drive.Reconcile();

  add("pod3/c0", "topo0cores0", 1);
  const CpuSet pod3 = add("pod3/c1", "topo0cores0", 1);
  EXPECT_EQ(pod3.Count(), 2);
  EXPECT_EQ(CoresOf(pod3), 1);
  EXPECT_FALSE(pod3.Intersects(node2)) << ToString(pod3);
  const CpuSet pod4 = add("pod4/c0", "device-node2", 3);
  EXPECT_EQ(pod4.Count(), 3);
  EXPECT_EQ(CoresOf(pod4), 2);
  EXPECT_TRUE(pod4.IsSubsetOf(node2)) << ToString(pod4);
  const CpuSet pod5 = add("pod5/c0", "device-node2", 2);
  EXPECT_EQ(pod5.Count(), 2);
  EXPECT_EQ(CoresOf(pod5), 2);
  EXPECT_FALSE(pod5.Intersects(node2)) << ToString(pod5);
}

// test07-mixed-allocations: shared pools of NUMA nodes, and exclusive CPUs beside their node's
// pool.
TEST_F(PeersTest, TopologyAwareMixesExclusiveAndSharedCpusOfANode) {
  Drive drive = StartOn(R"(
reserved-cpus: "0"
rules: [{select: {role: shared}, pool: shared}, {select: {role: mixed}, grant: mixed}]
pools:
  shared: {size: {}, instances: {by: numa-node, fill: fewest}, borrow: {idle: numa}}
  default: {size: {}}
grants: {mixed: {plus: shared, share-numa-with: ["*"]}}
)");
  Play(drive, From::kRoles,
       {
           {"pod0/c0", "shared", 0.5, "shared/1", "4-7", ""},
           {"pod0/c1", "shared", 0.5, "shared/2", "8-11", ""},
           {"pod1/c0", "mixed", 1.5, "shared/3", "12-15", "12"},
           {"pod1/c1", "mixed", 1.5, "shared/1", "4-7", "5"},
       });
  EXPECT_EQ(ToString(Uses(drive, "pod0/c0")), "4,6-7") << "without the exclusive CPU of pod1";
  Play(drive, From::kRoles,
       {
           {"pod2/c0", "shared", 2.4, "shared/0", "1-3", ""},
           {"pod2/c1", "shared", 2.4, "shared/2", "8-11", ""},
           {"pod3/c0", "mixed", 2.4, "shared/3", "13-15", "14-15"},
       });
  EXPECT_EQ(ToString(Uses(drive, "pod1/c0")), "12-13");
  drive.RemovePod("pod3");
  drive.Reconcile();
  Play(drive, From::kRoles, {{"pod4/c0", "mixed", 2.4, "shared/3", "13-15", "14-15"}});
  drive.RemovePod("pod1");
  drive.Reconcile();
  EXPECT_EQ(ToString(Uses(drive, "pod0/c0")), "4-7");
  EXPECT_EQ(ToString(Uses(drive, "pod0/c1")), "8-11");
  Play(drive, From::kRoles,
       {
           {"pod5/c0", "shared", 1.5, "shared/1", "4-7", ""},
           {"pod5/c1", "shared", 1.5, "shared/3", "12-13", ""},
       });
}

// test14-burstable, from its second configuration on: how far a container may burst. Each level is
// a pool here. Nodes are compared, not packages, so that pod4's containers have each other's
// package. The first configuration is about memory by limit: memory follows requests here.
TEST_F(PeersTest, TopologyAwareLetsContainersBurstUpToALevel) {
  constexpr char kLevels[] = R"(
reserved-cpus: "0"
rules:
  - {select: {role: numa}, pool: numa}
  - {select: {role: socket}, pool: socket}
  - {select: {role: system}, pool: system}
pools:
  numa: {size: {}, instances: {by: numa-node, fill: fewest}, borrow: {idle: numa}}
  socket: {size: {}, instances: {by: numa-node, fill: fewest}, borrow: {idle: package}}
  system: {size: {}, instances: {by: numa-node, fill: fewest}, borrow: {idle: all}}
  default: {size: {}}
)";
  const auto nodes = [](Drive& drive, const std::string& container, const std::string& level) {
    const auto given = drive.Admit(RequestOf({container, level, 2, "", "", ""}, From::kRoles));
    EXPECT_TRUE(given.ok()) << container << ": " << given.status();
    drive.Reconcile();
    return ToString(FourNodes().NodesOf(Uses(drive, container)));
  };
  Drive limited = StartOn(kLevels);
  EXPECT_EQ(nodes(limited, "pod4/c0", "socket"), "0-1");
  EXPECT_EQ(nodes(limited, "pod4/c1", "socket"), "2-3");
  EXPECT_EQ(nodes(limited, "pod5/c0", "socket"), "2-3");
  EXPECT_EQ(nodes(limited, "pod5/c1", "socket"), "0-1");
  Drive levels = StartOn(kLevels);
  EXPECT_EQ(nodes(levels, "pod6/c0", "numa"), "1");
  EXPECT_EQ(nodes(levels, "pod6/c1", "system"), "0-3");
  Drive dies = StartOn(kLevels);
  EXPECT_EQ(nodes(dies, "pod7/c0", "numa"), "1");
  EXPECT_EQ(nodes(dies, "pod7/c1", "socket"), "2-3");
}

}  // namespace
}  // namespace qrm::cpu::peers_test
