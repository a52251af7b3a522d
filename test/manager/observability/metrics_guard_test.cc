// Metrics and the page over TLS, for clients that an API server knows.
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/rejected.h"
#include "api/http/https_call.h"
#include "manager/control/page_server.h"
#include "manager/observability/http_server.h"
#include "manager/observability/metrics.h"
#include "test/support/await.h"
#include "test/support/fake_node_services.h"
#include "test/support/fake_plugins.h"
#include "test/support/fake_snapshots.h"
#include "test/support/is_ok.h"
#include "test/support/sample_node.h"
#include "test/support/temp_dir.h"
#include "test/support/tls_server.h"

namespace qrm::manager::metrics_guard_test {
namespace {

using std::string_literals::operator""s;
using testing::HasSubstr;

/// Knows "prometheus", which may read metrics, "operator", who may see the page, "stranger", who
/// may neither, and no other.
class ApiServer {
 public:
  const test::TlsServer& tls() const { return server_; }
  int asked() const { return asked_; }
  void SetAway() { away_ = true; }

 private:
  test::TlsServer::Answer Answer(const test::TlsServer::Request& request) {
    ++asked_;
    if (away_ || request.authorization != "Bearer qrmds-own") {
      return {.status = away_ ? 500U : 401U, .body = ""};
    }
    const auto names = [&](const char* name) {
      return request.body.find(name) != std::string::npos;
    };
    if (request.path.find("/tokenreviews") != std::string::npos) {
      const std::string user = names("prometheus") ? "prometheus"
                               : names("operator") ? "operator"
                                                   : "stranger";
      const bool known = names(user.c_str());
      return {.status = 201,
              .body = known ? R"({"status":{"authenticated":true,"user":{"username":")" + user +
                                  R"(","groups":["all"]}}})"
                            : R"({"status":{"authenticated":false}})"};
    }
    const bool may = (names("prometheus") && names("\"/metrics\"")) ||
                     (names("operator") && names("\"/node.json\""));
    const bool asks_well = names("\"get\"") && names("\"all\"");
    return {.status = 201,
            .body = may && asks_well ? R"({"status":{"allowed":true}})"
                                     : R"({"status":{"allowed":false}})"};
  }

  std::atomic<int> asked_ = 0;
  std::atomic<bool> away_ = false;
  test::TlsServer server_{
      [this](const test::TlsServer::Request& request) { return Answer(request); }};
};

class MetricsGuardTest : public testing::Test {
 protected:
  MetricsGuardTest() {
    Write("tls.crt", api_.tls().certificate());
    Write("tls.key", api_.tls().key());
    Write("token", "qrmds-own\n");
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name) << text;
  }
  HttpOptions OverTls() const {
    return {.metrics_address = "127.0.0.1:0",
            .probe_address = "",
            .certificate_file = dir_ / "tls.crt",
            .key_file = dir_ / "tls.key"};
  }
  HttpOptions Reviewed() const {
    HttpOptions options = OverTls();
    options.review_url = "https://127.0.0.1:" + std::to_string(api_.tls().port());
    options.review_token_file = dir_ / "token";
    options.review_ca_file = dir_ / "tls.crt";
    return options;
  }
  /// What a client reads that trusts the certificate in the file `trusted`.
  StatusOr<std::string> Read(const std::string& token, const std::string& trusted = "tls.crt") {
    return ReadAt(std::to_string(server_.metrics_port()) + "/metrics", token, trusted);
  }
  StatusOr<std::string> ReadPage(const std::string& path, const std::string& token) {
    return ReadAt(std::to_string(page_.port()) + path, token, "tls.crt");
  }
  StatusOr<std::string> ReadAt(const std::string& port_and_path, const std::string& token,
                               const std::string& trusted) const {
    boost::asio::io_context io;
    StatusOr<std::string> answer;
    HttpsCall(io,
              {.url = *ParseHttpsUrl("https://127.0.0.1:" + port_and_path),
               .bearer_token = token,
               .ca_file = dir_ / trusted},
              [&](StatusOr<std::string> got) { answer = std::move(got); });
    io.run();
    return answer;
  }

  const test::TempDir dir_;
  ApiServer api_;
  Metrics metrics_;
  test::FakeSnapshots snapshots_;
  test::FakePlugins plugins_;
  test::FakeNodeServices node_;
  const Machine machine_ = test::SampleMachine();
  HttpServer server_{metrics_, snapshots_, plugins_, node_, machine_};
  PageServer page_{{.snapshots = snapshots_,
                    .plugins = plugins_,
                    .node = node_,
                    .machine = machine_,
                    .node_name = "node-7"}};
};

TEST_F(MetricsGuardTest, MetricsAreServedOverTls) {
  ASSERT_TRUE(server_.Start(OverTls()).ok());
  EXPECT_THAT(Read("").value_or(""), HasSubstr("qrm_ready"));
}

TEST_F(MetricsGuardTest, PlainTextClientsLearnNothing) {
  const uint64_t rejected = RejectedSoFar(Rejected::kTlsHandshake);
  ASSERT_TRUE(server_.Start(OverTls()).ok());
  boost::asio::io_context io;
  boost::asio::ip::tcp::socket stream(io);
  const auto port = static_cast<uint16_t>(server_.metrics_port());
  boost::system::error_code error;
  stream.connect({boost::asio::ip::address_v4::loopback(), port}, error);
  boost::asio::write(
      stream, boost::asio::buffer("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"s), error);
  std::string got;
  boost::asio::read(stream, boost::asio::dynamic_buffer(got), error);  // to its end
  EXPECT_EQ(got.find("qrm_"), std::string::npos);
  EXPECT_TRUE(test::Await([&] { return RejectedSoFar(Rejected::kTlsHandshake) > rejected; }));
}

TEST_F(MetricsGuardTest, ARenewedCertificateIsServed) {
  ASSERT_TRUE(server_.Start(OverTls()).ok());
  const test::TlsServer renewed([](const auto&) { return test::TlsServer::Answer(); });
  Write("tls.key", renewed.key());
  EXPECT_TRUE(test::IsOk(Read("").status())) << "half of it does not count";
  Write("new.crt", renewed.certificate());
  std::filesystem::rename(dir_ / "new.crt", dir_ / "tls.crt");
  EXPECT_TRUE(Read("", "tls.crt").ok());
  Write("old.crt", api_.tls().certificate());
  EXPECT_FALSE(Read("", "old.crt").ok());
}

TEST_F(MetricsGuardTest, WithoutACertificateNoClientIsServedUntilThereIsOne) {
  std::filesystem::rename(dir_ / "tls.key", dir_ / "away");
  ASSERT_TRUE(server_.Start(OverTls()).ok());
  EXPECT_FALSE(Read("").ok());
  std::filesystem::rename(dir_ / "away", dir_ / "tls.key");
  EXPECT_TRUE(Read("").ok());
}

TEST_F(MetricsGuardTest, OnlyBearersThatTheApiServerAllowsAreServed) {
  const uint64_t rejected = RejectedSoFar(Rejected::kHttpToken);
  ASSERT_TRUE(server_.Start(Reviewed()).ok());
  EXPECT_THAT(Read("prometheus").value_or(""), HasSubstr("qrm_ready"));
  EXPECT_EQ(Read("stranger").status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(Read("invented").status().code(), StatusCode::kUnauthenticated);
  EXPECT_EQ(Read("").status().code(), StatusCode::kUnauthenticated);
  EXPECT_EQ(RejectedSoFar(Rejected::kHttpToken), rejected + 3);
}

TEST_F(MetricsGuardTest, ThePageShowsTheNodeToBearersThatMayGetItsDocument) {
  HttpOptions options = Reviewed();
  options.page_address = "127.0.0.1:0";
  ASSERT_TRUE(test::IsOk(page_.Start(options)));
  EXPECT_THAT(ReadPage("/node.json", "operator").value_or(""), HasSubstr("node-7"));
  EXPECT_EQ(ReadPage("/node.json", "prometheus").status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(ReadPage("/node.json", "").status().code(), StatusCode::kUnauthenticated);
  EXPECT_EQ(ReadPage("/why/0", "invented").status().code(), StatusCode::kUnauthenticated);
  EXPECT_THAT(ReadPage("/", "").value_or(""), HasSubstr("page.js")) << "it asks for the token";
}

TEST_F(MetricsGuardTest, TheApiServerIsAskedOnceForAToken) {
  ASSERT_TRUE(server_.Start(Reviewed()).ok());
  for (const char* token : {"prometheus", "invented", "prometheus", "invented"}) {
    (void)Read(token);
  }
  EXPECT_EQ(api_.asked(), 2 + 1);
}

TEST_F(MetricsGuardTest, NoBearerIsServedWhileTheApiServerDoesNotAnswer) {
  api_.SetAway();
  ASSERT_TRUE(server_.Start(Reviewed()).ok());
  EXPECT_EQ(Read("prometheus").status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace qrm::manager::metrics_guard_test
