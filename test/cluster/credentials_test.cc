#include "cluster/credentials.h"

#include <chrono>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace qrm::cluster::credentials_test {
namespace {

using std::chrono::seconds;

class CredentialsTest : public testing::Test {
 protected:
  CredentialsTest() { Write("one"); }
  void Write(const std::string& token) const { std::ofstream(dir_ / "token") << token << '\n'; }

  const test::TempDir dir_;
  const Credentials::Clock::time_point now_ = Credentials::Clock::now();
  Credentials credentials_{{.token_file = dir_ / "token"}};
};

TEST_F(CredentialsTest, ATokenIsReadAgainAfterAMinute) {
  EXPECT_EQ(credentials_.Token(now_).value_or(""), "one");
  Write("two");
  EXPECT_EQ(credentials_.Token(now_ + seconds(59)).value_or(""), "one");
  EXPECT_EQ(credentials_.Token(now_ + seconds(60)).value_or(""), "two");
}

TEST_F(CredentialsTest, ATokenThatWasRejectedIsReadAgainAtOnce) {
  EXPECT_EQ(credentials_.Token(now_).value_or(""), "one");
  Write("two");
  credentials_.DropToken();
  EXPECT_EQ(credentials_.Token(now_).value_or(""), "two");
}

TEST_F(CredentialsTest, AuthoritiesThatCannotBeReadAreNamed) {
  Credentials credentials({.authorities = {.file = dir_ / "ca.crt"}});
  const auto tls = credentials.Tls();
  EXPECT_EQ(tls.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(MessageOf(tls.status()).find(dir_ / "ca.crt"), std::string::npos);
}

}  // namespace
}  // namespace qrm::cluster::credentials_test
