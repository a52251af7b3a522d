// One request on a connection of its own.
#include "tools/qrmctl/scheduler_client.h"

#include <chrono>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "api/base/errorf.h"
#include "api/http/http_address.h"
#include "api/http/https_connection.h"
#include "cluster/credentials.h"

namespace qrm::manager::cli {
namespace {

namespace http = boost::beast::http;

constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";
constexpr char kDefaultPort[] = ":9755";
constexpr unsigned kOk = 200;
/// It judges some 100,000 nodes a second.
constexpr std::chrono::seconds kSchedulerTimeout{30};

Status NobodyThere(const HttpsUrl& server, const std::string& cause) {
  return Errorf(StatusCode::kUnavailable,
                "cannot ask qrm-scheduler at {} port {}: {}; run this in its pod, forward its port "
                "(kubectl port-forward), or give --kubeconfig",
                server.host, server.port, cause);
}

std::string WithoutLastBreak(std::string text) {
  while (text.ends_with('\n')) {
    text.pop_back();
  }
  return text;
}

/// "HOST:PORT" of what follows the scheme.
std::string HostAndPort(std::string rest) {
  if (rest.ends_with('/')) {
    rest.pop_back();
  }
  if (rest.find(':') == std::string::npos || rest.ends_with(']')) {
    rest += kDefaultPort;
  }
  return rest;
}

StatusOr<HttpsAnswer> AskInPlain(const HttpsUrl& server, const std::string& target) {
  boost::asio::ip::tcp::iostream stream;
  stream.expires_after(kSchedulerTimeout);
  stream.connect(server.host, server.port);
  if (!stream) {
    return Status(StatusCode::kUnavailable, stream.error().message());
  }
  const bool is_v6 = server.host.find(':') != std::string::npos;
  stream << "GET " << target
         << " HTTP/1.1\r\nHost: " << (is_v6 ? "[" + server.host + "]" : server.host)
         << "\r\nConnection: close\r\n\r\n"
         << std::flush;
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  http::response_parser<http::string_body> parser;
  parser.eager(true);
  parser.body_limit(boost::none);
  boost::system::error_code error;
  parser.put(boost::asio::buffer(text), error);
  if (error || !parser.is_done()) {
    return Status(StatusCode::kUnavailable,
                  "the server cut its answer short, or is not an HTTP server");
  }
  return HttpsAnswer{.status = parser.get().result_int(), .body = std::move(parser.get().body())};
}

StatusOr<HttpsAnswer> AskOverTls(const HttpsUrl& server, const std::string& credentials,
                                 const std::string& target) {
  cluster::Credentials files({.authorities = {.file = credentials + "/ca.crt"},
                              .certificate = {.file = credentials + "/tls.crt"},
                              .key = {.file = credentials + "/tls.key"}});
  QRM_ASSIGN_OR_RETURN(auto tls, files.Tls());
  boost::asio::io_context io{1};
  const auto connection =
      std::make_shared<HttpsConnection>(io, HttpsPeer{.url = server, .tls = std::move(tls)});
  StatusOr<HttpsAnswer> answer = HttpsAnswer();
  connection->Open(kSchedulerTimeout, [&](const Status& opened) {
    if (!opened.ok()) {
      answer = opened;
      return;
    }
    connection->Call({.target = target}, kSchedulerTimeout,
                     [&](StatusOr<HttpsAnswer> got) { answer = std::move(got); });
  });
  io.run();
  return answer;
}

}  // namespace

StatusOr<SchedulerUrl> ParseSchedulerUrl(const std::string& url) {
  if (url.starts_with(kHttps)) {
    const auto server = ParseHttpsUrl(std::string(kHttps) + HostAndPort(url.substr(kHttps.size())));
    if (server.ok() && server->target == "/") {
      return SchedulerUrl{.scheme = SchedulerUrl::Scheme::kHttps, .server = *server};
    }
  } else if (url.starts_with(kHttp)) {
    const auto address = ParseHttpAddress(HostAndPort(url.substr(kHttp.size())));
    if (address.ok() && !address->host.empty()) {
      return SchedulerUrl{.server = {.host = address->host, .port = std::to_string(address->port)}};
    }
  }
  return Errorf(StatusCode::kInvalidArgument,
                "\"{}\" is not where qrm-scheduler serves; write one such as "
                "https://127.0.0.1:9755, or without TLS http://127.0.0.1:9755",
                url);
}

StatusOr<std::string> AskScheduler(const SchedulerUrl& url, const std::string& credentials,
                                   const std::string& target) {
  StatusOr<HttpsAnswer> answer = url.scheme == SchedulerUrl::Scheme::kHttps
                                     ? AskOverTls(url.server, credentials, target)
                                     : AskInPlain(url.server, target);
  if (!answer.ok()) {
    return NobodyThere(url.server, MessageOf(answer.status()));
  }
  return answer->status == kOk
             ? StatusOr<std::string>(std::move(answer->body))
             : Status(StatusCode::kNotFound, WithoutLastBreak(std::move(answer->body)));
}

}  // namespace qrm::manager::cli
