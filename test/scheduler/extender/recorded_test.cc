// The requests of an unmodified kube-scheduler, as test/e2e/scheduler.sh recorded them.
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/extender/messages.h"
#include "test/support/is_ok.h"

namespace qrm::scheduler::recorded_test {
namespace {

using testing::Contains;
using testing::Key;
using testing::Pair;
using testing::UnorderedElementsAre;

std::string Recorded(const std::string& verb) {
  std::ifstream file("test/vectors/extender/" + verb + ".json");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(RecordedTest, FilterAndPrioritizeAskForNodesByTheirNames) {
  for (const char* verb : {"filter", "prioritize"}) {
    const auto question = ParseNodesQuestion(Recorded(verb));
    ASSERT_TRUE(test::IsOk(question.status())) << verb;
    EXPECT_THAT(question->nodes, UnorderedElementsAre("n1", "n2")) << verb;
    EXPECT_EQ(question->pod.pod_namespace, "default");
    EXPECT_THAT(question->pod.annotations, Contains(Pair("fake.qrm.io/request", "1")));
    EXPECT_FALSE(question->pod.uid.empty());
    EXPECT_FALSE(question->pod.resource_version.empty());
  }
}

TEST(RecordedTest, BindNamesPodAndNode) {
  const auto question = ParseBindQuestion(Recorded("bind"));
  ASSERT_TRUE(test::IsOk(question.status()));
  EXPECT_EQ(question->pod_namespace, "default");
  EXPECT_FALSE(question->uid.empty());
  EXPECT_THAT(question->node, testing::AnyOf("n1", "n2"));
}

TEST(RecordedTest, PreemptNamesVictimsByTheirNodes) {
  const auto question = ParsePreemptQuestion(Recorded("preempt"));
  ASSERT_TRUE(test::IsOk(question.status()));
  EXPECT_EQ(question->pod.name, "urgent");
  EXPECT_THAT(question->victims, UnorderedElementsAre(Key("n1"), Key("n2")));
  EXPECT_EQ(question->victims.at("n1").uids.size(), 1U);
}

}  // namespace
}  // namespace qrm::scheduler::recorded_test
