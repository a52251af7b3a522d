// The live page over real HTTP: its content, its clients, and how little is sent again.
#include "manager/control/page_server.h"

#include <iterator>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/control/page_decisions.h"
#include "test/support/fake_node_services.h"
#include "test/support/fake_plugins.h"
#include "test/support/fake_snapshots.h"
#include "test/support/is_ok.h"
#include "test/support/sample_node.h"

namespace qrm::manager::page_server_test {
namespace {

using boost::asio::ip::tcp;
using testing::HasSubstr;
using testing::Not;

struct Answer {
  int code = 0;
  std::string head;
  std::string body;

  /// The value of a header that the answer has.
  std::string Header(const std::string& name) const {
    const auto at = head.find(name + ": ") + name.size() + 2;
    return head.substr(at, head.find("\r\n", at) - at);
  }
};

class PageServerTest : public testing::Test {
 protected:
  void Start(const std::string& address = "127.0.0.1:0") {
    const Status started = server_.Start({.page_address = address});
    ASSERT_TRUE(started.ok()) << started;
  }

  Answer Get(const std::string& path, const std::string& more = "",
             const std::string& host = "localhost") const {
    tcp::iostream stream("127.0.0.1", std::to_string(server_.port()));
    stream << "GET " << path << " HTTP/1.1\r\nHost: " << host << "\r\nConnection: close\r\n"
           << more << "\r\n"
           << std::flush;
    std::string version;
    Answer answer;
    stream >> version >> answer.code;
    const std::string rest{std::istreambuf_iterator<char>(stream), {}};
    const auto head_end = rest.find("\r\n\r\n");
    answer.head = rest.substr(0, head_end + 2);
    answer.body = head_end == std::string::npos ? "" : rest.substr(head_end + 4);
    return answer;
  }

  test::FakeSnapshots snapshots_;
  test::FakePlugins plugins_;
  test::FakeNodeServices node_;
  const Machine machine_ = test::SampleMachine();
  PageServer server_{{.snapshots = snapshots_,
                      .plugins = plugins_,
                      .node = node_,
                      .machine = machine_,
                      .node_name = "node-7"}};
};

TEST_F(PageServerTest, NothingListensByDefault) {
  ASSERT_TRUE(test::IsOk(server_.Start(HttpOptions())));
  EXPECT_EQ(server_.port(), 0);
}

TEST_F(PageServerTest, ThePageAndAllItAsksForAreServed) {
  Start();
  const Answer page = Get("/");
  EXPECT_EQ(page.code, 200);
  EXPECT_THAT(page.body, HasSubstr("<script src=\"page.js\""));
  EXPECT_EQ(Get("/page.js").body, FindPageFile("page.js"));
  EXPECT_EQ(Get("/page.css").Header("Content-Type"), "text/css; charset=utf-8");
  EXPECT_EQ(Get("/icon.svg").Header("Content-Type"), "image/svg+xml");
  EXPECT_THAT(Get("/node.json").body, HasSubstr("\"node\":\"node-7\""));
}

TEST_F(PageServerTest, ThePageIsSmallAndLoadsNothingElse) {
  std::size_t bytes = 0;
  for (const char* name : {"page.html", "page.css", "page.js"}) {
    const std::string_view file = FindPageFile(name);
    ASSERT_FALSE(file.empty()) << name;
    bytes += file.size();
    EXPECT_THAT(std::string(file), Not(HasSubstr("//www"))) << name;
    EXPECT_THAT(std::string(file), Not(HasSubstr("http:"))) << name;
    EXPECT_THAT(std::string(file), Not(HasSubstr("https:"))) << name;
    EXPECT_THAT(std::string(file), Not(HasSubstr("innerHTML"))) << name;
  }
  EXPECT_LT(bytes, 50'000U);
}

TEST_F(PageServerTest, EveryAnswerForbidsWhatThePageDoesNotNeed) {
  Start();
  for (const char* path : {"/", "/page.js", "/node.json", "/nothing"}) {
    const std::string policy = Get(path).Header("Content-Security-Policy");
    EXPECT_THAT(policy, HasSubstr("default-src 'none'")) << path;
    EXPECT_THAT(policy, HasSubstr("script-src 'self';")) << path;
    EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'")) << path;
    EXPECT_THAT(policy, HasSubstr("require-trusted-types-for 'script'")) << path;
    EXPECT_THAT(policy, Not(HasSubstr("unsafe"))) << path;
    EXPECT_EQ(Get(path).Header("X-Content-Type-Options"), "nosniff") << path;
  }
}

TEST_F(PageServerTest, AnUnchangedDocumentIsNotSentAgain) {
  Start();
  const Answer first = Get("/node.json");
  const Answer second = Get("/node.json", "If-None-Match: " + first.Header("ETag") + "\r\n");
  EXPECT_EQ(second.code, 304);
  EXPECT_EQ(second.body, "");
  EXPECT_EQ(Get("/node.json", "If-None-Match: \"older\"\r\n").body, first.body);
}

TEST_F(PageServerTest, ExplainsTheContainersOnRecord) {
  node_.decisions = {{.key = {"uid", "main"},
                      .pod_namespace = "shop",
                      .pod_name = "web",
                      .time = {},
                      .admitted = true,
                      .commit = {},
                      .json = "{}"}};
  Start();
  EXPECT_THAT(Get("/why/" + PageIdOf({"uid", "main"})).body, HasSubstr("shop/web/main"));
  EXPECT_EQ(Get("/why/" + PageIdOf({"uid", "other"})).code, 404);
  EXPECT_EQ(Get("/why/../../etc/passwd").code, 404);
}

TEST_F(PageServerTest, OtherNamesThanThisMachinesAreRejected) {
  Start();
  for (const char* host : {"localhost:80", "127.0.0.1:80", "[::1]:80", "[::1]", "10.0.0.1"}) {
    EXPECT_EQ(Get("/node.json", "", host).code, 200) << host;
  }
  for (const char* host : {"rebound.example.com", "rebound.example.com:80", "localhost.example", "",
                           ":", "[", "::1x"}) {
    EXPECT_EQ(Get("/node.json", "", host).code, 403) << host;
  }
}

TEST_F(PageServerTest, OtherPathsAreNotFound) {
  Start();
  for (const char* path : {"/metrics", "/page.html", "/node", "/node.json/x", "//"}) {
    EXPECT_EQ(Get(path).code, 404) << path;
  }
}

}  // namespace
}  // namespace qrm::manager::page_server_test
