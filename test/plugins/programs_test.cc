// The plugins as separate processes, over their sockets: the samples' examples, kill -9, flags.
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/sdk/fake_manager.h"
#include "test/plugins/example_machine.h"
#include "test/support/child_process.h"
#include "test/support/temp_dir.h"

namespace qrm::programs_test {
namespace {

using sdk::FakeManager;
using test::ChildProcess;
using test::Request;
using testing::HasSubstr;

constexpr char kBin[] = QRM_BIN;

class ProgramsTest : public testing::Test {
 protected:
  ProgramsTest() : manager_(*FakeManager::Start(dir_.path())) {}

  std::unique_ptr<ChildProcess> Run(const std::string& plugin, const std::string& sample,
                                    const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {std::string(kBin) + "/qrm-plugin-" + plugin, "--config",
                                          "docs/samples/" + sample + "/" + plugin + ".yaml",
                                          "--state-dir", dir_.path()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<ChildProcess>(arguments, dir_ / (plugin + std::to_string(++runs_)));
  }

  std::unique_ptr<ChildProcess> Serve(const std::string& plugin, const std::string& sample) {
    return Run(plugin, sample, {"--plugins-registry-dir", manager_->plugins_dir()});
  }

  std::string Admit(const ContainerRequest& request) {
    const auto allocation = manager_->Admit(request);
    return allocation.ok() ? allocation->value : MessageOf(allocation.status());
  }

  test::TempDir dir_;
  std::unique_ptr<FakeManager> manager_;
  int runs_ = 0;
};

TEST_F(ProgramsTest, PlayTheThirdExample) {
  const auto cpu = Serve("cpu", "example3");
  const auto memory = Serve("memory", "example3");
  const auto nic = Serve("nic", "example3");
  for (const char* resource : {"cpu", "memory", "NIC"}) {
    ASSERT_TRUE(manager_->WaitForPlugin(resource).ok()) << resource;
  }
  EXPECT_EQ(Admit(Request("filler", "storage-service", "cpu", 38)), "2-39");
  EXPECT_EQ(Admit(Request("filler", "storage-service", "memory", 40e9)), "0");
  EXPECT_EQ(Admit(Request("pod1", "numa-enhancement", "cpu", 10)), "42-51");
  EXPECT_EQ(Admit(Request("pod1", "numa-enhancement", "memory", 20e9)), "1");
  EXPECT_EQ(Admit(Request("pod2", "numa-enhancement", "cpu", 10)), "52-61");
  ContainerRequest request = Request("pod1", "numa-enhancement", "NIC", 1);
  request.hint = TopologyHint{.nodes = {1}, .preferred = true};
  const auto allocation = manager_->Allocate(request);
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  EXPECT_EQ(allocation->envs, (StringMap{{"AFFINITY_NIC_ADDR_IPV6", "fdbd:dc05:3:155::20"}}));
  EXPECT_EQ(allocation->annotations,
            (StringMap{{"kubernetes.io/host-netns-path", "/var/run/netns/ns1"}}));
}

TEST_F(ProgramsTest, KeepPoolsAndAllocationsWhenKilled) {
  auto cpu = Serve("cpu", "example1");
  ASSERT_TRUE(manager_->WaitForPlugin("cpu").ok());
  EXPECT_EQ(Admit(Request("pod1", "online-micro_service", "cpu", 4)), "0-37,40-77");
  const auto pools = manager_->SetPools("cpu", {{"online", *CpuSet::Parse("0-13,40-53")},
                                                {"offline", *CpuSet::Parse("14-39,54-79")}});
  ASSERT_TRUE(pools.ok()) << pools.status();
  const auto before = manager_->ExportState("cpu");
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_THAT(*before, HasSubstr(R"("allocation_result": "0-13,40-53")"));

  cpu->Signal(SIGKILL);
  cpu->Wait();
  cpu = Serve("cpu", "example1");
  ASSERT_TRUE(manager_->WaitForPlugin("cpu", 2).ok());
  EXPECT_EQ(manager_->ExportState("cpu").value_or(""), *before);
  const auto reconciled = manager_->Reconcile("cpu");
  ASSERT_TRUE(reconciled.ok()) << reconciled.status();
  EXPECT_EQ(reconciled->at({"pod1-uid", "c0"}).value, "0-13,40-53");
}

TEST_F(ProgramsTest, PrintStateOnDiskAndEnd) {
  {
    const auto cpu = Serve("cpu", "example2");
    ASSERT_TRUE(manager_->WaitForPlugin("cpu").ok());
    ASSERT_EQ(Admit(Request("pod1", "storage-service", "cpu", 20)), "2-21");
    cpu->Signal(SIGTERM);
    EXPECT_EQ(cpu->Wait(), 0);
  }
  const auto print = Run("cpu", "example2", {"--print-state"});
  EXPECT_EQ(print->Wait(), 0);
  EXPECT_THAT(print->Output(), HasSubstr(R"("allocated_cpuset": "2-21")"));
}

TEST_F(ProgramsTest, RejectConfigurationThatIsNotTheirs) {
  ChildProcess memory(
      {std::string(kBin) + "/qrm-plugin-memory", "--config", "docs/samples/example3/nic.yaml"},
      dir_ / "memory");
  EXPECT_EQ(memory.Wait(), 2);
  EXPECT_THAT(memory.Output(), HasSubstr("docs/samples/example3/nic.yaml:"));
  const auto nic = Run("nic", "example1", {"--machine", "imaginary"});
  EXPECT_EQ(nic->Wait(), 2);
  EXPECT_THAT(nic->Output(), HasSubstr("imaginary"));
}

}  // namespace
}  // namespace qrm::programs_test
