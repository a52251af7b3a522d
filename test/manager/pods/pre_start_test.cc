#include "manager/pods/pre_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "test/support/answering_plugins.h"
#include "test/support/fake_snapshots.h"

namespace qrm::manager::pre_start_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A container with allocations of two plugins, of which "lane" wants to prepare its own.
class PreStartTest : public testing::Test {
 protected:
  PreStartTest() {
    checkpoint::ContainerRecord record;
    record.allocations = {{"cpu", {}}, {"lane", {}}, {"that came with cpu", {}}};
    checkpoint::Change change;
    change.put_containers.push_back(
        {{.uid = "uid", .pod_namespace = "default", .name = "web"}, "main", record});
    state_.Apply(change);
    plugins_.Set("cpu", {});
    plugins_.Set("other", {.options = {.pre_start_required = true}});
    Script(OkStatus());
  }
  void Script(Status prepares) {
    plugins_.Set("lane",
                 {.options = {.pre_start_required = true}, .prepares = std::move(prepares)});
  }
  Status Prepare(const std::string& container) {
    Status prepared = Errorf(StatusCode::kInternal, "not called");
    pre_start_.Prepare({"uid", container}, [&](const Status& status) { prepared = status; });
    return prepared;
  }

  test::AnsweringPlugins plugins_;
  test::FakeSnapshots state_;
  PreStart pre_start_{{.state = state_, .plugins = plugins_}, std::chrono::seconds(10)};
};

TEST_F(PreStartTest, AsksThePluginsOfTheContainerThatWantIt) {
  EXPECT_EQ(Prepare("main"), OkStatus());
  EXPECT_THAT(plugins_.calls(), ElementsAre("prepare lane uid/main"));
}

TEST_F(PreStartTest, AsksNoDriverAboutAContainerThatHasNothing) {
  EXPECT_EQ(Prepare("unknown"), OkStatus());
  EXPECT_THAT(plugins_.calls(), IsEmpty());
}

TEST_F(PreStartTest, FailsWithThePluginsSentence) {
  Script(Errorf(StatusCode::kFailedPrecondition, "lane 3 is broken; replace the card"));
  EXPECT_THAT(MessageOf(Prepare("main")),
              AllOf(HasSubstr("cannot start container main of pod default/web"),
                    HasSubstr("lane 3 is broken; replace the card")));
}

}  // namespace
}  // namespace qrm::manager::pre_start_test
