// Acknowledged allocations are loaded again; damage never stops the plugin.
#include "plugins/sdk/plugin_state.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gmock/gmock.h>

#include "checkpoint/sqlite/sqlite_db.h"
#include "test/plugins/sdk/counting_plugin.h"
#include "test/support/lossy_disk.h"
#include "test/support/temp_dir.h"

namespace qrm::sdk::plugin_state_test {
namespace {

using test::CpuRequest;
using testing::IsEmpty;
using testing::Key;
using testing::UnorderedElementsAre;

Grants GrantsFor(const std::vector<ContainerRequest>& requests) {
  Grants grants;
  int cpu = 0;
  for (const ContainerRequest& request : requests) {
    grants.emplace(request.key, Grant{request, PinCpus({cpu++})});
  }
  return grants;
}

class PluginStateTest : public testing::Test {
 protected:
  std::unique_ptr<PluginState> Open(const std::string& boot = "first boot") {
    StatusOr<std::unique_ptr<PluginState>> state = OpenPluginState(path_, boot);
    EXPECT_TRUE(state.ok()) << state.status();
    return *std::move(state);
  }
  StoredState Reload(const std::string& boot = "first boot") { return *Open(boot)->Load(); }

  test::TempDir dir_;
  const std::string path_ = dir_ / "state/cpu_plugin.db";
};

TEST_F(PluginStateTest, NewStateIsEmpty) {
  const StoredState stored = Reload();
  EXPECT_THAT(stored.grants, IsEmpty());
  EXPECT_FALSE(stored.saved.has_value());
}

TEST_F(PluginStateTest, CommittedGrantsComeBackWhole) {
  ContainerRequest request = CpuRequest("a", "main", 2.5);
  request.hint = TopologyHint{.nodes = {0, 1}, .preferred = true};
  request.annotations = {{"k", "v"}};
  ResourceAllocation allocation = PinCpus(CpuSet::Range(0, 2));
  allocation.envs = {{"NAME", "value"}};
  allocation.amount_by_node = {{0, 2}, {1, 1}};
  allocation.exclusive = true;
  const Grants grants = {
      {request.key,
       {request, allocation, std::make_shared<const ResourceAllocation>(PinCpus({9}))}}};
  ASSERT_TRUE(Open()->Commit({.granted = grants, .saved = std::string("own\0state", 9)}).ok());

  const StoredState stored = Reload();
  EXPECT_EQ(stored.grants, grants);
  EXPECT_EQ(stored.saved, std::string("own\0state", 9));
}

TEST_F(PluginStateTest, RemovedContainersAndPodsStayRemoved) {
  const auto state = Open();
  ASSERT_TRUE(
      state
          ->Commit({.granted = GrantsFor({CpuRequest("a", "one", 1), CpuRequest("a", "two", 1),
                                          CpuRequest("b", "one", 1), CpuRequest("c", "one", 1)})})
          .ok());
  EXPECT_TRUE(state->Commit({.removed = {{"a", "one"}}}).ok());
  EXPECT_TRUE(state->Commit({.removed_pod = "b"}).ok());
  EXPECT_TRUE(state->Commit({.removed_pod = "never seen"}).ok());
  EXPECT_THAT(Reload().grants,
              UnorderedElementsAre(Key(ContainerKey{"a", "two"}), Key(ContainerKey{"c", "one"})));
}

TEST_F(PluginStateTest, OnlyWhatTheManagerSetsRightCostsNoSync) {
  const auto first = GrantsFor({CpuRequest("a", "one", 1)});
  const auto second = GrantsFor({CpuRequest("b", "one", 1)});
  ASSERT_TRUE(Open()->Commit({.granted = first}).ok());
  const test::LossyDisk disk;
  ASSERT_EQ(sqlite3_vfs_register(sqlite3_vfs_find(disk.name().c_str()), /*makeDflt=*/1), SQLITE_OK);
  const auto state = Open();
  ASSERT_TRUE(state->Commit({.granted = second}).ok());  // the log begins
  const int before = disk.syncs();
  ASSERT_TRUE(state->Commit({.removed = {{"a", "one"}}}).ok());
  EXPECT_EQ(disk.syncs(), before);
  ASSERT_TRUE(state->Commit({.removed_pod = "b", .saved = "own"}).ok());
  EXPECT_EQ(disk.syncs(), before + 1);
  ASSERT_TRUE(state->Commit({.granted = first, .removed_pod = "b"}).ok());
  EXPECT_EQ(disk.syncs(), before + 2);
  ASSERT_TRUE(state->Commit({.granted = first, .manager_teaches = true}).ok());
  EXPECT_EQ(disk.syncs(), before + 3) << "from now on the machine's start counts";
  ASSERT_TRUE(state->Commit({.granted = second, .manager_teaches = true}).ok());
  EXPECT_EQ(disk.syncs(), before + 3);
  ASSERT_TRUE(state->Commit({.granted = second, .saved = "other", .manager_teaches = true}).ok());
  EXPECT_EQ(disk.syncs(), before + 4);
}

TEST_F(PluginStateTest, GrantsOfAManagerThatResyncsAreVoidAfterARestartOfTheMachine) {
  const auto first = GrantsFor({CpuRequest("a", "one", 1)});
  const auto second = GrantsFor({CpuRequest("b", "one", 1)});
  ASSERT_TRUE(Open()->Commit({.granted = first, .saved = "own", .manager_teaches = true}).ok());
  EXPECT_EQ(Reload().grants, first) << "only the plugin was restarted";
  EXPECT_THAT(Reload("second boot").grants, IsEmpty());
  EXPECT_EQ(Reload("second boot").saved, "own");
  EXPECT_EQ(Reload().grants, first) << "reading changes nothing";

  ASSERT_TRUE(Open("second boot")->Commit({.granted = second, .manager_teaches = true}).ok());
  EXPECT_EQ(Reload("second boot").grants, second);
  EXPECT_THAT(Reload().grants, IsEmpty());
}

TEST_F(PluginStateTest, VoidGrantsAreDroppedBeforeTheManagerResyncs) {
  ASSERT_TRUE(
      Open()
          ->Commit({.granted = GrantsFor({CpuRequest("a", "one", 1)}), .manager_teaches = true})
          .ok());
  ASSERT_TRUE(Open("second boot")->Commit({.removed_pod = "z"}).ok());
  EXPECT_THAT(Reload("second boot").grants, IsEmpty());
}

TEST_F(PluginStateTest, GrantsOfAnotherManagerOutliveTheMachinesStart) {
  const auto grants = GrantsFor({CpuRequest("a", "one", 1)});
  const auto more = GrantsFor({CpuRequest("b", "one", 1)});
  ASSERT_TRUE(Open()->Commit({.granted = grants}).ok());
  EXPECT_EQ(Reload("second boot").grants, grants);
  ASSERT_TRUE(Open()->Commit({.granted = more, .manager_teaches = true}).ok());
  ASSERT_TRUE(Open()->Commit({.removed_pod = "b"}).ok());  // by a manager that does not resync
  EXPECT_EQ(Reload("second boot").grants, grants);
}

TEST_F(PluginStateTest, WithoutAKnownStartOfTheMachineEveryGrantIsSynced) {
  const auto grants = GrantsFor({CpuRequest("a", "one", 1)});
  const auto more = GrantsFor({CpuRequest("b", "one", 1)});
  ASSERT_TRUE(Open("")->Commit({.granted = grants, .manager_teaches = true}).ok());
  EXPECT_EQ(Reload("second boot").grants, grants);
  const test::LossyDisk disk;
  ASSERT_EQ(sqlite3_vfs_register(sqlite3_vfs_find(disk.name().c_str()), /*makeDflt=*/1), SQLITE_OK);
  const auto state = Open("");
  ASSERT_TRUE(state->Commit({.granted = more}).ok());  // the log begins
  const int before = disk.syncs();
  ASSERT_TRUE(state->Commit({.granted = grants, .manager_teaches = true}).ok());
  EXPECT_EQ(disk.syncs(), before + 1);
  EXPECT_FALSE(CurrentBoot().empty()) << "which is the usual one";
}

TEST_F(PluginStateTest, DamagedFileIsMovedAsideAndANewOneBegun) {
  std::filesystem::create_directories(dir_ / "state");
  std::ofstream(path_) << std::string(8192, 'x');
  EXPECT_THAT(Reload().grants, IsEmpty());
  int aside = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir_ / "state")) {
    aside += entry.path().string().find(".aside-") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(aside, 1);
  EXPECT_TRUE(Open()->Commit({.granted = GrantsFor({CpuRequest("a", "one", 1)})}).ok());
  EXPECT_EQ(Reload().grants.size(), 1U);
}

TEST_F(PluginStateTest, FileThatIsRemovedIsDataLossAndRecreated) {
  const Grants grants = GrantsFor({CpuRequest("a", "one", 1), CpuRequest("b", "one", 1)});
  const auto state = Open();
  ASSERT_TRUE(state->Commit({.granted = grants}).ok());
  std::filesystem::remove_all(dir_ / "state");
  EXPECT_EQ(state->Commit({.removed_pod = "a"}).code(), StatusCode::kDataLoss);
  EXPECT_TRUE(state->BeginAnew({.granted = grants, .saved = "own"}).ok());
  EXPECT_TRUE(state->Commit({.removed_pod = "b"}).ok());
  const StoredState stored = Reload();
  EXPECT_THAT(stored.grants, UnorderedElementsAre(Key(ContainerKey{"a", "one"})));
  EXPECT_EQ(stored.saved, "own");
}

TEST_F(PluginStateTest, ForeignStateUnderItsNameIsMovedAside) {
  const auto state = Open();
  std::filesystem::remove_all(dir_ / "state");
  ASSERT_TRUE(Open()->Commit({.granted = GrantsFor({CpuRequest("z", "one", 1)})}).ok());
  const Grants grants = GrantsFor({CpuRequest("a", "one", 1)});
  EXPECT_EQ(state->Commit({.granted = grants}).code(), StatusCode::kDataLoss);
  EXPECT_TRUE(state->BeginAnew({.granted = grants}).ok());
  EXPECT_EQ(Reload().grants, grants);
}

TEST_F(PluginStateTest, UnreadableRowCostsOnlyItself) {
  const Grants grants = GrantsFor({CpuRequest("a", "one", 1), CpuRequest("b", "one", 1)});
  ASSERT_TRUE(Open()->Commit({.granted = grants}).ok());
  {
    auto db = checkpoint::SqliteDb::Open(path_, {.application_id = 0x51524d50, .steps = {""}});
    ASSERT_TRUE(db.ok()) << db.status();
    ASSERT_TRUE(db->Execute("UPDATE grants SET allocation = x'ffff' WHERE pod_uid = 'a'").ok());
  }
  EXPECT_THAT(Reload().grants, UnorderedElementsAre(Key(ContainerKey{"b", "one"})));
}

TEST_F(PluginStateTest, DirectoryThatCannotBeMadeIsAnError) {
  std::ofstream(dir_ / "state") << "a file";
  EXPECT_FALSE(OpenPluginState(path_).ok());
}

}  // namespace
}  // namespace qrm::sdk::plugin_state_test
