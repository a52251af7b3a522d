// What `qrmctl events` has of each kind of change, also after a restart of qrmd, on a simulated
// runtime.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::test::events_test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kMachine[] = "machine: \"synthetic:package:1 [numa] core:8 pu:1\"\n";

std::string Keys(const std::string& pool) {
  return std::string(kMachine) + "plugins: {cpu: {pools: {online: {cpus: " + pool + "}}}}\n";
}

PodSpec Pod(const std::string& name, int64_t milli_cpus = 1000) {
  return {.name = name,
          .uid = "uid-" + name,
          .container = {.milli_cpus = milli_cpus, .memory_bytes = 1 << 20, .cpu_limit = true}};
}

class EventsTest : public testing::Test {
 protected:
  EventsTest() {
    std::ofstream(dir_ / "qrmd.yaml") << Keys("1-2");
    std::ofstream(dir_ / "memory.yaml") << kMachine;
  }
  void Start(std::size_t live) {
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = dir_ / "qrmd.yaml",
                      .nri_socket = runtime_.nri_socket(),
                      .cri_socket = runtime_.cri_socket(),
                      .builtin_plugins = "cpu",
                      .reconcile_period = "1s"});
    ASSERT_TRUE(IsOk(node_->Start(live)));
  }
  std::string Events(std::vector<std::string> arguments = {}) const {
    arguments.insert(arguments.begin(), "events");
    return node_->Qrmctl(std::move(arguments)).value_or("");
  }
  ::testing::AssertionResult Tells(const std::string& type, const std::string& what) const {
    std::string events;
    return Await([&] {
      events = Events({"--type", type});
      return events.find(what) != std::string::npos;
    })
               ? ::testing::AssertionSuccess()
               : ::testing::AssertionFailure() << events;
  }

  TempDir dir_;
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
};

TEST_F(EventsTest, TellWhatChangedAlsoAfterARestart) {
  Start(1);
  EXPECT_TRUE(Tells("restart", "starts; pods on record: 0"));
  ASSERT_TRUE(IsOk(node_->StartPlugin("memory", "memory", dir_ / "memory.yaml")));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web"))));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("db"))));
  ASSERT_TRUE(IsOk(runtime_.Resize("db", Pod("db", 2000).container)));
  EXPECT_TRUE(Tells("resize", "admitted"));
  ASSERT_TRUE(IsOk(runtime_.RemovePod("web")));
  EXPECT_TRUE(Tells("removal", "its allocations are released"));
  ASSERT_TRUE(node_->Qrmctl({"pool", "set", "online=1-3"}).ok());
  EXPECT_TRUE(Tells("pool", "pools of cpu set: online: 1-2 -> 1-3 (by uid "));
  std::ofstream(dir_ / "qrmd.yaml") << Keys("1-4");
  EXPECT_TRUE(Tells("reload", "plugins: {cpu: {pools: {online: {cpus: 1-2}}}} -> "));
  std::ofstream(dir_ / "qrmd.yaml") << Keys("odd");
  EXPECT_TRUE(Tells("reload", "configuration rejected; the previous one stays in force: "));
  std::ofstream(dir_ / "qrmd.yaml") << Keys("1-4");
  node_->KillPlugin("memory");
  EXPECT_TRUE(Tells("plugin", "is not running: "));
  ASSERT_TRUE(IsOk(node_->StartPlugin("memory", "memory", dir_ / "memory.yaml")));
  EXPECT_TRUE(Await([this] {  // registered, lost, and registered or running again
    const std::string events = Events({"--type", "plugin"});
    return std::count(events.begin(), events.end(), '\n') > 3;
  })) << Events();

  node_->KillDaemon();
  Start(1);
  EXPECT_THAT(
      Events(),
      AllOf(HasSubstr("starts; pods on record: 1"), ContainsRegex("resize +admitted +default +db"),
            ContainsRegex("removal +- +default +web"), HasSubstr("online: 1-2 -> 1-3"),
            HasSubstr("configuration rejected"), HasSubstr("is not running: ")));
  EXPECT_THAT(Events({"db"}),
              AllOf(HasSubstr("db"), Not(HasSubstr("web")), Not(HasSubstr("pool"))));
}

}  // namespace
}  // namespace qrm::test::events_test
