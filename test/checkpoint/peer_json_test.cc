// Migration from and to the peers' file: verified, whole, and the same bytes each time.
#include "checkpoint/peer_json.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/checkpoint/sample_state.h"

namespace qrm::checkpoint::peer_json_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// The peers' published vector: entries and the checksum that they must have.
constexpr const char* kPublished =
    R"({"Data":{"PodResourceEntries":[)"
    R"({"PodUID":"62c9e5d2-b2a9-496f-a1eb-ad0f4f02ba5c","ContainerName":"testcontainer",)"
    R"("ResourceName":"cpu","AllocationInfo":"{\"oci_property_name\":\"CpusetCpus\",)"
    R"(\"is_scalar_resource\":true,\"allocated_quantity\":2,\"allocation_result\":\"0-1\",)"
    R"(\"resource_hints\":{\"hints\":[{\"nodes\":[0],\"preferred\":true}]}}"},)"
    R"({"PodUID":"62c9e5d2-b2a9-496f-a1eb-ad0f4f02ba5c","ContainerName":"testcontainer",)"
    R"("ResourceName":"memory","AllocationInfo":"{\"oci_property_name\":\"CpusetMems\",)"
    R"(\"is_scalar_resource\":true,\"allocated_quantity\":4294967296,\"allocation_result\":\"0\",)"
    R"(\"resource_hints\":{\"hints\":[{\"nodes\":[0],\"preferred\":true}]}}"}]},)"
    R"("Checksum":4217255668})";

const ContainerKey kPublishedKey = {.pod_uid = "62c9e5d2-b2a9-496f-a1eb-ad0f4f02ba5c",
                                    .container = "testcontainer"};

TEST(PeerJsonTest, ReadsThePublishedVectorWithItsHints) {
  const StatusOr<PeerCheckpoint> read = ParsePeerCheckpoint(kPublished);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->skipped, IsEmpty());

  const AllocationByResource& allocations = read->allocations.at(kPublishedKey);
  EXPECT_THAT(allocations, SizeIs(2));
  const ResourceAllocation& cpu = allocations.at("cpu");
  EXPECT_EQ(cpu.oci_property, kCpusetCpus);
  EXPECT_EQ(cpu.value, "0-1");
  EXPECT_EQ(cpu.quantity, 2);
  EXPECT_TRUE(cpu.is_scalar_resource);
  EXPECT_EQ(cpu.hints, (std::vector<TopologyHint>{{.nodes = {0}, .preferred = true}}));
  EXPECT_EQ(allocations.at("memory")->quantity, 4294967296.0);
}

TEST(PeerJsonTest, WritesThePublishedVectorByteForByte) {
  EXPECT_EQ(*ToPeerCheckpoint(ParsePeerCheckpoint(kPublished)->allocations), kPublished);
}

TEST(PeerJsonTest, ImportsCpusOfOneContainerAsExclusiveCpus) {
  const Change change = ImportChange(NodeState(), ParsePeerCheckpoint(kPublished)->allocations);
  const NodeState state = NodeState().With(change);
  ASSERT_NE(state.Find(kPublishedKey), nullptr);
  EXPECT_TRUE(state.Find(kPublishedKey)->allocations.at("cpu")->exclusive);
  EXPECT_FALSE(state.Find(kPublishedKey)->allocations.at("memory")->exclusive);
  EXPECT_EQ(state.Find(kPublishedKey)->origins.at("cpu"),
            (Origin{.plugin = "cpu", .endpoint = "import"}));
}

TEST(PeerJsonTest, ImportsCpusOfAPoolAsShared) {
  const ResourceAllocation pool = {
      .oci_property = std::string(kCpusetCpus), .value = "4-7", .quantity = 4};
  ResourceAllocation fewer = pool;
  fewer.quantity = 1;
  const NodeState state = NodeState().With(ImportChange(
      NodeState(), {{{"a", "main"}, {{"cpu", pool}}}, {{"b", "main"}, {{"cpu", pool}}}}));
  EXPECT_FALSE(state.Find({"a", "main"})->allocations.at("cpu")->exclusive);
  const NodeState alone =
      NodeState().With(ImportChange(NodeState(), {{{"c", "main"}, {{"cpu", fewer}}}}));
  EXPECT_FALSE(alone.Find({"c", "main"})->allocations.at("cpu")->exclusive);
}

TEST(PeerJsonTest, RejectsAWrongChecksumWithBothSums) {
  std::string damaged = kPublished;
  damaged.replace(damaged.find("0-1"), 3, "0-7");
  const Status refused = ParsePeerCheckpoint(damaged).status();

  EXPECT_EQ(refused.code(), StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(refused),
              AllOf(HasSubstr("checksum 4217255668"), HasSubstr("has 1727220058")));
}

TEST(PeerJsonTest, WritesTheSameBytesAfterReadingThemBack) {
  test::RandomChanges random(17);
  NodeState state;
  for (int i = 0; i < 100; ++i) {
    state = state.With(random.Next());
    const AllocationByContainer allocations = AllocationsOf(state);
    const StatusOr<std::string> text = ToPeerCheckpoint(allocations);
    ASSERT_TRUE(text.ok()) << text.status();
    const StatusOr<PeerCheckpoint> read = ParsePeerCheckpoint(*text);
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(*ToPeerCheckpoint(read->allocations), *text);
    ASSERT_EQ(read->allocations, allocations);
  }
}

TEST(PeerJsonTest, TakesAMissingAndAnEmptyList) {
  EXPECT_TRUE(ParsePeerCheckpoint(*ToPeerCheckpoint({})).ok());
  const Status empty =
      ParsePeerCheckpoint(R"({"Data":{"PodResourceEntries":null},"Checksum":1})").status();
  const std::string message = MessageOf(empty);
  const std::string sum =
      message.substr(message.find("has ") + 4, message.find("; use") - message.find("has ") - 4);
  const std::string right = R"({"Data":{"PodResourceEntries":null},"Checksum":)" + sum + "}";
  EXPECT_TRUE(ParsePeerCheckpoint(right).ok());
  EXPECT_NE(right.find(sum), ToPeerCheckpoint({})->find(sum));
}

TEST(PeerJsonTest, RejectsWhatIsNotAPeersFile) {
  for (const char* text :
       {"", "[]", "null", "{\"Checksum\":1}", R"({"Data":{},"Checksum":"1"})",
        R"({"Data":{"PodResourceEntries":3},"Checksum":1})",
        R"({"Data":{"PodResourceEntries":[3]},"Checksum":1})",
        R"({"Data":{"PodResourceEntries":[{"PodUID":"a"}]},"Checksum":1})", "\xff\xfe"}) {
    EXPECT_EQ(ParsePeerCheckpoint(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

/// An entry with a right checksum and without a usable value.
std::string FileWithInfo(const std::string& info) {
  std::string file = R"({"Data":{"PodResourceEntries":[{"PodUID":"a","ContainerName":"c",)"
                     R"("ResourceName":"cpu","AllocationInfo":")" +
                     info + R"("}]},"Checksum":)";
  const std::string message = MessageOf(ParsePeerCheckpoint(file + "0}").status());
  const std::size_t begin = message.find("has ") + 4;
  return file + message.substr(begin, message.find(';', begin) - begin) + "}";
}

TEST(PeerJsonTest, SkipsEntriesThatSayNothingAndNamesThem) {
  for (const char* info :
       {"no json", "3", R"({\"allocated_quantity\":-1})",
        R"({\"oci_property_name\":\"CpusetCpus\",\"allocation_result\":\"0-x\"})",
        R"({\"envs\":3})", R"({\"topology_assignments\":{\"x\":1}})",
        R"({\"resource_hints\":{\"hints\":[{\"nodes\":[99999999]}]}})",
        R"({\"resource_hints\":{\"hints\":[{\"nodes\":[-1]}]}})"}) {
    const StatusOr<PeerCheckpoint> read = ParsePeerCheckpoint(FileWithInfo(info));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_THAT(read->allocations, IsEmpty()) << info;
    ASSERT_THAT(read->skipped, SizeIs(1)) << info;
    EXPECT_THAT(read->skipped[0], HasSubstr("skipped cpu of container c of pod a"));
  }
}

TEST(PeerJsonTest, ImportsIntoWhatTheNodeKnows) {
  const NodeState known = NodeState().With(test::PutSample("a"));
  AllocationByContainer allocations;
  allocations[{"a", "main"}]["cpu"].Edit() = {.value = "4-5"};
  allocations[{"b", "main"}]["cpu"].Edit() = {.value = "6-7"};
  const NodeState state = known.With(ImportChange(known, allocations));

  EXPECT_EQ(state.FindPod("a")->meta, known.FindPod("a")->meta);
  EXPECT_EQ(state.Find({"a", "main"})->requests, known.Find({"a", "main"})->requests);
  EXPECT_EQ(AllocationsOf(state), allocations);
  EXPECT_EQ(state.Find({"b", "main"})->request_source, "import");
}

}  // namespace
}  // namespace qrm::checkpoint::peer_json_test
