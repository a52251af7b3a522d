// Serves short answers to GET over HTTP/1.1 on one thread, one request per connection.
#include "manager/observability/http_server.h"

#include <chrono>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <prometheus/text_serializer.h>

#include "manager/observability/node_collector.h"

namespace qrm::manager {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds kRequestTimeout{5};
constexpr std::chrono::milliseconds kPauseAfterError{100};
/// Scrapers are few; whoever opens more has to wait for others to end.
constexpr int kMaxConnections = 32;
constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";
constexpr char kTextType[] = "text/plain; charset=utf-8";

using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;
using Answer = std::function<Response(const Request&)>;

Response Text(http::status status, std::string body, const char* type = kTextType) {
  Response response(status, 11);
  response.set(http::field::content_type, type);
  response.keep_alive(false);
  response.body() = std::move(body);
  response.prepare_payload();
  return response;
}

/// One connection: reads a request, writes its answer, closes. Owned by what is in flight.
class Session final : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, Answer answer, std::function<void()> ended)
      : stream_(std::move(socket)), answer_(std::move(answer)), ended_(std::move(ended)) {}
  ~Session() { ended_(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Run() {
    stream_.expires_after(kRequestTimeout);
    http::async_read(stream_, buffer_, request_,
                     [self = shared_from_this()](error_code error, std::size_t) {
                       if (!error) {
                         self->Write();
                       }
                     });
  }

 private:
  void Write() {
    response_ = answer_(request_);
    http::async_write(stream_, response_,
                      [self = shared_from_this()](error_code, std::size_t) { self->Close(); });
  }

  void Close() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{std::size_t{16} * 1024};
  Request request_;
  Response response_;
  Answer answer_;
  std::function<void()> ended_;
};

/// Reads `:9753` or `127.0.0.1:9753`.
StatusOr<tcp::endpoint> ParseAddress(const std::string& address) {
  const auto colon = address.rfind(':');
  const std::string host = colon == std::string::npos ? "" : address.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  const bool is_number = !port.empty() && port.size() <= 5 &&
                         port.find_first_not_of("0123456789") == std::string::npos;
  error_code error;
  const auto ip = boost::asio::ip::make_address(host.empty() ? "0.0.0.0" : host, error);
  if (error || !is_number || std::stoi(port) > UINT16_MAX) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot serve metrics on \"{}\": it is no address; write it like :9753 or "
                  "127.0.0.1:9753",
                  address);
  }
  return tcp::endpoint(ip, static_cast<uint16_t>(std::stoi(port)));
}

}  // namespace

struct HttpServer::Impl {
  Impl(Metrics& server_metrics, const Snapshots& snapshots, const Plugins& plugins,
       const NodeServices& node_services)
      : metrics(server_metrics),
        collector(snapshots, plugins, node_services),
        node(node_services) {}

  Response AnswerTo(const Request& request) const {
    if (request.method() != http::verb::get) {
      return Text(http::status::method_not_allowed, "only GET is served here\n");
    }
    const auto target = request.target();
    const std::string_view path(target.data(), target.size());
    if (path == "/metrics") {
      return MetricsAnswer();
    }
    if (path == "/healthz") {
      return Text(http::status::ok, "ok\n");
    }
    return path == "/readyz" ? ReadyAnswer()
                             : Text(http::status::not_found, "try /metrics, /healthz, /readyz\n");
  }

  Response MetricsAnswer() const {
    std::vector<prometheus::MetricFamily> families = metrics.registry->Collect();
    for (prometheus::MetricFamily& family : collector.Collect()) {
      families.push_back(std::move(family));
    }
    return Text(http::status::ok, prometheus::TextSerializer().Serialize(families), kMetricsType);
  }

  Response ReadyAnswer() const {
    const NodeStatus status = node.Status();
    std::string text = status.ready() ? "ok\n" : "";
    for (const std::string& reason : status.not_ready_reasons) {
      text += reason + "\n";
    }
    for (const std::string& reason : status.degraded_reasons) {
      text += "degraded: " + reason + "\n";
    }
    return Text(status.ready() ? http::status::ok : http::status::service_unavailable, text);
  }

  Status Listen(const tcp::endpoint& endpoint, const std::string& address) {
    error_code error;
    acceptor.open(endpoint.protocol(), error);
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) {
      acceptor.bind(endpoint, error);
    }
    if (!error) {
      acceptor.listen(tcp::acceptor::max_listen_connections, error);
    }
    if (error) {
      return Errorf(StatusCode::kUnavailable,
                    "cannot serve metrics on {}: {}; stop who listens there or set metrics-address",
                    address, error.message());
    }
    return OkStatus();
  }

  void Accept() {
    acceptor.async_accept([this](error_code error, tcp::socket socket) {
      if (error) {
        AcceptLater();
        return;
      }
      ++connections;
      std::make_shared<Session>(
          std::move(socket), [this](const Request& request) { return AnswerTo(request); },
          [this] { SessionEnded(); })
          ->Run();
      if (connections < kMaxConnections) {
        Accept();
      }
    });
  }

  /// Pause after the process ran out of descriptors, until others are closed.
  void AcceptLater() {
    pause.expires_after(kPauseAfterError);
    pause.async_wait([this](error_code error) {
      if (!error) {
        Accept();
      }
    });
  }

  void SessionEnded() {
    if (connections-- == kMaxConnections && !stopped) {
      Accept();
    }
  }

  Metrics& metrics;
  NodeCollector collector;
  const NodeServices& node;
  // On the thread only, while it runs. They outlive io, whose end ends what is in flight.
  int connections = 0;
  bool stopped = false;
  boost::asio::io_context io;
  tcp::acceptor acceptor{io};
  boost::asio::steady_timer pause{io};
  std::thread thread;
};

HttpServer::HttpServer(Metrics& metrics, const Snapshots& snapshots, Plugins& plugins,
                       const NodeServices& node)
    : impl_(std::make_unique<Impl>(metrics, snapshots, plugins, node)) {}

HttpServer::~HttpServer() {
  Stop();
}

Status HttpServer::Start(const std::string& address) {
  if (address.empty()) {
    return OkStatus();
  }
  QRM_ASSIGN_OR_RETURN(const tcp::endpoint endpoint, ParseAddress(address));
  QRM_RETURN_IF_ERROR(impl_->Listen(endpoint, address));
  impl_->Accept();
  impl_->thread = std::thread([this] { impl_->io.run(); });
  return OkStatus();
}

void HttpServer::Stop() {
  if (!impl_->thread.joinable()) {
    return;
  }
  impl_->io.stop();
  impl_->thread.join();
  impl_->stopped = true;
  error_code ignored;
  impl_->acceptor.close(ignored);
}

int HttpServer::port() const {
  error_code ignored;
  const tcp::endpoint endpoint = impl_->acceptor.local_endpoint(ignored);
  return ignored ? 0 : endpoint.port();
}

}  // namespace qrm::manager
