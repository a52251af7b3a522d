// Connections to a server with TLS; single requests are tested with kubelet's list.
#include "api/http/https_connection.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/is_ok.h"
#include "test/support/tls_server.h"

namespace qrm::https_connection_test {
namespace {

using std::chrono::seconds;

class HttpsConnectionTest : public testing::Test {
 protected:
  HttpsPeer PeerTrusting(const std::string& certificate) const {
    auto tls = std::make_shared<boost::asio::ssl::context>(boost::asio::ssl::context::tls_client);
    tls->add_certificate_authority(boost::asio::buffer(certificate));
    return {.url = {.host = "127.0.0.1", .port = std::to_string(server_.port())}, .tls = tls};
  }
  Status Open(HttpsConnection& connection) {
    Status opened;
    connection.Open(seconds(10), [&](const Status& status) { opened = status; });
    RunAll();
    return opened;
  }
  void RunAll() {
    io_.restart();
    io_.run();
  }

  test::TlsServer server_{[](const test::TlsServer::Request& request) {
    return test::TlsServer::Answer{.status = request.path == "/missing" ? 404U : 200U,
                                   .body = std::string(100'000, 'x')};
  }};
  boost::asio::io_context io_;
};

TEST_F(HttpsConnectionTest, ABodyComesInPartsUntilAnEmptyOne) {
  HttpsConnection connection(io_, PeerTrusting(server_.certificate()));
  ASSERT_TRUE(test::IsOk(Open(connection)));
  std::size_t size = 0;
  bool ended = false;
  const std::function<void(StatusOr<std::string>)> take = [&](const StatusOr<std::string>& part) {
    ASSERT_TRUE(test::IsOk(part.status()));
    size += part->size();
    ended = part->empty();
    if (!ended) {
      connection.ReadSome(seconds(10), take);
    }
  };
  connection.Begin({}, seconds(10), [&](const StatusOr<HttpsAnswer>& answer) {
    ASSERT_TRUE(test::IsOk(answer.status()));
    EXPECT_EQ(answer->status, 200U);
    connection.ReadSome(seconds(10), take);
  });
  RunAll();
  EXPECT_EQ(size, 100'000U);
  EXPECT_TRUE(ended);
}

TEST_F(HttpsConnectionTest, OtherStatusesAreAnswersToo) {
  HttpsConnection connection(io_, PeerTrusting(server_.certificate()));
  ASSERT_TRUE(test::IsOk(Open(connection)));
  StatusOr<HttpsAnswer> answer;
  connection.Call({.target = "/missing"}, seconds(10),
                  [&](StatusOr<HttpsAnswer> got) { answer = std::move(got); });
  RunAll();
  ASSERT_TRUE(test::IsOk(answer.status()));
  EXPECT_EQ(answer->status, 404U);
  EXPECT_EQ(answer->body.size(), 100'000U);
  EXPECT_FALSE(connection.reusable()) << "the server closes it";
}

TEST_F(HttpsConnectionTest, APeerThatNoAuthorityVouchesForIsNotAsked) {
  const test::TlsServer other([](const auto&) { return test::TlsServer::Answer(); });
  HttpsConnection connection(io_, PeerTrusting(other.certificate()));
  EXPECT_EQ(Open(connection).code(), StatusCode::kFailedPrecondition);
}

TEST_F(HttpsConnectionTest, TheCertificateMustBeForTheNameThatIsMeant) {
  HttpsPeer peer = PeerTrusting(server_.certificate());
  peer.certified_name = "kubernetes.default.svc";
  HttpsConnection connection(io_, std::move(peer));
  EXPECT_EQ(Open(connection).code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace qrm::https_connection_test
