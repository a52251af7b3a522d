// Types that are tables, on the cgroups of this machine.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/kernel/knob.h"
#include "plugins/kernel/thread_attributes.h"
#include "test/support/is_ok.h"
#include "test/support/resctrl/container_cgroup.h"
#include "test/support/temp_dir.h"

namespace qrm::kernel::knob_kernel_test {
namespace {

using test::ContainerCgroup;
using test::IsOk;
using test::TempDir;
using testing::HasSubstr;

constexpr char kCgroups[] = "/sys/fs/cgroup";

/// A container with cgroups of v1.
class KnobKernelTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = ContainerCgroup::Create();
    if (!made.ok()) {
      GTEST_SKIP() << MessageOf(made.status());
    }
    container_ = *std::move(made);
    for (const char* const controller : {"/cpu", "/memory"}) {
      std::error_code error;
      if (!std::filesystem::exists(std::string(kCgroups) + controller + "/tasks", error) ||
          !std::filesystem::create_directory(PathOf(controller), error)) {
        GTEST_SKIP() << "no cgroup v1 with " << controller;
      }
    }
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove(PathOf("/cpu"), ignored);
    std::filesystem::remove(PathOf("/memory"), ignored);
  }

  std::string PathOf(const std::string& controller) const {
    return kCgroups + controller + container_->Target().cgroups_path;
  }
  std::string Get(const std::string& file) const {
    std::ifstream opened(PathOf(file.starts_with("cpu") ? "/cpu" : "/memory") + "/" + file);
    std::string value;
    std::getline(opened, value);
    return value;
  }
  std::unique_ptr<sdk::ClassProvider> Make(const std::string& type, const std::string& classes) {
    std::ofstream(dir_ / "knobs.yaml") << "classes:\n" << classes;
    for (const KnobType& known : KnobTypes()) {
      if (known.name == type) {
        auto machine = FindKnobs(known.controller, kCgroups);
        machine.journal = dir_ / "knobs.json";
        return *MakeKnobProvider(known, dir_ / "knobs.yaml", machine);
      }
    }
    return nullptr;
  }

  TempDir dir_;
  std::unique_ptr<ContainerCgroup> container_;
};

TEST_F(KnobKernelTest, MemoryFilesAreSetReadBackAndReset) {
  const auto provider =
      Make("memory", "  low: {memory.soft_limit_in_bytes: 1Mi, memory.swappiness: 7}\n");
  const std::string swappiness = Get("memory.swappiness");
  ASSERT_TRUE(IsOk(provider->Apply(container_->Target(), "", "low")));
  EXPECT_EQ(Get("memory.soft_limit_in_bytes"), "1048576");
  EXPECT_EQ(Get("memory.swappiness"), "7");
  EXPECT_EQ(provider->ReadBack(container_->Target(), "low").value_or("error"), "");
  ASSERT_TRUE(IsOk(provider->Apply(container_->Target(), "low", "")));
  EXPECT_EQ(Get("memory.swappiness"), swappiness);
  EXPECT_EQ(provider->ReadBack(container_->Target(), "").value_or("error"), "");
}

TEST_F(KnobKernelTest, AnIdleContainerHasItsSharesBackAfterwards) {
  const auto provider = Make("cpu-scheduling", "  idle: {cpu.idle: 1}\n");
  std::ofstream(PathOf("/cpu") + "/cpu.shares") << 4096;
  ASSERT_TRUE(IsOk(provider->Apply(container_->Target(), "", "idle")));
  EXPECT_EQ(Get("cpu.idle"), "1");
  EXPECT_NE(Get("cpu.shares"), "4096");
  ASSERT_TRUE(IsOk(provider->Apply(container_->Target(), "idle", "")));
  EXPECT_EQ(Get("cpu.shares"), "4096");
}

TEST_F(KnobKernelTest, AForkStormHasItsNewClassWhollyWhenTheChangeIsDone) {
  const auto provider = Make("cpu-scheduling", "  low: {nice: 5, policy: idle}\n");
  container_->Run([] { test::ForkStorm(4); });
  ASSERT_TRUE(IsOk(provider->Apply(container_->Target(), "", "low")));
  EXPECT_EQ(provider->ReadBack(container_->Target(), "low").value_or("error"), "");
}

TEST_F(KnobKernelTest, ARealTimePolicyIsRejectedWhereContainersHaveNoBudget) {
  if (!std::filesystem::exists(std::string(kCgroups) + "/cpu/cpu.rt_runtime_us")) {
    GTEST_SKIP() << "this kernel gives real time without a budget";
  }
  const auto provider = Make("cpu-scheduling", "  fast: {policy: fifo 10}\n  slow: {nice: 1}\n");
  EXPECT_THAT(MessageOf(provider->Resolve("fast").status()), HasSubstr("needs a real-time budget"));
  EXPECT_TRUE(IsOk(provider->Resolve("slow").status()));
}

}  // namespace
}  // namespace qrm::kernel::knob_kernel_test
