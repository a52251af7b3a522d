// A plugin's answer about all containers, read in parts.
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/proto/resourceplugin/v1alpha1/api.pb.h"
#include "plugins/sdk/calls/plugin_calls.h"

namespace qrm::calls::held_reader_test {
namespace {

using Response = ::resourceplugin::v1alpha1::GetResourcesAllocationResponse;
using Call = CallTo<GetResourcesAllocation>;
using testing::HasSubstr;

std::string AnswerWith(int pods) {
  Response response;
  for (int i = 0; i < pods; ++i) {
    auto& pod = (*response.mutable_pod_resources())[fmt::format("uid-{:06}", i)];
    auto& info =
        (*(*pod.mutable_container_resources())["main"].mutable_resource_allocation())["cpu"];
    info.set_allocation_result(std::to_string(i));
  }
  return response.SerializeAsString();
}

Call::Result Read(const std::string& answer) {
  Call::Result read;
  Call call({}, [&](Call::Result result) { read = std::move(result); });
  const std::size_t half = answer.size() / 2;
  call.Take({std::string_view(answer).substr(0, half), std::string_view(answer).substr(half)}, {});
  return read;
}

TEST(HeldReaderTest, AnAnswerOfManyPartsIsReadWhole) {
  const auto read = Read(AnswerWith(5'000));
  ASSERT_TRUE(read.value.ok()) << read.value.status();
  ASSERT_EQ((*read.value)->size(), 5'000u);
  EXPECT_EQ((*read.value)->at(4'321).key.pod_uid, "uid-004321");
  EXPECT_EQ((*read.value)->at(4'321).allocation->value, "4321");
}

TEST(HeldReaderTest, MoreAllocationsThanNodesHaveBreakTheProtocol) {
  const auto read = Read(AnswerWith(20'001));
  EXPECT_THAT(MessageOf(read.value.status()), HasSubstr("more than 20000 allocations"));
  EXPECT_EQ(read.blame, Blame::kProtocol);
}

TEST(HeldReaderTest, AContainerThatComesTwiceBreaksTheProtocol) {
  const std::string answer = AnswerWith(2'000);  // the parts are merged nowhere
  const auto read = Read(answer + answer);
  EXPECT_THAT(MessageOf(read.value.status()), HasSubstr("of pod uid-000000 is in it twice"));
}

}  // namespace
}  // namespace qrm::calls::held_reader_test
