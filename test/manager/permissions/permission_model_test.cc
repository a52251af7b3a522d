// Whatever labels, annotations and requests a pod has, it gets nothing that the first rule for its
// namespace does not allow. QRM_PERMISSION_PODS sets the number of policies and pods.
#include <string>

#include <gtest/gtest.h>

#include "test/manager/permissions/permission_cases.h"
#include "test/manager/permissions/permission_node.h"
#include "test/manager/permissions/permission_oracle.h"
#include "test/support/is_ok.h"
#include "test/support/rounds.h"

namespace qrm::test::permission_model_test {
namespace {

/// How many pods got or lacked what the test is about, so that it cannot pass by testing nothing.
struct Count {
  int admitted = 0;
  int placed = 0;
  int denied = 0;
  int again = 0;
};

std::string CaseOf(const nlohmann::json& config, const AskingPod& pod) {
  return "permissions " + config.at("permissions").dump() + "\nclasses " +
         config.at("class-types").dump() + "\ndrivers " + config.at("compute-drivers").dump() +
         "\nskipped " + config.at("skip-namespaces").dump() + "\npod " + ManifestOf(pod).dump();
}

/// The pod is created; then, now and then, its containers once more, after a change of the pod.
void Judge(PermissionNode& node, const nlohmann::json& config, const AskingPod& pod, Random& random,
           Count& count) {
  const PermissionOracle oracle(config);
  const Status admitted = node.Admit(pod);
  const auto has = node.Has();
  count.admitted += admitted.ok() ? 1 : 0;
  count.placed += has.has_value() ? 1 : 0;
  count.denied += admitted.code() == StatusCode::kPermissionDenied ? 1 : 0;
  if (admitted.ok()) {
    ASSERT_EQ(oracle.ForbiddenWish(pod).value_or("nothing"), "nothing") << CaseOf(config, pod);
  }
  if (!has.has_value()) {
    return;
  }
  ASSERT_EQ(oracle.Excess(pod, *has).value_or("nothing"), "nothing") << CaseOf(config, pod);
  const AskingPod changed = ChangedPod(pod, random);
  if (admitted.ok() && node.Admit(changed).ok()) {
    ++count.again;
    const auto then = node.Has();
    if (!then.has_value()) {
      FAIL() << "it has nothing: " << CaseOf(config, pod);
    }
    ASSERT_EQ(oracle.Excess(pod, *then).value_or("nothing"), "nothing")
        << CaseOf(config, pod) << "\nthen " << ManifestOf(changed).dump();
  }
}

TEST(PermissionModelTest, NoPodGetsMoreThanTheFirstRuleForItsNamespaceAllows) {
  const int pods = Rounds(RoundsBy("QRM_PERMISSION_PODS", 10'000));
  Random random(20'261'128);
  PermissionNode node;
  Count count;
  for (int i = 0; i < pods; ++i) {
    const nlohmann::json config = DrawConfig(random);
    ASSERT_TRUE(IsOk(node.Configure(config))) << config.dump();
    Judge(node, config, DrawPod(random), random, count);
    node.Remove();
    ASSERT_FALSE(HasFatalFailure()) << "in pod " << i;
  }
  EXPECT_GT(count.admitted, pods / 10);
  EXPECT_GT(count.placed, pods / 10);
  EXPECT_GT(count.denied, pods / 10);
  EXPECT_GT(count.again, pods / 100);
}

}  // namespace
}  // namespace qrm::test::permission_model_test
