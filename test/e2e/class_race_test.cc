// How many containers have a class of limited capacity, while pods race for it and qrmd is killed,
// on a simulated runtime.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::test::class_race_test {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kCapacity = 2;
constexpr int kPods = 5;
constexpr int kRounds = 5;

PodSpec Pod(int number) {
  const std::string name = "p" + std::to_string(number);
  return {.name = name,
          .uid = "uid-" + name,
          .annotations = {{"blockio.resources.alpha.kubernetes.io/default", "scarce"}},
          .container = {.name = "main"}};
}

/// Runs each of `pods` once, in its thread, as kubelet does. While qrmd is not running they run
/// without its answer.
class Race {
 public:
  Race(SimulatedRuntime& runtime, const std::vector<int>& pods) {
    for (const int pod : pods) {
      threads_.emplace_back([this, &runtime, pod] {
        const Status ran = runtime.RunPod(Pod(pod));
        (ran.ok() ? ran_ : refused_) += 1;
        EXPECT_TRUE(ran.ok() ||
                    MessageOf(ran).find("the class is full (capacity ") != std::string::npos ||
                    !qrmd_lives_)
            << MessageOf(ran);
      });
    }
  }
  ~Race() { Finish(); }
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;

  void QrmdDies() { qrmd_lives_ = false; }
  int answered() const { return ran_ + refused_; }
  /// How many run.
  int Finish() {
    for (std::thread& thread : threads_) {
      thread.join();
    }
    threads_.clear();
    return ran_;
  }

 private:
  std::atomic<bool> qrmd_lives_{true};
  std::atomic<int> ran_{0};
  std::atomic<int> refused_{0};
  std::vector<std::thread> threads_;  // last: they use the others
};

class ClassRaceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(dir_ / "cgroup");
    std::ofstream(dir_ / "cgroup/cgroup.controllers") << "io";
    std::ofstream(dir_ / "blockio.yaml")
        << "Classes: {scarce: [{Devices: [/dev/qrm-no-such-disk*], ThrottleWriteBps: 4Mi}]}\n";
    std::ofstream(dir_ / "qrmd.yaml")
        << "machine: \"synthetic:package:1 [numa] core:4 pu:1\"\nqos-classes: true\n"
        << "class-types: {blockio: {config-file: " << dir_ / "blockio.yaml"
        << ", classes: {scarce: {namespaces: [\"*\"], capacity: " << kCapacity << "}}}}\n";
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = dir_ / "qrmd.yaml",
                      .nri_socket = runtime_.nri_socket(),
                      .cri_socket = runtime_.cri_socket(),
                      .reconcile_period = "500ms",
                      .flags = {"--cgroup-root=" + dir_ / "cgroup"}});
    ASSERT_TRUE(IsOk(node_->Start(0)));
  }

  /// The pods that have the class by qrmd's record.
  std::set<std::string> Holders() const {
    std::set<std::string> holders;
    const v1::ListPodsResponse list = node_->ListPods().value_or(v1::ListPodsResponse());
    for (const v1::Pod& pod : list.pods()) {
      for (const v1::Container& container : pod.containers()) {
        if (container.classes().contains("blockio") && !container.classes().at("blockio").empty()) {
          holders.insert(pod.name());
        }
      }
    }
    return holders;
  }
  void RemovePods(const std::set<std::string>& kept) {
    for (int pod = 0; pod < kPods; ++pod) {
      if (!kept.contains(Pod(pod).name)) {
        runtime_.RemovePod(Pod(pod).name).IgnoreError();  // if it runs
      }
    }
  }

  const TempDir dir_;
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
};

TEST_F(ClassRaceTest, NeverMoreHaveAClassThanItsCapacityThoughQrmdIsKilled) {
  for (int round = 0; round < kRounds; ++round) {
    {
      Race race(runtime_, {0, 1, 2, 3, 4});
      Await([&] { return race.answered() >= round; });  // from none to almost all of them
      race.QrmdDies();
      node_->KillDaemon();
    }
    ASSERT_TRUE(IsOk(node_->Start(0)));
    const std::set<std::string> holders = Holders();
    EXPECT_LE(holders.size(), kCapacity) << "round " << round;
    RemovePods(holders);
    std::vector<int> others;
    for (int pod = 0; pod < kPods; ++pod) {
      if (!holders.contains(Pod(pod).name)) {
        others.push_back(pod);
      }
    }
    Race(runtime_, others).Finish();
    EXPECT_EQ(Holders().size(), kCapacity) << "round " << round;
    RemovePods({});
    ASSERT_TRUE(Await([&] { return Holders().empty(); }));
  }
}

TEST_F(ClassRaceTest, AFreedPlaceInAClassIsTakenByExactlyOneContainer) {
  EXPECT_EQ(Race(runtime_, {0, 1, 2, 3, 4}).Finish(), static_cast<int>(kCapacity));
  const std::set<std::string> before = Holders();
  ASSERT_EQ(before.size(), kCapacity);
  ASSERT_TRUE(IsOk(runtime_.RemovePod(*before.begin())));
  std::vector<int> others;
  for (int pod = 0; pod < kPods; ++pod) {
    if (!before.contains(Pod(pod).name)) {
      others.push_back(pod);
    }
  }
  EXPECT_EQ(Race(runtime_, others).Finish(), 1);
  EXPECT_EQ(Holders().size(), kCapacity);
  EXPECT_THAT(MessageOf(runtime_.RunPod(Pod(kPods))), HasSubstr("the class is full (capacity 2)"));
}

}  // namespace
}  // namespace qrm::test::class_race_test
