#include "api/wire.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::wire {
namespace {

using testing::HasSubstr;

ContainerRequest Request() {
  return {.key = {"uid", "main"}, .resource = "cpu", .requests = {{"cpu", 0.5}}};
}

TEST(WireTest, CarriesTheLimitOfARequest) {
  ContainerRequest request = Request();
  request.limit = 2.5;
  EXPECT_EQ(FromWire(ToWire(request))->limit, 2.5);
}

TEST(WireTest, RequestOfAnotherManagerHasNoLimit) {
  EXPECT_EQ(FromWire(ToWire(Request()))->limit, std::nullopt);
}

TEST(WireTest, RefusesALimitThatIsNoAmount) {
  ContainerRequest request = Request();
  request.limit = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(MessageOf(FromWire(ToWire(request)).status()), HasSubstr("limit"));
}

}  // namespace
}  // namespace qrm::wire
