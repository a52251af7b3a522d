// The CPUs and the memory of containers on a machine with several NUMA nodes, by its kernel.
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/vm/machine_test.h"

namespace qrm::test::numa_test {
namespace {

using testing::HasSubstr;

constexpr std::chrono::seconds kPatience{60};
constexpr char kStatic[] =
    "topology-policy: single-numa-node\n"
    "plugins: {cpu: {static: true, reserved-cpus: \"0\"}, memory: {static: true}}\n";

class NumaTest : public MachineTest {
 protected:
  /// The node that all CPUs and all memory of the container are on; -1 when there is none.
  int NodeOf(const RunningPod& pod) {
    const manager::CgroupCpuset cpuset = CpusetOf(pod);
    const int node = cpuset.mems.First();
    const bool one = cpuset.mems.Count() == 1 && cpuset.cpus.IsSubsetOf(CpusOfNode(node));
    std::cout << pod.spec.name << ": cpus " << ToString(cpuset.cpus) << " mems "
              << ToString(cpuset.mems) << "\n";
    return one && !cpuset.cpus.Empty() ? node : -1;
  }
  RunningPod MustRun(const PodSpec& spec) {
    auto pod = Run(spec);
    EXPECT_TRUE(IsOk(pod.status()));
    return pod.ok() ? *std::move(pod) : RunningPod{.spec = spec};
  }
};

TEST_F(NumaTest, EachContainersCpusAndMemoryAreOnOneNode) {
  StartNode(kStatic);
  std::vector<RunningPod> pods;
  CpuSet taken;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    pods.push_back(MustRun(Guaranteed(name, 2)));
    const CpuSet cpus = CpusetOf(pods.back()).cpus;
    EXPECT_EQ(cpus.Count(), 2);
    EXPECT_FALSE(cpus.Intersects(taken)) << ToString(cpus) << " has another owner";
    taken |= cpus;
  }
  NumaMask nodes;
  for (const RunningPod& pod : pods) {
    const int node = NodeOf(pod);
    ASSERT_GE(node, 0);
    nodes.Add(node);
    ASSERT_TRUE(Fill(pod));
    EXPECT_TRUE(LiesOn(pod, {node}));
  }
  EXPECT_GE(nodes.Count(), 3) << "10 CPUs have room on three nodes of four";
}

TEST_F(NumaTest, MemoryReturnsWithAContainerThatAnotherProcessMovedWhileQrmdWasDead) {
  StartNode(kStatic);
  const RunningPod pod = MustRun(Guaranteed("moved", 2));
  const int own = NodeOf(pod);
  ASSERT_GE(own, 0);
  const manager::CgroupCpuset before = CpusetOf(pod);
  ASSERT_TRUE(Fill(pod));
  ASSERT_TRUE(LiesOn(pod, {own}));
  node_->KillDaemon();
  const int other = own == 3 ? 2 : 3;
  std::ofstream(before.path + "/cpuset.cpus") << ToString(CpusOfNode(other));
  std::ofstream(before.path + "/cpuset.mems") << other;
  ASSERT_EQ(NodeOf(pod), other);
  ASSERT_TRUE(Fill(pod));
  ASSERT_TRUE(Await([&] { return bool(LiesOn(pod, {other})); }, kPatience));

  ASSERT_TRUE(IsOk(node_->Start(2)));

  EXPECT_TRUE(Await([&] { return CpusetOf(pod) == before; }, kPatience));
  EXPECT_TRUE(Await([&] { return bool(LiesOn(pod, {own})); }, kPatience));
}

TEST_F(NumaTest, WhatFitsNoNodeIsRejectedWithWhatEachNodeHas) {
  StartNode(kStatic);
  const Status cpus = Run(Guaranteed("wide", 5)).status();
  EXPECT_THAT(MessageOf(cpus), HasSubstr("single-numa-node"));
  const Status memory = Run(Guaranteed("fat", 1, 1200)).status();
  EXPECT_THAT(MessageOf(memory), HasSubstr("single-numa-node"));
  std::cout << MessageOf(cpus) << "\n" << MessageOf(memory) << "\n";
  EXPECT_TRUE(IsOk(Run(Guaranteed("fits", 4)).status())) << "nothing is left of the rejected pod";
}

TEST_F(NumaTest, WholeCoresAreGivenWhereAskedFor) {
  StartNode(
      "topology-policy: single-numa-node\n"
      "plugins: {cpu: {static: {full-pcpus-only: true}, reserved-cpus: \"0-1\"}, memory: {static: "
      "true}}\n");
  for (const char* name : {"a", "b", "c"}) {
    const RunningPod pod = MustRun(Guaranteed(name, 2));
    const CpuSet cpus = CpusetOf(pod).cpus;
    EXPECT_EQ(cpus, ThreadsBeside(cpus.First())) << name;
  }
  EXPECT_THAT(MessageOf(Run(Guaranteed("odd", 1)).status()), HasSubstr("2"));
}

}  // namespace
}  // namespace qrm::test::numa_test
