// A message that is read field by field.
#include "api/message_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/proto/ttrpc/ttrpc.pb.h"

namespace qrm::message_fields_test {
namespace {

std::string SampleRequest() {
  ttrpc::Request request;
  request.set_method("Call");
  request.set_payload("large");
  request.set_timeout_nano(-7);
  return request.SerializeAsString();
}

bool TakeNothing(int /*number*/, std::string_view /*bytes*/) {
  return false;
}

TEST(MessageFieldsTest, GivesFieldsAsViewsAndReturnsTheRest) {
  const std::string bytes = SampleRequest();
  std::string_view payload;
  const auto rest = TakeFields(bytes, [&](int number, std::string_view taken) {
    if (number == ttrpc::Request::kPayloadFieldNumber) {
      payload = taken;
    }
    return number == ttrpc::Request::kPayloadFieldNumber;
  });
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ(payload, "large");
  EXPECT_TRUE(payload.data() > bytes.data() && payload.data() < bytes.data() + bytes.size());
  ttrpc::Request request;
  ASSERT_TRUE(request.ParseFromString(*rest));
  EXPECT_EQ(request.method(), "Call");
  EXPECT_EQ(request.payload(), "");
  EXPECT_EQ(request.timeout_nano(), -7);
}

TEST(MessageFieldsTest, ReturnsAMessageOfWhichNothingIsTaken) {
  EXPECT_EQ(TakeFields(SampleRequest(), TakeNothing), SampleRequest());
  EXPECT_EQ(TakeFields("", TakeNothing), "");
}

TEST(MessageFieldsTest, RejectsBytesThatAreNoMessage) {
  const std::string bytes = SampleRequest();
  EXPECT_EQ(TakeFields(bytes.substr(0, bytes.size() - 1), TakeNothing), std::nullopt);
  EXPECT_EQ(TakeFields("\x1a\x05only", TakeNothing), std::nullopt) << "a field without its end";
  EXPECT_EQ(TakeFields(std::string(64, '\xff'), TakeNothing), std::nullopt);
  EXPECT_EQ(TakeFields("\x0c", TakeNothing), std::nullopt) << "the end of a group";
  EXPECT_EQ(TakeFields("\x1a\xff\xff\xff\xff\x0fx", TakeNothing), std::nullopt);
}

TEST(MessageFieldsTest, PartsAreTheMessageWhenTheyAreMerged) {
  const std::string message = SampleRequest();
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{10}, message.size() + 1}) {
    const auto parts = PartsOf(message, bytes);
    ASSERT_TRUE(parts.has_value());
    std::string merged;
    for (const std::string_view part : *parts) {
      EXPECT_NE(TakeFields(part, TakeNothing), std::nullopt);
      merged += part;
    }
    EXPECT_EQ(merged, message);
    EXPECT_EQ(parts->size() == 1, bytes > message.size());
  }
  EXPECT_EQ(PartsOf(message.substr(0, message.size() - 1), 10), std::nullopt);
}

}  // namespace
}  // namespace qrm::message_fields_test
