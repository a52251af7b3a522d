#include "api/http/http_listener.h"

#include <chrono>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/rejected.h"
#include "test/support/is_ok.h"
#include "test/support/loop_thread.h"
#include "test/support/used_up_handles.h"

namespace qrm::http_listener_test {
namespace {

using boost::asio::ip::tcp;
using testing::HasSubstr;

std::string Post(const std::string& body) {
  return "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// The answer's status line and body.
std::string ReadAnswer(tcp::iostream& stream) {
  std::string status;
  std::getline(stream, status);
  std::size_t length = 0;
  for (std::string line; std::getline(stream, line) && line != "\r";) {
    if (line.starts_with("Content-Length: ")) {
      length = std::stoul(line.substr(16));
    }
  }
  std::string body(length, ' ');
  stream.read(body.data(), static_cast<std::streamsize>(length));
  return status + body;
}

class HttpListenerTest : public testing::Test {
 protected:
  void TearDown() override {
    loop_.Stop();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  /// Listens, and connects.
  tcp::iostream Connect(const HttpHandler& handler, const HttpRules& rules) {
    listener_ = std::make_unique<HttpListener>(loop_.io(), handler, rules);
    loop_.Run(
        [&] { EXPECT_TRUE(test::IsOk(listener_->Listen({.host = "127.0.0.1"}, "address"))); });
    return tcp::iostream("127.0.0.1", std::to_string(listener_->port()));
  }

  test::LoopThread loop_;
  std::unique_ptr<HttpListener> listener_;
  std::vector<std::thread> threads_;
  std::vector<HttpReply> kept_;
  const HttpHandler echo_ = [](const HttpQuestion& question, const HttpReply& reply) {
    reply({.body = question.method + " " + question.target + " " + question.body});
  };
  const HttpRules keep_open_{.most_body_bytes = 1000,
                             .after_answer = HttpRules::AfterAnswer::kKeepOpen};
};

TEST_F(HttpListenerTest, AConnectionThatIsKeptCarriesTheNextRequest) {
  tcp::iostream stream = Connect(echo_, keep_open_);
  stream << Post("one") << std::flush;
  EXPECT_THAT(ReadAnswer(stream), HasSubstr("POST /echo one"));
  stream << Post("two") << std::flush;
  EXPECT_THAT(ReadAnswer(stream), HasSubstr("POST /echo two"));
}

TEST_F(HttpListenerTest, ByDefaultAnAnswerEndsTheConnection) {
  tcp::iostream stream = Connect(echo_, {});
  stream << "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" << std::flush;
  EXPECT_THAT(ReadAnswer(stream), HasSubstr("GET / "));
  EXPECT_EQ(stream.get(), std::char_traits<char>::eof());
}

TEST_F(HttpListenerTest, ARequestThatIsAnsweredCountsNoMoreThoughAnotherThreadKeepsItsReply) {
  const HttpHandler elsewhere = [this](const HttpQuestion& question, const HttpReply& reply) {
    kept_.push_back(reply);
    threads_.emplace_back([reply, body = question.body] { reply({.body = body}); });
  };
  HttpRules rules{.most_body_bytes = 1000};
  rules.connections.body_bytes = 150;
  tcp::iostream first = Connect(elsewhere, rules);
  first << Post(std::string(100, 'a')) << std::flush;
  EXPECT_THAT(ReadAnswer(first), HasSubstr("aaaa"));
  EXPECT_EQ(first.get(), std::char_traits<char>::eof());
  tcp::iostream second("127.0.0.1", std::to_string(listener_->port()));
  second << Post(std::string(100, 'b')) << std::flush;
  EXPECT_THAT(ReadAnswer(second), HasSubstr("bbbb"));
  EXPECT_EQ(second.get(), std::char_traits<char>::eof());
}

TEST_F(HttpListenerTest, ABodyBeyondTheLimitIsNotRead) {
  const uint64_t rejected = RejectedSoFar(Rejected::kHttpRequest);
  tcp::iostream stream = Connect(echo_, keep_open_);
  stream << Post(std::string(1001, 'x')) << std::flush;
  const std::string rest{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_EQ(rest, "");
  EXPECT_EQ(RejectedSoFar(Rejected::kHttpRequest), rejected + 1);
}

TEST_F(HttpListenerTest, UnfinishedBodiesShareOneBudget) {
  HttpRules rules = keep_open_;
  rules.connections.body_bytes = 1500;
  tcp::iostream first = Connect(echo_, rules);
  const std::string request = Post(std::string(1000, 'x'));
  const std::string part = request.substr(0, request.size() - 100);
  first << part << std::flush;
  tcp::iostream second("127.0.0.1", std::to_string(listener_->port()));
  second << part << std::flush;
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(first.get(), std::char_traits<char>::eof());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(4))
      << "it ended by its time";
  second << std::string(100, 'x') << std::flush;
  EXPECT_THAT(ReadAnswer(second), HasSubstr("200 OK"));
}

TEST_F(HttpListenerTest, AnswersWhenTheProcessHasNoFileHandleLeft) {
  Connect(echo_, {.most_body_bytes = 1000});
  boost::asio::io_context io;
  tcp::socket client(io);
  client.open(tcp::v4());
  const test::UsedUpHandles used_up;
  client.connect(
      {boost::asio::ip::address_v4::loopback(), static_cast<uint16_t>(listener_->port())});
  boost::asio::write(client, boost::asio::buffer(Post("x")));
  std::string answer;
  boost::system::error_code end;
  boost::asio::read(client, boost::asio::dynamic_buffer(answer), end);
  EXPECT_THAT(answer, HasSubstr("200 OK"));
}

TEST_F(HttpListenerTest, AnotherThreadMayAnswer) {
  tcp::iostream stream = Connect(
      [this](const HttpQuestion& question, const HttpReply& reply) {
        threads_.emplace_back([reply, body = question.body] { reply({.body = "later " + body}); });
      },
      keep_open_);
  stream << Post("x") << std::flush;
  EXPECT_THAT(ReadAnswer(stream), HasSubstr("later x"));
}

}  // namespace
}  // namespace qrm::http_listener_test
