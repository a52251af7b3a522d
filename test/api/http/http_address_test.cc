#include "api/http/http_address.h"

#include <gtest/gtest.h>

#include "test/support/is_ok.h"

namespace qrm::http_address_test {
namespace {

struct AddressCase {
  const char* text;
  const char* host;
  int port;
};

TEST(HttpAddressTest, AddressesAreIpv4Ipv6OrAll) {
  for (const AddressCase& row : {AddressCase{":9753", "", 9753},
                                 {"127.0.0.1:80", "127.0.0.1", 80},
                                 {"[::1]:80", "::1", 80},
                                 {"[::]:0", "::", 0}}) {
    const auto address = ParseHttpAddress(row.text);
    ASSERT_TRUE(test::IsOk(address.status())) << row.text;
    EXPECT_EQ(address->host, row.host);
    EXPECT_EQ(address->port, row.port);
  }
}

TEST(HttpAddressTest, OtherFormsAreRejected) {
  for (const char* text : {"9753", "localhost:80", ":", ":http", ":99999", "127.0.0.1:", "::1:80",
                           "[127.0.0.1]:80", "[::1]", "[]:80", "1.2.3.4.5:80", ": 80"}) {
    EXPECT_EQ(ParseHttpAddress(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(HttpAddressTest, OnlyThisMachineReachesLoopback) {
  EXPECT_TRUE(IsLoopback(*ParseHttpAddress("127.0.0.1:80")));
  EXPECT_TRUE(IsLoopback(*ParseHttpAddress("[::1]:80")));
  EXPECT_FALSE(IsLoopback(*ParseHttpAddress(":80")));
  EXPECT_FALSE(IsLoopback(*ParseHttpAddress("10.0.0.1:80")));
}

TEST(HttpAddressTest, OnlyLocalhostAndAddressesAreLocalNames) {
  for (const char* host : {"localhost", "localhost:80", "127.0.0.1:80", "[::1]:80", "[::1]"}) {
    EXPECT_TRUE(IsLocalName(NameInHost(host))) << host;
  }
  for (const char* host : {"", ":80", "evil.test", "evil.test:80", "localhost.evil.test", "[]"}) {
    EXPECT_FALSE(IsLocalName(NameInHost(host))) << host;
  }
}

}  // namespace
}  // namespace qrm::http_address_test
