#include "scheduler/topology/numa_verdicts.h"

#include <string>

#include <gtest/gtest.h>

namespace qrm::scheduler::numa_verdicts_test {
namespace {

TEST(QuestionsTest, AreOneForPodsThatDifferInTheirNamesOnly) {
  Questions questions;
  const Pod pod{.uid = "u1", .pod_namespace = "ns", .name = "a", .qos_class = "Guaranteed"};
  const Question question = questions.Of(pod);
  Pod other = pod;
  other.uid = "u2";
  other.name = "b";
  EXPECT_EQ(questions.Of(other), question);
  other.qos_class = "Burstable";
  EXPECT_NE(questions.Of(other), question);
  other = pod;
  other.controller_kind = "DaemonSet";
  EXPECT_NE(questions.Of(other), question);
  other = pod;
  other.priority_class = "system-node-critical";
  EXPECT_NE(questions.Of(other), question);
  EXPECT_EQ(questions.Of(pod), question);
}

TEST(VerdictsTest, AreAskedForOnce) {
  Questions questions;
  Verdicts verdicts;
  int asked = 0;
  const auto judge = [&asked] { return Verdict{.refusal = std::to_string(++asked)}; };
  const Question question = questions.Of({.qos_class = "Guaranteed"});
  EXPECT_EQ(verdicts.Of(question, judge).refusal, "1");
  EXPECT_EQ(verdicts.Of(question, judge).refusal, "1");
  EXPECT_EQ(verdicts.Of(questions.Of({.qos_class = "Burstable"}), judge).refusal, "2");
}

/// A container of pod `uid` with CPUs 1 and 2 and a MiB of node 0.
placement::NodeHoldings HeldBy(const std::string& uid) {
  placement::NodeHoldings held;
  held.cpu.exclusive[{uid, "c"}] = {.cpus = {1, 2}, .tenant = {.pod_uid = uid, .role = "db"}};
  held.memory[{uid, "c"}] = {.bytes_by_node = {{0, 1 << 20}}, .tenant = {.pod_uid = uid}};
  held.nic.Put({uid, "c"}, {.nic = {.interface = "eth0"}, .mbps = 10});
  return held;
}

TEST(VerdictsByHoldingsTest, AreTheSameForTheSameAllocations) {
  VerdictsByHoldings verdicts;
  const auto of_one = verdicts.Of(HeldBy("u1"));
  EXPECT_EQ(verdicts.Of(HeldBy("u2")), of_one);
  EXPECT_NE(verdicts.Of({}), of_one);

  placement::NodeHoldings other = HeldBy("u1");
  other.cpu.exclusive.begin()->second.cpus = {1, 3};
  EXPECT_NE(verdicts.Of(other), of_one);
  other = HeldBy("u1");
  other.cpu.exclusive.begin()->second.tenant.role = "web";
  EXPECT_NE(verdicts.Of(other), of_one);
  other = HeldBy("u1");
  other.cpu.exclusive.begin()->second.tenant.share.anyone = true;
  EXPECT_NE(verdicts.Of(other), of_one);
  other = HeldBy("u1");
  other.memory.begin()->second.bytes_by_node[0] += 1;
  EXPECT_NE(verdicts.Of(other), of_one);
  other = HeldBy("u1");
  other.memory.begin()->second.blocks = {{.nodes = {0}, .type = "memory", .bytes = 1}};
  EXPECT_NE(verdicts.Of(other), of_one);
  other = HeldBy("u1");
  other.nic.Put({"u1", "c"}, {.nic = {.interface = "eth0"}, .mbps = 20});
  EXPECT_NE(verdicts.Of(other), of_one);
}

}  // namespace
}  // namespace qrm::scheduler::numa_verdicts_test
