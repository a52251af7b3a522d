#include "manager/observability/http_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/is_ok.h"

namespace qrm::manager::http_options_test {
namespace {

TEST(HttpOptionsTest, TwoServersOfOnePortAreRejected) {
  for (const char* metrics : {":9754", "0.0.0.0:9754", "[::]:9754", "127.0.0.1:9754"}) {
    EXPECT_THAT(
        MessageOf(CheckHttp({.metrics_address = metrics})),
        testing::HasSubstr(
            "both have the same port; set metrics-address and probe-address to different ports"))
        << metrics;
  }
}

TEST(HttpOptionsTest, ACertificateNeedsItsKey) {
  EXPECT_THAT(MessageOf(CheckHttp({.certificate_file = "/tls.crt"})),
              testing::HasSubstr(
                  "only one of metrics-certificate-file and metrics-key-file is set; set both"));
  EXPECT_FALSE(CheckHttp({.key_file = "/tls.key"}).ok());
}

TEST(HttpOptionsTest, TokensAreNotAskedForWithoutTls) {
  HttpOptions options{.review_url = "https://10.96.0.1:443"};
  EXPECT_THAT(MessageOf(CheckHttp(options)),
              testing::HasSubstr("an eavesdropper could steal them"));
  options.certificate_file = "/tls.crt";
  options.key_file = "/tls.key";
  EXPECT_TRUE(test::IsOk(CheckHttp(options)));
}

TEST(HttpOptionsTest, ThePageIsShownToOtherMachinesByTokenOnly) {
  HttpOptions options{.page_address = ":9757"};
  EXPECT_THAT(MessageOf(CheckHttp(options)), testing::HasSubstr("such as 127.0.0.1:9757"));
  options.certificate_file = "/tls.crt";
  options.key_file = "/tls.key";
  EXPECT_FALSE(CheckHttp(options).ok()) << "TLS alone authenticates no client";
  options.review_url = "https://10.96.0.1:443";
  EXPECT_TRUE(test::IsOk(CheckHttp(options)));
  for (const char* loopback : {"127.0.0.1:9757", "[::1]:9757", ""}) {
    EXPECT_TRUE(test::IsOk(CheckHttp({.page_address = loopback}))) << loopback;
  }
  EXPECT_THAT(MessageOf(CheckHttp({.page_address = "127.0.0.1:9754"})),
              testing::HasSubstr("set probe-address and page-address to different ports"));
}

TEST(HttpOptionsTest, OnePortOfTwoAddressesIsGood) {
  EXPECT_TRUE(test::IsOk(CheckHttp({.metrics_address = "10.0.0.1:9754"})));
  EXPECT_TRUE(test::IsOk(CheckHttp({.metrics_address = ":0", .probe_address = ":0"})));
  EXPECT_TRUE(test::IsOk(CheckHttp({.metrics_address = "", .probe_address = ""})));
}

}  // namespace
}  // namespace qrm::manager::http_options_test
