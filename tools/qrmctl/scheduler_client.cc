// One request on a connection of its own.
#include "tools/qrmctl/scheduler_client.h"

#include <chrono>
#include <iterator>
#include <string_view>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "api/base/errorf.h"

namespace qrm::manager::cli {
namespace {

namespace http = boost::beast::http;

constexpr char kHttpScheme[] = "http://";
constexpr char kDefaultPort[] = ":9755";
/// It judges some 100,000 nodes a second.
constexpr std::chrono::seconds kSchedulerTimeout{30};

Status NobodyThere(const HttpAddress& address, const std::string& cause) {
  return Errorf(StatusCode::kUnavailable,
                "cannot ask qrm-scheduler at {} port {}: {}; run this in its pod, forward its port "
                "(kubectl port-forward), or give --kubeconfig",
                address.host, address.port, cause);
}

std::string WithoutLastBreak(std::string text) {
  while (text.ends_with('\n')) {
    text.pop_back();
  }
  return text;
}

}  // namespace

StatusOr<HttpAddress> ParseSchedulerUrl(const std::string& url) {
  std::string rest =
      url.starts_with(kHttpScheme) ? url.substr(std::string_view(kHttpScheme).size()) : "";
  if (rest.ends_with('/')) {
    rest.pop_back();
  }
  if (rest.find(':') == std::string::npos || rest.ends_with(']')) {
    rest += kDefaultPort;
  }
  StatusOr<HttpAddress> address = ParseHttpAddress(rest);
  if (address.ok() && !address->host.empty()) {
    return address;
  }
  return Errorf(StatusCode::kInvalidArgument,
                "\"{}\" is not where qrm-scheduler serves; write one such as "
                "http://127.0.0.1:9755 (over TLS, ask it by curl)",
                url);
}

StatusOr<std::string> AskScheduler(const HttpAddress& address, const std::string& target) {
  boost::asio::ip::tcp::iostream stream;
  stream.expires_after(kSchedulerTimeout);
  stream.connect(address.host, std::to_string(address.port));
  if (!stream) {
    return NobodyThere(address, stream.error().message());
  }
  stream << "GET " << target << " HTTP/1.1\r\nHost: " << address.host
         << "\r\nConnection: close\r\n\r\n"
         << std::flush;
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  http::response_parser<http::string_body> parser;
  parser.eager(true);
  parser.body_limit(boost::none);
  boost::system::error_code error;
  parser.put(boost::asio::buffer(text), error);
  if (error || !parser.is_done()) {
    return NobodyThere(address, "what answers cuts its answer short, or is no HTTP server");
  }
  if (parser.get().result() != http::status::ok) {
    return Status(StatusCode::kNotFound, WithoutLastBreak(parser.get().body()));
  }
  return std::move(parser.get().body());
}

}  // namespace qrm::manager::cli
