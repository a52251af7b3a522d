#include "checkpoint/shared_parts.h"

#include <memory>

#include <gtest/gtest.h>

#include "checkpoint/store.h"
#include "test/checkpoint/sample_state.h"
#include "test/support/temp_dir.h"

namespace qrm::checkpoint::shared_parts_test {
namespace {

void ExpectAlike(const NodeState& state, const std::string& a, const std::string& b) {
  const PodRecord& first = *state.FindPod(a);
  const PodRecord& second = *state.FindPod(b);
  EXPECT_EQ(&first.meta.pod_namespace.str(), &second.meta.pod_namespace.str());
  EXPECT_TRUE(first.meta.labels.SharesWith(second.meta.labels));
  EXPECT_TRUE(first.meta.annotations.SharesWith(second.meta.annotations));
  const ContainerRecord& one = *first.containers.at("main");
  const ContainerRecord& other = *second.containers.at("main");
  EXPECT_TRUE(one.requests.SharesWith(other.requests));
  EXPECT_TRUE(one.applied.SharesWith(other.applied));
  for (const auto& [resource, allocation] : one.allocations) {
    EXPECT_TRUE(allocation.SharesWith(other.allocations.at(resource))) << resource;
  }
}

TEST(SharedPartsTest, RecordsThatAreAlikeAreInMemoryOnce) {
  const test::TempDir dir;
  const OpenedStore opened = *OpenSqliteStore(dir.path());
  ASSERT_TRUE(
      opened.store
          ->Commit({.put_containers = {test::SampleContainer("a"), test::SampleContainer("b")}})
          .ok());
  ASSERT_TRUE(opened.store->Commit({.put_containers = {test::SampleContainer("c")}}).ok());
  ExpectAlike(opened.store->state(), "a", "b");
  ExpectAlike(opened.store->state(), "a", "c");
}

TEST(SharedPartsTest, SoAreThoseThatWereRestored) {
  const test::TempDir dir;
  ASSERT_TRUE(
      OpenSqliteStore(dir.path())
          ->store
          ->Commit({.put_containers = {test::SampleContainer("a"), test::SampleContainer("b")}})
          .ok());
  const OpenedStore again = *OpenSqliteStore(dir.path());
  ExpectAlike(again.state, "a", "b");
  ASSERT_TRUE(again.store->Commit({.put_containers = {test::SampleContainer("c")}}).ok());
  ExpectAlike(again.store->state(), "a", "c");
}

TEST(SharedPartsTest, ChangesNothingButWhereItIs) {
  const Change before{.put_containers = {test::SampleContainer("a"), test::SampleContainer("b")}};
  Change after = before;
  SharedParts().Share(after);
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace qrm::checkpoint::shared_parts_test
