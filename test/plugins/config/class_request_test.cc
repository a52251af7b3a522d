#include "plugins/config/class_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/sdk/class_provider.h"
#include "test/support/is_ok.h"

namespace qrm::config::class_request_test {
namespace {

using sdk::ClassLevel;
using test::IsOk;
using testing::HasSubstr;

constexpr char kBetaOwn[] = "blockio.resources.beta.kubernetes.io/container.main";
constexpr char kBetaPod[] = "blockio.resources.beta.kubernetes.io/pod";
constexpr char kAlphaOwn[] = "blockio.resources.alpha.kubernetes.io/container.main";
constexpr char kAlphaPod[] = "blockio.resources.alpha.kubernetes.io/default";
constexpr char kLastOwn[] = "blockio.resources.kubernetes.io/container.main";
constexpr char kLastPod[] = "blockio.resources.kubernetes.io/default";
constexpr char kPodLevel[] = "blockio.resources.qrm.io/pod";

struct RequestCase {
  std::string name;  // CamelCase: part of the test's name
  StringMap annotations;
  std::string want;  // "CLASS by KEY", "none", or a part of the rejection
  ClassLevel level = ClassLevel::kContainer;
};

std::string TextOf(const StatusOr<std::optional<ClassRequest>>& found) {
  if (!found.ok()) {
    return MessageOf(found.status());
  }
  const std::optional<ClassRequest>& request = *found;
  return request.has_value() ? request->name + " by " + request->key : "none";
}

class ClassRequestTest : public testing::TestWithParam<RequestCase> {};

TEST_P(ClassRequestTest, FollowsThePrecedence) {
  const RequestCase& one = GetParam();
  EXPECT_THAT(TextOf(FindClassRequest(one.annotations, {"blockio", one.level}, "main")),
              HasSubstr(one.want));
}

const RequestCase kCases[] = {
    {"Nothing", {{"team", "a"}}, "none"},
    {"BetaOwn", {{kBetaOwn, "slow"}}, "slow by annotation " + std::string(kBetaOwn) + "=slow"},
    {"BetaPod", {{kBetaPod, "slow"}}, "slow by"},
    {"AlphaOwn", {{kAlphaOwn, "slow"}}, "slow by"},
    {"AlphaDefault", {{kAlphaPod, "slow"}}, "slow by"},
    {"LastOwn", {{kLastOwn, "slow"}}, "slow by"},
    {"LastDefault", {{kLastPod, "slow"}}, "slow by"},
    {"OwnWinsOverPodOfBeta", {{kBetaOwn, "fast"}, {kBetaPod, "slow"}}, "fast by"},
    {"AlphaOwnWinsOverBetaPod", {{kAlphaOwn, "fast"}, {kBetaPod, "slow"}}, "fast by"},
    {"LastOwnWinsOverAlphaDefault", {{kLastOwn, "fast"}, {kAlphaPod, "slow"}}, "fast by"},
    {"EmptyOwnWinsOverPod", {{kBetaOwn, ""}, {kBetaPod, "slow"}}, " by annotation"},
    {"EqualOnesAgree", {{kBetaOwn, "fast"}, {kAlphaOwn, "fast"}, {kLastOwn, "fast"}}, "fast by"},
    {"OwnOnesThatDiffer", {{kBetaOwn, "fast"}, {kAlphaOwn, "slow"}}, "contradict each other"},
    {"DefaultsThatDiffer", {{kBetaPod, "fast"}, {kLastPod, "slow"}}, "contradict each other"},
    {"DefaultsThatDifferBehindAnOwnOne",
     {{kBetaOwn, "fast"}, {kBetaPod, "fast"}, {kLastPod, "slow"}},
     "fast by"},
    {"AnotherContainersKey",
     {{"blockio.resources.beta.kubernetes.io/container.other", "slow"}},
     "none"},
    {"AnotherType", {{"rdt.resources.beta.kubernetes.io/pod", "gold"}}, "none"},
    {"NoClassName", {{kBetaOwn, "../gold"}}, "does not name a class"},
    {"PodKeyOfAContainerLevelType", {{kPodLevel, "slow"}}, "is for single containers; write"},
    {"PodLevel", {{kPodLevel, "slow"}}, "slow by", ClassLevel::kPod},
    {"ContainerKeyOfAPodLevelType",
     {{kBetaOwn, "slow"}},
     "is for whole pods; write",
     ClassLevel::kPod},
    {"DefaultKeyOfAPodLevelType",
     {{kAlphaPod, "slow"}},
     "is for whole pods; write",
     ClassLevel::kPod},
};
INSTANTIATE_TEST_SUITE_P(Sources, ClassRequestTest, testing::ValuesIn(kCases),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(ClassRequestTest, RejectsATypeThatOnlyThisManagerCouldServeAndDoesNot) {
  const Status refused =
      CheckClassTypes({{"rdt.resources.alpha.kubernetes.io/default", "gold"}}, {"blockio", "oom"});
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(refused), HasSubstr("use one of blockio and oom"));
}

TEST(ClassRequestTest, LeavesToTheRuntimeATypeThatItMayServe) {
  EXPECT_TRUE(
      IsOk(CheckClassTypes({{"rdt.resources.beta.kubernetes.io/pod", "gold"}}, {"blockio"})));
}

TEST(ClassRequestTest, TheProposalsKeysOfRdtAreRead) {
  const StringMap keys = {{"rdt.resources.alpha.kubernetes.io/default", "bronze"},
                          {"rdt.resources.alpha.kubernetes.io/container.main", "gold"}};
  EXPECT_THAT(TextOf(FindClassRequest(keys, {.name = "rdt"}, "main")), HasSubstr("gold by"));
  EXPECT_THAT(TextOf(FindClassRequest(keys, {.name = "rdt"}, "side")), HasSubstr("bronze by"));
}

TEST(ClassRequestTest, RejectsATypeOfTheLastVersionThatTheNodeLacks) {
  EXPECT_THAT(
      MessageOf(CheckClassTypes({{"rdt.resources.kubernetes.io/default", "gold"}}, {"blockio"})),
      HasSubstr("use one of blockio"));
}

TEST(ClassRequestTest, RejectsAMisspeltTypeWithAKeyOfRuntimes) {
  EXPECT_THAT(
      MessageOf(CheckClassTypes({{"blokio.resources.beta.kubernetes.io/pod", "s"}}, {"blockio"})),
      HasSubstr("is of a type of classes that this node does not have"));
}

TEST(ClassRequestTest, RejectsAVersionThatDoesNotExist) {
  EXPECT_THAT(MessageOf(CheckClassTypes({{"blockio.resources.gamma.kubernetes.io/pod", "slow"}},
                                        {"blockio"})),
              HasSubstr("write blockio.resources.alpha.kubernetes.io/default"));
  EXPECT_TRUE(IsOk(CheckClassTypes({{"a.resources.example.com/pod", "slow"}}, {"blockio"})));
}

TEST(ClassRequestTest, RejectsAContainerThatThePodDoesNotHave) {
  EXPECT_TRUE(IsOk(CheckClassContainers({{kAlphaOwn, "slow"}, {kBetaPod, "slow"}}, {"main"})));
  EXPECT_THAT(MessageOf(CheckClassContainers({{kAlphaOwn, "slow"}}, {"mian", "side"})),
              HasSubstr("its containers are mian and side"));
}

TEST(ClassRequestTest, KnowsTheKeysThatOnlyThisManagerReads) {
  EXPECT_TRUE(NamesClassType({{kLastPod, "slow"}}));
  EXPECT_TRUE(NamesClassType({{kAlphaOwn, "slow"}}));
  EXPECT_TRUE(NamesClassType({{"oom.resources.beta.kubernetes.io/pod", "first"}}));
  EXPECT_FALSE(NamesClassType({{kBetaPod, "slow"}, {"a.resources.example.com/b", "c"}}));
}

TEST(ClassNameTest, BeginsAndEndsWithALetterOrDigit) {
  EXPECT_TRUE(sdk::IsClassName("a"));
  EXPECT_TRUE(sdk::IsClassName("Fast.disk_1-x"));
  EXPECT_TRUE(sdk::IsClassName(std::string(63, 'a')));
  EXPECT_FALSE(sdk::IsClassName(""));
  EXPECT_FALSE(sdk::IsClassName("-a"));
  EXPECT_FALSE(sdk::IsClassName("a."));
  EXPECT_FALSE(sdk::IsClassName("a/b"));
  EXPECT_FALSE(sdk::IsClassName(std::string(64, 'a')));
}

}  // namespace
}  // namespace qrm::config::class_request_test
