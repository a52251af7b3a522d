// Answers from snapshots, on one thread for both ports.
#include "manager/observability/http_server.h"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "api/http/http_address.h"
#include "api/http/http_listener.h"
#include "manager/observability/metrics.h"
#include "manager/observability/node_collector.h"
#include "manager/observability/node_services.h"
#include "manager/observability/token_review.h"
#include "manager/registry/plugins.h"
#include "manager/state/state_loop.h"
#include "topology/machine.h"

namespace qrm::manager {
namespace {

/// How often jobs are posted to the loops, so that even the first probe knows how long a loop has
/// been stuck.
constexpr std::chrono::seconds kLookPeriod{1};
constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";
constexpr int kUnavailable = 503;
constexpr int kNotFound = 404;

std::string Lines(const std::vector<std::string>& sentences, const std::string& prefix) {
  std::string text;
  for (const std::string& sentence : sentences) {
    text += prefix + sentence + "\n";
  }
  return text;
}

HttpAnswer OkUnless(const std::vector<std::string>& reasons) {
  return reasons.empty() ? HttpAnswer{.body = "ok\n"}
                         : HttpAnswer{.status = kUnavailable, .body = Lines(reasons, "")};
}

HttpAnswer ReadyAnswer(const NodeStatus& status) {
  HttpAnswer answer = OkUnless(status.not_ready_reasons);
  answer.body += Lines(status.degraded_reasons, "degraded: ");
  return answer;
}

}  // namespace

struct HttpServer::Impl {
  Impl(Metrics& server_metrics, const Snapshots& state, const Plugins& registered,
       NodeServices& node_services, const Machine& node_machine)
      : metrics(server_metrics),
        snapshots(state),
        plugins(registered),
        node(node_services),
        machine(node_machine) {}

  HttpAnswer AnswerMetrics(std::string_view path) const {
    if (path != "/metrics") {
      return {kNotFound, "try /metrics; probes are served at probe-address\n"};
    }
    std::vector<prometheus::MetricFamily> families = metrics.registry->Collect();
    for (prometheus::MetricFamily& family : CollectNode(snapshots, plugins, node, machine)) {
      families.push_back(std::move(family));
    }
    return {.body = prometheus::TextSerializer().Serialize(families), .type = kMetricsType};
  }

  HttpAnswer AnswerProbe(std::string_view path) const {
    if (path == "/healthz") {
      return OkUnless(node.StalledLoops());
    }
    return path == "/readyz" ? ReadyAnswer(node.Status())
                             : HttpAnswer{kNotFound, "try /healthz or /readyz\n"};
  }

  /// The status also remembers since when each subsystem is as it is.
  void LookAtLoops() {
    node.StalledLoops();
    node.Status();
    look.expires_after(kLookPeriod);
    look.async_wait([this](const boost::system::error_code& error) {
      if (!error) {
        LookAtLoops();
      }
    });
  }

  Metrics& metrics;
  const Snapshots& snapshots;
  const Plugins& plugins;
  NodeServices& node;
  const Machine& machine;
  boost::asio::io_context io;
  boost::asio::steady_timer look{io};
  HttpGuard guard;
  HttpListener metrics_listener{
      io, AnswerGet([this](std::string_view path) { return AnswerMetrics(path); })};
  HttpListener probe_listener{
      io, AnswerGet([this](std::string_view path) { return AnswerProbe(path); })};
  std::thread thread;
};

HttpServer::HttpServer(Metrics& metrics, const Snapshots& snapshots, Plugins& plugins,
                       NodeServices& node, const Machine& machine)
    : impl_(std::make_unique<Impl>(metrics, snapshots, plugins, node, machine)) {}

HttpServer::~HttpServer() {
  Stop();
}

Status HttpServer::Start(const HttpOptions& options) {
  if (!options.metrics_address.empty()) {
    QRM_ASSIGN_OR_RETURN(const HttpAddress address, ParseHttpAddress(options.metrics_address));
    QRM_ASSIGN_OR_RETURN(impl_->guard, MakeGuard(impl_->io, options, {"metrics", "/metrics"}));
    QRM_RETURN_IF_ERROR(
        impl_->metrics_listener.Listen(address, "metrics-address", impl_->guard.security));
  }
  if (!options.probe_address.empty()) {
    QRM_ASSIGN_OR_RETURN(const HttpAddress address, ParseHttpAddress(options.probe_address));
    QRM_RETURN_IF_ERROR(impl_->probe_listener.Listen(address, "probe-address"));
    impl_->LookAtLoops();
  }
  if (metrics_port() != 0 || probe_port() != 0) {
    impl_->thread = std::thread([this] { impl_->io.run(); });
  }
  return OkStatus();
}

void HttpServer::Stop() {
  if (impl_->thread.joinable()) {
    impl_->io.stop();
    impl_->thread.join();
    impl_->metrics_listener.Close();
    impl_->probe_listener.Close();
  }
}

int HttpServer::metrics_port() const {
  return impl_->metrics_listener.port();
}

int HttpServer::probe_port() const {
  return impl_->probe_listener.port();
}

}  // namespace qrm::manager
