#include "manager/registry/plugin_classes.h"

#include <functional>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "plugins/sdk/class_plugin.h"
#include "plugins/sdk/plugin_driver.h"
#include "test/support/is_ok.h"

namespace qrm::manager::plugin_classes_test {
namespace {

using std::chrono::milliseconds;
using test::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kType[] = "lanes.example.com";

/// A type that answers as its fields say.
class Lanes final : public sdk::ClassPlugin {
 public:
  sdk::ClassType type = {.name = "whatever",
                         .level = sdk::ClassLevel::kPod,
                         .is_mutable = false,
                         .classes = {{.name = "fast", .definition = "lane 1", .capacity = 2},
                                     {.name = "none", .definition = ""}},
                         .repairs = 3};
  sdk::ClassOptions options = {.unified = {{"lane.max", "7"}}, .oom_score_adj = -5};
  Status refreshed;
  Status applied;
  std::vector<std::string> calls;

  [[nodiscard]] sdk::ClassType List() const override { return type; }
  [[nodiscard]] StatusOr<sdk::ClassOptions> Resolve(const std::string& name) const override {
    return name == "fast" ? StatusOr<sdk::ClassOptions>(options)
                          : Errorf(StatusCode::kFailedPrecondition, "all lanes are closed");
  }
  Status Refresh(const std::set<std::string>& in_use) override {
    calls.push_back(fmt::format("refresh {}", fmt::join(in_use, ",")));
    return refreshed;
  }
  Status Apply(const sdk::ClassTarget& target, const std::string& from,
               const std::string& to) override {
    calls.push_back(fmt::format("{} {} {} {}->{}", target.key.container, target.runtime_id,
                                target.cgroups_path, from, to));
    return applied;
  }
  [[nodiscard]] StatusOr<std::string> ReadBack(const sdk::ClassTarget& target,
                                               const std::string& name) override {
    return target.runtime_id + " lacks " + name;
  }
  void Release(const sdk::ClassTarget& target) override {
    calls.push_back("release " + target.key.pod_uid);
  }
  [[nodiscard]] std::vector<sdk::ClassReading> Readings() override {
    return {{.class_name = "fast", .quantity = "cars", .value = 2.5}};
  }
};

/// A plugin without classes.
class Plain final : public sdk::ResourcePlugin {
 public:
  StatusOr<ResourceAllocation> Allocate(const ContainerRequest& /*request*/,
                                        const TopologyHint& /*hint*/) override {
    return ResourceAllocation{};
  }
};

/// Carries calls to one plugin as bytes, as a socket does.
class OnePlugin final : public Plugins {
 public:
  explicit OnePlugin(sdk::ResourcePlugin& plugin)
      : driver_(plugin, kType, sdk::MakeMemoryState()) {}

  bool registered = true;
  PluginInfo info = {.resource = kType, .live = true};

  [[nodiscard]] std::vector<PluginInfo> List() const override { return {}; }
  [[nodiscard]] std::optional<PluginInfo> Find(const std::string& /*resource*/) const override {
    return registered ? std::optional(info) : std::nullopt;
  }
  void MarkSuspect(const std::string& /*resource*/, const std::string& /*problem*/) override {}
  void Forget(const std::string& /*resource*/) override {}

 private:
  void Start(const std::string& /*resource*/, std::shared_ptr<calls::Call> call,
             Deadline /*deadline*/) override {
    for (const calls::ServedCall& served : calls::ClassCalls()) {
      if (served.method.path == std::string_view(call->method().path)) {
        const auto answer = served.answer(driver_, call->Request());
        answer.ok() ? call->Take({*answer}, machine_nodes_)
                    : call->Fail(answer.status(), calls::Blame::kRefusal);
      }
    }
  }

  sdk::PluginDriver driver_;
  const NumaMask machine_nodes_;
};

class PluginClassesTest : public testing::Test {
 protected:
  Lanes lanes_;
  OnePlugin plugins_{lanes_};
  PluginClasses classes_{kType, plugins_, milliseconds(500)};
  const sdk::ClassTarget target_{
      .key = {"pod", "main"}, .runtime_id = "id", .cgroups_path = "/pods/id"};
};

TEST_F(PluginClassesTest, WhatThePluginOffersArrives) {
  ASSERT_TRUE(IsOk(classes_.Refresh({"fast"})));
  sdk::ClassType want = lanes_.type;
  want.name = kType;
  want.classes[1].problem = "all lanes are closed";
  EXPECT_EQ(classes_.List(), want);
  const auto options = classes_.Resolve("fast");
  ASSERT_TRUE(IsOk(options.status()));
  EXPECT_EQ(*options, lanes_.options);
  EXPECT_EQ(MessageOf(classes_.Resolve("none").status()), "all lanes are closed");
  EXPECT_THAT(classes_.Readings(), ElementsAre(lanes_.Readings()[0]));
  EXPECT_THAT(lanes_.calls, ElementsAre("refresh fast"));
}

TEST_F(PluginClassesTest, CallsAboutContainersReachThePlugin) {
  ASSERT_TRUE(IsOk(classes_.Apply(target_, "slow", "fast")));
  classes_.Release(target_);
  EXPECT_THAT(lanes_.calls, ElementsAre("main id /pods/id slow->fast", "release pod"));
  EXPECT_EQ(classes_.ReadBack(target_, "fast").value_or("error"), "id lacks fast");
}

TEST_F(PluginClassesTest, ThePluginsErrorsKeepTheirCode) {
  lanes_.applied = Errorf(StatusCode::kNotFound, "it is gone");
  EXPECT_EQ(classes_.Apply(target_, "", "fast").code(), StatusCode::kNotFound);
}

TEST_F(PluginClassesTest, FailuresOfARefreshAreReportedBesideTheClasses) {
  lanes_.refreshed = Errorf(StatusCode::kUnavailable, "one lane is flooded");
  EXPECT_EQ(MessageOf(classes_.Refresh({})), "one lane is flooded");
  EXPECT_EQ(classes_.List().classes.size(), 2u);
}

TEST_F(PluginClassesTest, WhileThePluginIsNotRunningNoClassIsGivenAndTheListSaysWhy) {
  ASSERT_TRUE(IsOk(classes_.Refresh({})));
  plugins_.info.live = false;
  plugins_.info.problem = "it does not answer; start it again";
  EXPECT_THAT(classes_.List().problem,
              HasSubstr("is not running: it does not answer; start it again"));
  EXPECT_EQ(classes_.List().classes.size(), 2u);
  EXPECT_EQ(classes_.Apply(target_, "", "fast").code(), StatusCode::kUnavailable);
  EXPECT_EQ(classes_.ReadBack(target_, "fast").status().code(), StatusCode::kUnavailable);
}

TEST_F(PluginClassesTest, ATypeWhosePluginHasNotRegisteredIsListedWithoutClasses) {
  plugins_.registered = false;
  EXPECT_EQ(classes_.List().problem, "no plugin has registered as lanes.example.com; start it");
  EXPECT_EQ(classes_.Refresh({}).code(), StatusCode::kUnavailable);
  EXPECT_EQ(classes_.Resolve("fast").status().code(), StatusCode::kNotFound);
}

TEST_F(PluginClassesTest, AClassThatThePluginDoesNotOfferAnyMoreIsGoneThoughItIsInUse) {
  ASSERT_TRUE(IsOk(classes_.Refresh({})));
  lanes_.type.classes.pop_back();
  EXPECT_TRUE(IsOk(classes_.Refresh({"none"})));
  EXPECT_EQ(classes_.List().classes.size(), 1u);
}

TEST_F(PluginClassesTest, ATypeStaysAtItsLevel) {
  ASSERT_TRUE(IsOk(classes_.Refresh({})));
  lanes_.type.level = sdk::ClassLevel::kContainer;
  EXPECT_THAT(MessageOf(classes_.Refresh({})), HasSubstr("differs from before; restart qrmd"));
  EXPECT_EQ(classes_.List().level, sdk::ClassLevel::kPod);
}

TEST_F(PluginClassesTest, AnswersThatBreakTheProtocolAreRejected) {
  lanes_.type.classes[0].name = "../fast";
  EXPECT_THAT(MessageOf(classes_.Refresh({})), HasSubstr("'../fast' is not a class name"));
  lanes_.type.classes[0].name = "fast";
  lanes_.options.unified = {{"../lane.max", "7"}};
  EXPECT_THAT(MessageOf(classes_.Refresh({})), HasSubstr("'../lane.max' is not a cgroup file"));
}

TEST(PluginWithoutClassesTest, IsReportedAsTheWrongOne) {
  Plain plain;
  OnePlugin plugins(plain);
  PluginClasses classes(kType, plugins, milliseconds(500));
  const Status refused = classes.Refresh({});
  EXPECT_EQ(refused.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(refused), HasSubstr("it offers no classes"));
}

}  // namespace
}  // namespace qrm::manager::plugin_classes_test
