// The plugin on devices of this kernel, in network namespaces of the test.
#include "plugins/nic/kernel_watch.h"

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"
#include "plugins/nic/nic_plugin.h"
#include "test/plugins/example_machine.h"
#include "test/plugins/nic/test_namespace.h"
#include "test/plugins/plugin_driver.h"
#include "test/support/await.h"
#include "test/support/temp_dir.h"

namespace qrm::nic::kernel_watch_test {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::milliseconds;
using test::Await;
using test::Drive;
using test::ExampleMachine;
using test::Request;
using test::TestNamespace;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kProblem[] = "nic.qrm.io/problem";
/// So that only the kernel's notifications are noticed.
constexpr LookPeriods kNever = {.always = hours(1), .missing = hours(1)};

class KernelWatchTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { may_mount = test::OwnMounts(); }

  void SetUp() override {
    if (!may_mount) {
      GTEST_SKIP() << "only root may make network namespaces";
    }
    auto made = TestNamespace::Make(path_);
    if (!made.ok()) {
      GTEST_SKIP() << MessageOf(made.status());
    }
    namespace_ = *std::move(made);
  }

  /// NIC n0 of the namespace, a veth whose other end is n1, with address 192.0.2.1.
  void AddVeth() const {
    ASSERT_EQ(namespace_->AddVeth("n0", "n1"), 0);
    ASSERT_EQ(namespace_->SetUp("n0"), 0);
    ASSERT_EQ(namespace_->SetUp("n1"), 0);
    ASSERT_EQ(namespace_->AddAddress("n0", "192.0.2.1"), 0);
  }

  /// A plugin with NIC n0 of the namespace, and `keys` of it.
  std::unique_ptr<sdk::ResourcePlugin> Make(const std::string& keys = "numa-node: 0",
                                            LookPeriods periods = kNever) const {
    const auto config = ParseNicConfig(*config::Section::Parse(
        fmt::format("request: mbps\nfollow: all\nnics: [{{interface: n0, netns: {}, {}}}]", path_,
                    keys),
        "nic.yaml"));
    EXPECT_TRUE(config.ok()) << config.status();
    auto watch = std::make_unique<KernelWatch>(FollowedNamespaces(*config), periods);
    const NicFacts facts = watch->Read();
    auto plugin = MakeNicPlugin(*config, ExampleMachine(), facts, std::move(watch));
    EXPECT_TRUE(plugin.ok()) << plugin.status();
    return *std::move(plugin);
  }

  /// The reason for which the next container would be rejected; empty when it would be placed.
  static std::string Refusal(const Drive& drive) {
    auto& plugin = const_cast<sdk::ResourcePlugin&>(drive.plugin());
    return MessageOf(plugin.Hints(Request("next", "", "NIC", 1)).status());
  }
  static bool AwaitRefusal(const Drive& drive, const std::string& why) {
    return Await([&] { return Refusal(drive).find(why) != std::string::npos; });
  }
  static bool AwaitPlacing(const Drive& drive) {
    return Await([&] { return Refusal(drive).empty(); });
  }

  const test::TempDir dir_;
  const std::string path_ = dir_ / "ns1";
  std::unique_ptr<TestNamespace> namespace_;

 private:
  static inline bool may_mount = false;
};

TEST_F(KernelWatchTest, NewContainersAvoidANicWhoseLinkIsDown) {
  AddVeth();
  Drive drive(Make());
  ASSERT_TRUE(AwaitPlacing(drive)) << Refusal(drive);
  ASSERT_TRUE(drive.Admit(Request("pod1", "", "NIC", 1)).ok());

  ASSERT_EQ(namespace_->SetDown("n1"), 0);
  EXPECT_TRUE(AwaitRefusal(drive, "n0 on node 0: has no link"));
  drive.Reconcile();
  EXPECT_EQ(drive.Of("pod1").annotations.at(kProblem), "has no link");

  ASSERT_EQ(namespace_->SetDown("n0"), 0);
  EXPECT_TRUE(AwaitRefusal(drive, "n0 on node 0: is set down"));
  ASSERT_EQ(namespace_->SetUp("n0"), 0);
  ASSERT_EQ(namespace_->SetUp("n1"), 0);
  EXPECT_TRUE(AwaitPlacing(drive));
  drive.Reconcile();
  EXPECT_EQ(drive.Of("pod1").annotations.at(kProblem), "");

  ASSERT_EQ(namespace_->Delete("n0"), 0);
  EXPECT_TRUE(AwaitRefusal(drive, "n0 on node 0: there is no such interface"));
}

TEST_F(KernelWatchTest, FollowsADummyThatIsSetDown) {
  if (const int error = namespace_->AddDummy("n0"); error == EOPNOTSUPP) {
    GTEST_SKIP() << "this kernel has no dummy devices";
  }
  ASSERT_EQ(namespace_->SetUp("n0"), 0);
  const Drive drive(Make());
  ASSERT_TRUE(AwaitPlacing(drive)) << Refusal(drive);
  EXPECT_EQ(drive.plugin().Allocatable().capacity, 0) << "it has no speed that could be accounted";
  ASSERT_EQ(namespace_->SetDown("n0"), 0);
  EXPECT_TRUE(AwaitRefusal(drive, "is set down"));
}

TEST_F(KernelWatchTest, ContainersGetTheAddressThatTheNicHasNow) {
  AddVeth();
  Drive drive(Make());
  ASSERT_TRUE(AwaitPlacing(drive));
  ASSERT_EQ(drive.Admit(Request("pod1", "", "NIC", 1))->envs,
            (StringMap{{"AFFINITY_NIC_ADDR_IPV4", "192.0.2.1"}}));
  ASSERT_EQ(namespace_->AddAddress("n0", "192.0.2.2"), 0);
  ASSERT_EQ(namespace_->RemoveAddress("n0", "192.0.2.1"), 0);
  EXPECT_TRUE(Await([&] {
    drive.Reconcile();
    return drive.Of("pod1").envs.at("AFFINITY_NIC_ADDR_IPV4") == "192.0.2.2";
  }));
  EXPECT_EQ(drive.Admit(Request("pod2", "", "NIC", 1))->envs.at("AFFINITY_NIC_ADDR_IPV4"),
            "192.0.2.2");
}

TEST_F(KernelWatchTest, ANicWithoutItsConfiguredAddressIsAvoided) {
  AddVeth();
  const Drive drive(Make("ipv4: 192.0.2.1"));
  ASSERT_TRUE(AwaitPlacing(drive));
  ASSERT_EQ(namespace_->RemoveAddress("n0", "192.0.2.1"), 0);
  EXPECT_TRUE(AwaitRefusal(drive, "does not have its address 192.0.2.1"));
  ASSERT_EQ(namespace_->AddAddress("n0", "192.0.2.1"), 0);
  EXPECT_TRUE(AwaitPlacing(drive));
}

TEST_F(KernelWatchTest, ANamespaceThatIsRemovedIsReleased) {
  const auto other = TestNamespace::Make(dir_ / "ns2");
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_EQ(namespace_->AddVethTo("n0", **other, "far"), 0);
  ASSERT_EQ(namespace_->SetUp("n0"), 0);
  ASSERT_EQ((*other)->SetUp("far"), 0);
  const auto there = NamespaceSockets::Open(dir_ / "ns2");
  ASSERT_TRUE(there.ok()) << there.status();
  Drive drive(Make());
  ASSERT_TRUE(AwaitPlacing(drive)) << Refusal(drive);
  ASSERT_TRUE(drive.Admit(Request("pod1", "", "NIC", 1)).ok());

  namespace_->Remove();
  EXPECT_TRUE(AwaitRefusal(drive, "its network namespace " + path_ + " is gone"));
  EXPECT_TRUE(Await([&] { return !(*there)->Read()->contains("far"); }))
      << "the plugin keeps the namespace alive";
  drive.Reconcile();
  EXPECT_THAT(drive.Of("pod1").annotations.at(kProblem), HasSubstr("is gone"));
}

TEST_F(KernelWatchTest, ANamespaceThatIsRecreatedIsAnotherOne) {
  AddVeth();
  const Drive drive(Make("numa-node: 0", {.always = hours(1), .missing = milliseconds(20)}));
  ASSERT_TRUE(AwaitPlacing(drive));
  namespace_.reset();
  ASSERT_TRUE(AwaitRefusal(drive, "is gone"));
  namespace_ = *TestNamespace::Make(path_);
  EXPECT_TRUE(AwaitRefusal(drive, "there is no such interface"));
  AddVeth();
  EXPECT_TRUE(AwaitPlacing(drive)) << Refusal(drive);
}

TEST_F(KernelWatchTest, TheSpeedThatIsSetIsTheBandwidthToGive) {
  if (const int error = namespace_->AddTap("n0"); error != 0) {
    GTEST_SKIP() << "this machine has no tap devices: error " << error;
  }
  if (const int error = namespace_->SetSpeed("n0", 1000); error == EOPNOTSUPP) {
    GTEST_SKIP() << "this kernel has no tap devices whose speed can be set";
  }
  const Drive drive(Make("numa-node: 0", {.always = milliseconds(20)}));
  EXPECT_EQ(drive.plugin().Allocatable().capacity, 1000);
  ASSERT_EQ(namespace_->SetSpeed("n0", 2500), 0);
  EXPECT_TRUE(Await([&] { return drive.plugin().Allocatable().capacity == 2500; }));
}

TEST_F(KernelWatchTest, LooksIntoAnotherNamespaceAndStaysInItsOwn) {
  AddVeth();
  const fs::path own = fs::read_symlink("/proc/thread-self/ns/net");
  const auto sockets = NamespaceSockets::Open(path_);
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  const auto interfaces = (*sockets)->Read();
  ASSERT_TRUE(interfaces.ok()) << interfaces.status();
  EXPECT_THAT(interfaces->at("n0").ipv4, ElementsAre("192.0.2.1"));
  EXPECT_GT(interfaces->at("n0").speed_mbps, 0) << "that of a veth is the kernel's constant";
  EXPECT_FALSE((*NamespaceSockets::Open(""))->Read()->contains("n0"));
  EXPECT_EQ(fs::read_symlink("/proc/thread-self/ns/net"), own);
}

TEST_F(KernelWatchTest, WithoutTheRightToEnterNothingIsKnown) {
  AddVeth();
  fs::permissions(dir_.path(), fs::perms::all);
  Status entered;
  NicFacts facts;
  std::thread([&] {
    ::syscall(SYS_setresuid, 65534, 65534, 65534);  // of this thread alone
    entered = NamespaceSockets::Open(path_).status();
    facts = KernelWatch({path_}).Read();
  }).join();
  EXPECT_EQ(entered.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(MessageOf(entered), HasSubstr("give the program CAP_SYS_ADMIN"));
  EXPECT_FALSE(facts.contains(path_));
  EXPECT_TRUE(facts.contains(""));
}

TEST(NamespaceSocketsTest, AFileThatIsNotANamespaceIsNone) {
  const test::TempDir dir;
  EXPECT_EQ(IdOf(dir / "none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(NamespaceSockets::Open(dir.path()).status().code(), StatusCode::kNotFound);
}

TEST(NamespaceSocketsTest, ReadsLoopbackOfThisMachine) {
  const auto sockets = NamespaceSockets::Open("");
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  const auto interfaces = (*sockets)->Read();
  ASSERT_TRUE(interfaces.ok()) << interfaces.status();
  if (const auto loopback = interfaces->find("lo");
      loopback != interfaces->end() && loopback->second.up) {
    EXPECT_TRUE(loopback->second.has_link);
    EXPECT_THAT(loopback->second.ipv4, testing::Contains("127.0.0.1"));
  }
}

}  // namespace
}  // namespace qrm::nic::kernel_watch_test
