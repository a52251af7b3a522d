#include "scheduler/cache/packed_pod.h"

#include <string>

#include <gtest/gtest.h>

namespace qrm::scheduler::packed_pod_test {
namespace {

Pod MakePod(const std::string& uid) {
  return {.uid = uid,
          .pod_namespace = "shop",
          .name = "db-" + uid,
          .resource_version = "7",
          .node = "n1",
          .refused = true,
          .qos_class = "Burstable",
          .runtime_class = "kata",
          .labels = {{"app", "db"}, {"empty", ""}},
          .annotations = {{"note", std::string("a\0b", 3)}},
          .containers = {{.name = "init",
                          .kind = PodContainer::Kind::kSidecar,
                          .requests = {{"cpu", 0.1}, {"memory", 5e9}}},
                         {.name = "main"}},
          .overhead = {{"cpu", 0.25}}};
}

TEST(PackedPodTest, AllButTheVersionComesBack) {
  TextPool pool;
  Pod pod = MakePod("u1");
  const PackedPodPtr packed = Pack(pod, pool);
  pod.resource_version.clear();
  EXPECT_EQ(Unpack(*packed), pod);
}

TEST(PackedPodTest, PodsOfAWorkloadShareEqualParts) {
  TextPool pool;
  const PackedPodPtr one = Pack(MakePod("u1"), pool);
  const std::size_t texts = pool.size();
  const PackedPodPtr other = Pack(MakePod("u2"), pool);
  EXPECT_EQ(pool.size(), texts);
  EXPECT_EQ(one->needs, other->needs);
  EXPECT_EQ(one->labels, other->labels);
}

TEST(PackedPodTest, UnusedTextsAreDropped) {
  TextPool pool;
  const SharedText kept = pool.Share("kept");
  for (int i = 0; i < 10'000; ++i) {
    pool.Share(std::to_string(i));
  }
  EXPECT_LT(pool.size(), 200U);
  EXPECT_EQ(pool.Share("kept"), kept);
}

TEST(PackedPodTest, ResourcesAreNotNotifiedOfOtherVersionsAndRejections) {
  TextPool pool;
  Pod pod = MakePod("u1");
  const PackedPodPtr before = Pack(pod, pool);
  pod.resource_version = "8";
  EXPECT_EQ(*Pack(pod, pool), *before);
  pod.refused = false;
  EXPECT_NE(*Pack(pod, pool), *before);
  EXPECT_TRUE(SameToResources(*Pack(pod, pool), *before));
  pod.labels["app"] = "web";
  EXPECT_FALSE(SameToResources(*Pack(pod, pool), *before));
}

}  // namespace
}  // namespace qrm::scheduler::packed_pod_test
