#include "plugins/sdk/calls/content_digest.h"

#include <string>

#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include "api/proto/resourceplugin/v1alpha1/api.pb.h"

namespace qrm::calls::content_digest_test {
namespace {

namespace pb = ::resourceplugin::v1alpha1;

std::string Of(const std::string& value, bool is_scalar = true) {
  pb::ResourceAllocationInfo info;
  info.set_allocation_result(value);
  info.set_is_scalar_resource(is_scalar);
  return info.SerializeAsString();
}

std::optional<uint64_t> DigestOf(const google::protobuf::Descriptor& type,
                                 const std::string& bytes) {
  const std::optional<Digested> digested = ContentDigest(type, bytes);
  return digested.has_value() ? std::optional(digested->digest) : std::nullopt;
}

std::optional<uint64_t> Digest(const std::string& bytes) {
  return DigestOf(*pb::ResourceAllocationInfo::descriptor(), bytes);
}

std::string Env(const std::string& name, const std::string& value) {
  pb::ResourceAllocationInfo info;
  (*info.mutable_envs())[name] = value;
  return info.SerializeAsString();
}

std::string Hints(const std::vector<uint64_t>& nodes) {
  pb::ListOfTopologyHints hints;
  for (const uint64_t node : nodes) {
    hints.add_hints()->add_nodes(node);
  }
  return hints.SerializeAsString();
}

TEST(ContentDigestTest, FieldsHaveNoOrder) {
  EXPECT_EQ(Digest(Of("0-3", false) + Of("", true)), Digest(Of("", true) + Of("0-3", false)));
}

TEST(ContentDigestTest, EntriesOfMapsHaveNone) {
  EXPECT_EQ(Digest(Env("A", "1") + Env("B", "2")), Digest(Env("B", "2") + Env("A", "1")));
}

TEST(ContentDigestTest, ElementsOfListsHaveOne) {
  const auto digest = [](const std::vector<uint64_t>& nodes) {
    return DigestOf(*pb::ListOfTopologyHints::descriptor(), Hints(nodes));
  };
  EXPECT_EQ(digest({1, 2}), digest({1, 2}));
  EXPECT_NE(digest({1, 2}), digest({2, 1}));
}

TEST(ContentDigestTest, EntriesOfMapsAreToldApart) {
  const auto entries = [](const std::string& bytes) {
    return ContentDigest(*pb::ResourceAllocationInfo::descriptor(), bytes)
        .value_or(Digested())
        .entries;
  };
  const std::string first = Env("A", "1");
  const std::string second = Env("B", "2");
  const std::string bytes = Of("0-3") + first + second;
  const std::vector<DigestedEntry> both = entries(bytes);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].field, first);
  EXPECT_EQ(both[1].field, second);
  EXPECT_NE(both[0].digest, both[1].digest);
  const std::string other = second + Env("A", "2");
  const std::vector<DigestedEntry> changed = entries(other);
  ASSERT_EQ(changed.size(), 2u);
  EXPECT_EQ(changed[0].digest, both[1].digest);
  EXPECT_NE(changed[1].digest, both[0].digest);
}

TEST(ContentDigestTest, OtherContentHasAnother) {
  EXPECT_NE(Digest(Of("0-3")), Digest(Of("0-2")));
  EXPECT_NE(Digest(Of("0-3")), Digest(Of("0-3", false)));
  EXPECT_NE(Digest(Env("A", "1") + Env("B", "2")), Digest(Env("A", "2") + Env("B", "1")));
  EXPECT_NE(Digest(Env("A", "1")), Digest(Env("A", "1") + Env("A", "1")));
  EXPECT_NE(Digest(""), Digest(Of("0-3")));
}

TEST(ContentDigestTest, MessagesThatAreTooDeepHaveNone) {
  google::protobuf::DescriptorProto message;
  google::protobuf::DescriptorProto* inner = &message;
  for (int depth = 0; depth < 100; ++depth) {
    inner = inner->add_nested_type();
  }
  const auto& type = *google::protobuf::DescriptorProto::descriptor();
  EXPECT_TRUE(ContentDigest(type, message.SerializeAsString()).has_value());
  inner->add_nested_type()->set_name("too deep");
  EXPECT_FALSE(ContentDigest(type, message.SerializeAsString()).has_value());
}

TEST(ContentDigestTest, BytesThatAreNoFieldsHaveNone) {
  for (const std::string& bytes :
       {std::string("no message"), Of("0-3").substr(0, 4), std::string(1, '\0'),
        std::string("\x0a\xff\xff\xff\xff\x0f", 6)}) {
    EXPECT_FALSE(Digest(bytes).has_value()) << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace qrm::calls::content_digest_test
