// The line of each subsystem: its health, its facts and the next command.
#include "manager/observability/subsystems.h"

#include <string>

#include <gmock/gmock.h>

#include "manager/classes/class_choice.h"
#include "manager/registry/plugin_info.h"

namespace qrm::manager::subsystems_test {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

const std::vector<PluginInfo> kNoPlugins;
const std::vector<ClassTypeStatus> kNoClasses;

SubsystemStatus LineOf(Subsystem subsystem, const NodeStatus& status,
                       const std::vector<PluginInfo>& plugins = kNoPlugins,
                       const std::vector<ClassTypeStatus>& classes = kNoClasses) {
  return SubsystemsOf(status, {.plugins = plugins, .classes = classes, .pods = 2, .containers = 3})
      .at(static_cast<std::size_t>(subsystem));
}

TEST(SubsystemsTest, AHealthyNodeHasElevenLinesAndNothingToType) {
  const NodeStatus status{.state_path = "/var/lib/qrm/state"};
  const auto lines = SubsystemsOf(status, {.plugins = kNoPlugins, .classes = kNoClasses});
  ASSERT_EQ(lines.size(), kSubsystemCount);
  std::string names;
  for (const SubsystemStatus& line : lines) {
    EXPECT_EQ(line.health, Health::kOk) << ToString(line.subsystem);
    EXPECT_EQ(line.next, "");
    EXPECT_NE(line.about, "");
    names += std::string(ToString(line.subsystem)) + ",";
  }
  EXPECT_EQ(names,
            "qrmd,runtime,NRI,kubelet,plugins,drivers,classes,state,disk,API server,cluster,");
}

TEST(SubsystemsTest, AReasonMakesItsSubsystemFailOrDegradeAndNamesTheNextCommand) {
  NodeStatus status{.state_path = "/var/lib/qrm/state"};
  status.Degrade(Subsystem::kPlugins, "the plugin of nic is not running");
  status.Fail(Subsystem::kDisk, "the disk is full");
  status.Degrade(Subsystem::kDisk, "decisions are not saved");
  EXPECT_EQ(LineOf(Subsystem::kPlugins, status).health, Health::kDegraded);
  EXPECT_EQ(LineOf(Subsystem::kPlugins, status).next, "qrmctl plugins");
  EXPECT_EQ(LineOf(Subsystem::kDisk, status).health, Health::kFailing);
  EXPECT_EQ(LineOf(Subsystem::kDisk, status).next, "df -h /var/lib/qrm/state");
  EXPECT_EQ(LineOf(Subsystem::kQrmd, status).health, Health::kOk);
}

TEST(SubsystemsTest, AReasonWithoutASubsystemIsQrmdsOwn) {
  NodeStatus status;
  status.degraded_reasons = {"something new"};
  EXPECT_EQ(LineOf(Subsystem::kQrmd, status).health, Health::kDegraded);
  status.not_ready_reasons = {"something worse"};
  EXPECT_EQ(LineOf(Subsystem::kQrmd, status).health, Health::kFailing);
}

TEST(SubsystemsTest, PluginsAndDriversAreCountedByState) {
  const std::vector<PluginInfo> plugins = {{.resource = "cpu", .live = true},
                                           {.resource = "memory", .live = true, .problem = "odd"},
                                           {.resource = "nic"},
                                           {.resource = "cci.qrm.io/x", .live = true}};
  EXPECT_EQ(LineOf(Subsystem::kPlugins, {}, plugins).about, "1 live, 1 suspect, 1 not running");
  EXPECT_EQ(LineOf(Subsystem::kDrivers, {}, plugins).about, "1 live");
  EXPECT_EQ(LineOf(Subsystem::kDrivers, {}).about, "none");
}

TEST(SubsystemsTest, TheStateCountsContainersThatLackSomething) {
  NodeStatus status;
  status.unplaced_containers = 1;
  status.pending_containers = 2;
  EXPECT_EQ(LineOf(Subsystem::kState, status).about,
            "2 pods with 3 containers, 1 unpinned, 2 pending");
}

TEST(SubsystemsTest, KubeletsLineNamesTheSourceOfRequests) {
  NodeStatus status;
  EXPECT_EQ(LineOf(Subsystem::kKubelet, status).about, "requests estimated");
  status.requests.source = "kubelet-url";
  EXPECT_EQ(LineOf(Subsystem::kKubelet, status).about, "requests from kubelet-url");
}

TEST(RequestsStatusTest, EstimatesAreAProblemUnlessTheyAreConfigured) {
  EXPECT_THAT(RequestsStatus{}.problem(),
              AllOf(HasSubstr("extended resources"), HasSubstr("feature gate PodsAPI"),
                    HasSubstr("kubelet-url")));
  EXPECT_THAT(RequestsStatus{.uses_url = true}.problem(),
              AllOf(HasSubstr("kubelet-url does not answer"), testing::Not(HasSubstr("PodsAPI"))));
  EXPECT_EQ(RequestsStatus{.accepted = true}.problem(), "");
  EXPECT_EQ(RequestsStatus{.source = "kubelet-url"}.problem(), "");
}

TEST(HealthWatchTest, RemembersSinceWhenASubsystemIsAsItIs) {
  const std::chrono::steady_clock::time_point start;
  HealthWatch watch;
  std::vector<SubsystemStatus> lines = {{.subsystem = Subsystem::kDisk},
                                        {.subsystem = Subsystem::kNri}};
  watch.Note(start, lines);
  lines[0].health = Health::kFailing;
  watch.Note(start + seconds(5), lines);
  watch.Note(start + seconds(9), lines);
  EXPECT_EQ(lines[0].since, start + seconds(5));
  EXPECT_EQ(lines[1].since, start);
}

}  // namespace
}  // namespace qrm::manager::subsystems_test
