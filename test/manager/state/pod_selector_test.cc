#include "manager/state/pod_selector.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager::pod_selector_test {
namespace {

using testing::HasSubstr;

/// Two pods called web, of namespaces shop and test.
checkpoint::NodeState TwoPods() {
  checkpoint::Change change;
  for (const char* const pod_namespace : {"shop", "test"}) {
    change.put_containers.push_back({{.uid = std::string("uid-") + pod_namespace,
                                      .pod_namespace = pod_namespace,
                                      .name = "web"},
                                     "main",
                                     {}});
  }
  return checkpoint::NodeState().With(change);
}

TEST(PodSelectorTest, FindsAPodByNamespaceAndNameOrByUid) {
  const checkpoint::NodeState state = TwoPods();
  for (const char* const selector : {"test/web", "uid-test"}) {
    const auto found = FindMeantPod(state, selector);
    ASSERT_TRUE(found.ok()) << MessageOf(found.status());
    EXPECT_EQ((*found)->meta.uid, "uid-test");
  }
}

TEST(PodSelectorTest, RejectsANameOfTwoPods) {
  const checkpoint::NodeState state = TwoPods();
  const auto found = FindMeantPod(state, "web");
  EXPECT_EQ(found.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(found.status()), HasSubstr("2 pods are called web; write NAMESPACE/NAME"));
}

TEST(PodSelectorTest, RejectsWhatNoPodIsCalled) {
  const checkpoint::NodeState state = TwoPods();
  EXPECT_EQ(FindMeantPod(state, "shop").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace qrm::manager::pod_selector_test
