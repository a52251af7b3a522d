// The types of classes that qrmd makes from its configuration and from its state.
#include "manager/daemon/class_providers.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::class_providers_test {
namespace {

using test::IsOk;

// Cgroups of v2, with a container that has some files.
class ClassProvidersTest : public testing::Test {
 protected:
  ClassProvidersTest() {
    std::filesystem::create_directories(dir_ / "cgroups/c");
    Write("cgroups/cgroup.controllers", "cpu memory");
    for (const char* file : {"cpu.max", "cpu.max.burst", "memory.high"}) {
      Write(std::string("cgroups/c/") + file, "max");
    }
  }
  std::string Write(const std::string& file, const std::string& text) {
    std::ofstream(dir_ / file) << text << '\n';
    return dir_ / file;
  }
  std::string Root() const { return dir_ / "cgroups"; }

  test::TempDir dir_;
};

TEST_F(ClassProvidersTest, ATypeThatWasRemovedWhileInUseStaysWithoutClasses) {
  checkpoint::Change change;
  change.put_containers.push_back({{.uid = "uid", .pod_namespace = "default", .name = "web"},
                                   "main",
                                   {.classes = {{"memory", "batch"}, {"oom", ""}}}});
  const checkpoint::NodeState state = checkpoint::NodeState().With(std::move(change));
  ClassBook::Providers providers;
  AddRetiredTypes({.enabled = true}, {Root(), ""}, state, providers);
  ASSERT_EQ(providers.size(), 1U);
  EXPECT_EQ(providers.front()->List().name, "memory");
  EXPECT_TRUE(providers.front()->List().classes.empty());
  EXPECT_EQ(providers.front()->List().problem, "");
  AddRetiredTypes({.enabled = false}, {Root(), ""}, state, providers);
  EXPECT_EQ(providers.size(), 1U) << "switched off, nothing changes in the kernel";
}

TEST_F(ClassProvidersTest, ClassesOfCpuQuotaAndBurstOfCpuSchedulingAreRivals) {
  ClassesOptions options{.enabled = true};
  options.types["cpu-quota"].config_file = Write("quota", "classes: {bursty: {burst: 50%}}");
  options.types["cpu-scheduling"].config_file =
      Write("scheduling", "classes: {batch: {cpu.max.burst: 1000}, calm: {}}");
  auto providers = MakeClassProviders(options, {Root(), ""});
  ASSERT_TRUE(IsOk(providers.status()));
  const ClassBook book(options, *std::move(providers));
  const auto types = book.Types();
  const auto& scheduling = types->at(1);
  ASSERT_EQ(scheduling.type.name, "cpu-scheduling");
  for (const char* name : {"batch", "calm"}) {  // calm resets the burst
    EXPECT_THAT(MessageOf(CheckRivals(*types, scheduling, name, {{"cpu-quota", "bursty"}})),
                testing::HasSubstr("both set cpu.max.burst"));
  }
}

}  // namespace
}  // namespace qrm::manager::class_providers_test
