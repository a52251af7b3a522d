#include "api/wire.h"

#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/proto/resourceplugin/v1alpha1/api.pb.h"

namespace qrm::wire::wire_test {
namespace {

using testing::HasSubstr;

ContainerRequest Request() {
  return {.key = {"uid", "main"}, .resource = "cpu", .requests = {{"cpu", 0.5}}};
}

TEST(WireTest, CarriesLimitAndScaleOfARequest) {
  ContainerRequest request = Request();
  request.limit = 2.5;
  request.scale = 0.001;
  EXPECT_EQ(FromWire(ToWire(request))->limit, 2.5);
  EXPECT_EQ(FromWire(ToWire(request))->quantity(), 0.0005);
}

TEST(WireTest, RequestOfAnotherManagerHasNoLimit) {
  EXPECT_EQ(FromWire(ToWire(Request()))->limit, std::nullopt);
}

TEST(WireTest, ChecksAnAllocationAsReadingItWould) {
  const ResourceAllocation sound{
      .oci_property = std::string(kCpusetCpus), .value = "0-3,8", .quantity = 4};
  std::vector<ResourceAllocation> allocations(6, sound);
  allocations[1].value = "0-";
  allocations[2].quantity = -1;
  allocations[3].shares = "x";
  allocations[4].may_share = "1,,2";
  allocations[5] = {.oci_property = std::string(kCpusetMems), .value = "9-1"};
  for (const ResourceAllocation& allocation : allocations) {
    EXPECT_EQ(Check(allocation), FromWire(ToWire(allocation)).status()) << allocation.value;
    EXPECT_EQ(Check(allocation).ok(), allocation == sound) << allocation.value;
  }
}

TEST(WireTest, RejectsRelativePathsOfMountsAndDevices) {
  EXPECT_EQ(MessageOf(Check({.mounts = {{"/data", "srv/data", true}}})),
            "mount of \"srv/data\" at \"/data\": the path \"srv/data\" is not absolute; begin it "
            "with /");
  EXPECT_FALSE(Check({.devices = {{"dev/nic", "/dev/nic", "r"}}}).ok());
  EXPECT_TRUE(Check({.mounts = {{"/data", "/srv/data", true}}}).ok());
}

TEST(WireTest, KeepsHugepagesOutOfTheOneRequestThatOthersRead) {
  ContainerRequest request = Request();
  request.requests = std::map<std::string, double>{{"memory", 100}, {"hugepages-2Mi", 8}};
  const auto message = ToWire(request);
  EXPECT_EQ(message.resource_requests().size(), 1);
  EXPECT_EQ(message.resource_requests().at("memory"), 100);
  EXPECT_EQ(FromWire(message)->requests, request.requests);
  request.requests = std::map<std::string, double>{{"hugepages-2Mi", 8}};
  EXPECT_EQ(ToWire(request).resource_requests().at("hugepages-2Mi"), 8);
}

TEST(WireTest, RejectsALimitThatIsNotAnAmount) {
  ContainerRequest request = Request();
  request.limit = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(MessageOf(FromWire(ToWire(request)).status()), HasSubstr("limit"));
}

}  // namespace
}  // namespace qrm::wire::wire_test
