// CPU bandwidth by class, on directories that look like the cgroups of pods.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/kernel/knob.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::kernel::quota_provider_test {
namespace {

using test::IsOk;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kClasses[] = "  free: {quota: none}\n  half: {burst: 50%}\n";

class QuotaProviderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(dir_ / "cgroups/kubepods/pod1-2/c1");
    for (const char* cgroup : {kPod, kContainer}) {
      Put(cgroup, "cpu.max", "20000 100000");
      Put(cgroup, "cpu.max.burst", "0");
      Put(cgroup, "cpu.cfs_quota_us", "20000");
      Put(cgroup, "cpu.cfs_burst_us", "0");
    }
    Put(kAll, "cpu.max", "max 100000");
    // One cgroup below the root has each file, so that the machine is known to support it.
    Put("x", "cpu.max", "max 100000");
    Put("x", "cpu.max.burst", "0");
    Put("x", "cpu.cfs_quota_us", "-1");
    Put("x", "cpu.cfs_burst_us", "0");
  }

  void Put(const std::string& cgroup, const std::string& file, const std::string& value) {
    std::filesystem::create_directories(dir_ / ("cgroups/" + cgroup));
    std::ofstream(dir_ / ("cgroups/" + cgroup + "/" + file)) << value << '\n';
  }
  std::string Get(const std::string& cgroup, const std::string& file) const {
    std::ifstream opened(dir_ / ("cgroups/" + cgroup + "/" + file));
    std::string value;
    std::getline(opened, value);
    return value;
  }
  StatusOr<std::unique_ptr<sdk::ClassProvider>> TryMake(const std::string& classes,
                                                        bool is_v1 = false) {
    std::ofstream(dir_ / "fresh") << "classes:\n" << classes;
    std::filesystem::rename(dir_ / "fresh", dir_ / "quota.yaml");
    return MakeQuotaProvider(dir_ / "quota.yaml", {.files_root = dir_ / "cgroups", .is_v1 = is_v1});
  }
  std::unique_ptr<sdk::ClassProvider> Make(const std::string& classes, bool is_v1 = false) {
    auto made = TryMake(classes, is_v1);
    EXPECT_TRUE(IsOk(made.status()));
    return *std::move(made);
  }
  std::string DriftOf(sdk::ClassProvider& provider, const std::string& name) const {
    const auto drift = provider.ReadBack(target_, name);
    return drift.value_or(MessageOf(drift.status()));
  }

  static constexpr char kAll[] = "kubepods";
  static constexpr char kPod[] = "kubepods/pod1-2";
  static constexpr char kContainer[] = "kubepods/pod1-2/c1";
  test::TempDir dir_;
  const sdk::ClassTarget target_{
      .key = {"1-2", "c"}, .runtime_id = "id", .cgroups_path = "/kubepods/pod1-2/c1"};
};

TEST_F(QuotaProviderTest, LiftsTheQuotaOfTheContainerAndOfItsPod) {
  const auto provider = Make(kClasses);
  EXPECT_FALSE(provider->List().is_mutable);
  EXPECT_THAT(DriftOf(*provider, "free"), HasSubstr("pod1-2 has a quota of 20000 us"));
  ASSERT_TRUE(IsOk(provider->Apply(target_, "", "free")));
  EXPECT_EQ(Get(kContainer, "cpu.max"), "max");
  EXPECT_EQ(Get(kPod, "cpu.max"), "max");
  EXPECT_EQ(Get(kAll, "cpu.max"), "max 100000") << "that is not of a pod";
  EXPECT_THAT(DriftOf(*provider, "free"), IsEmpty());
}

TEST_F(QuotaProviderTest, SetsBurstToItsPartOfTheQuotaThatKubeletGave) {
  const auto provider = Make(kClasses);
  ASSERT_TRUE(IsOk(provider->Apply(target_, "", "half")));
  EXPECT_EQ(Get(kContainer, "cpu.max.burst"), "10000");
  EXPECT_EQ(Get(kPod, "cpu.max.burst"), "10000");
  EXPECT_EQ(Get(kContainer, "cpu.max"), "20000 100000") << "the quota stays";
  EXPECT_THAT(DriftOf(*provider, "half"), IsEmpty());
  Put(kContainer, "cpu.max", "40000 100000");
  EXPECT_THAT(DriftOf(*provider, "half"),
              HasSubstr("c1 has a quota of 40000 us and a burst of 10000 us, but the class is "
                        "burst 50%"))
      << "it was resized in place";
}

TEST_F(QuotaProviderTest, GivesNoBurstWhereThereIsNoQuota) {
  const auto provider = Make(kClasses);
  Put(kContainer, "cpu.max", "max 100000");
  ASSERT_TRUE(IsOk(provider->Apply(target_, "", "half")));
  EXPECT_EQ(Get(kContainer, "cpu.max.burst"), "0");
  EXPECT_EQ(Get(kPod, "cpu.max.burst"), "10000");
}

TEST_F(QuotaProviderTest, ABurstOfALostClassIsTakenBackAndALiftedQuotaSaysThatItStays) {
  const auto provider = Make(kClasses);
  ASSERT_TRUE(IsOk(provider->Apply(target_, "", "half")));
  ASSERT_TRUE(IsOk(provider->Apply(target_, "lost", "")));
  EXPECT_EQ(Get(kContainer, "cpu.max.burst") + Get(kPod, "cpu.max.burst"), "00");
  ASSERT_TRUE(IsOk(provider->Apply(target_, "", "free")));
  EXPECT_THAT(MessageOf(provider->Apply(target_, "lost", "")),
              HasSubstr("only kubelet knows the former one"));
}

TEST_F(QuotaProviderTest, UsesTheFilesOfVersion1) {
  const auto provider = Make(kClasses, true);
  ASSERT_TRUE(IsOk(provider->Apply(target_, "", "half")));
  EXPECT_EQ(Get(kContainer, "cpu.cfs_burst_us"), "10000");
  Put(kContainer, "cpu.cfs_burst_us", "0");
  Put(kPod, "cpu.cfs_burst_us", "0");
  ASSERT_TRUE(IsOk(provider->Apply(target_, "", "free")));
  EXPECT_EQ(Get(kContainer, "cpu.cfs_quota_us"), "-1");
  EXPECT_EQ(Get(kPod, "cpu.cfs_quota_us"), "-1");
  EXPECT_THAT(DriftOf(*provider, "free"), IsEmpty());
}

TEST_F(QuotaProviderTest, KnowsPodsByTheNamesThatSystemdGivesThem) {
  const auto provider = Make(kClasses);
  const std::string slice = "kubepods.slice/kubepods-pod1_2.slice";
  Put(slice, "cpu.max", "20000 100000");
  Put(slice + "/cri-containerd-c1.scope", "cpu.max", "20000 100000");
  ASSERT_TRUE(IsOk(provider->Apply({.key = {"1-2", "c"},
                                    .runtime_id = "id",
                                    .cgroups_path = "kubepods-pod1_2.slice:cri-containerd:c1"},
                                   "", "free")));
  EXPECT_EQ(Get(slice, "cpu.max"), "max");
  EXPECT_EQ(Get(slice + "/cri-containerd-c1.scope", "cpu.max"), "max");
}

TEST_F(QuotaProviderTest, DoesNotChangeOtherContainers) {
  const auto provider = Make(kClasses);
  ASSERT_TRUE(IsOk(provider->Apply(target_, "", "")));
  EXPECT_EQ(Get(kContainer, "cpu.max"), "20000 100000");
  EXPECT_THAT(DriftOf(*provider, ""), IsEmpty());
}

TEST_F(QuotaProviderTest, SaysThatAContainerHasGone) {
  const auto provider = Make(kClasses);
  std::filesystem::remove_all(dir_ / "cgroups/kubepods/pod1-2");
  EXPECT_EQ(provider->Apply(target_, "", "free").code(), StatusCode::kNotFound);
  EXPECT_EQ(provider->ReadBack(target_, "free").status().code(), StatusCode::kNotFound);
}

TEST_F(QuotaProviderTest, AKernelWithoutBurstRejectsThatClassAndNoOther) {
  std::filesystem::remove(dir_ / "cgroups/x/cpu.max.burst");
  const auto provider = Make(kClasses);
  EXPECT_TRUE(IsOk(provider->Resolve("free").status()));
  EXPECT_EQ(MessageOf(provider->Resolve("half").status()),
            "this machine has no cpu.max.burst: use a kernel from 5.14 on, or remove burst");
}

TEST_F(QuotaProviderTest, RejectsAFileWithoutAClassThatIsInUse) {
  const auto provider = Make(kClasses);
  TryMake("  free: {quota: none}\n").IgnoreError();
  EXPECT_THAT(MessageOf(provider->Refresh({"half"})),
              HasSubstr("it lacks class half, which is in use"));
  EXPECT_TRUE(IsOk(provider->Resolve("half").status())) << "the former file is in force";
  ASSERT_TRUE(IsOk(provider->Refresh({"free"})));
  EXPECT_THAT(MessageOf(provider->Resolve("half").status()), HasSubstr("there is no cpu-quota"));
}

TEST_F(QuotaProviderTest, RejectsWhatIsNotAClass) {
  for (const char* classes :
       {"  a: {}\n", "  a: {quota: none, burst: 50%}\n", "  a: {quota: half}\n",
        "  a: {burst: 0%}\n", "  a: {burst: 101%}\n", "  a: {burst: 50}\n", "  a: {cpu.max: max}\n",
        "  -a: {quota: none}\n", "  a: {quota: none}\n  a: {quota: none}\n"}) {
    EXPECT_EQ(TryMake(classes).status().code(), StatusCode::kInvalidArgument) << classes;
  }
}

}  // namespace
}  // namespace qrm::kernel::quota_provider_test
