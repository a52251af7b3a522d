// One connection of an HTTP port.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/ip/tcp.hpp>

#include "api/base/status.h"
#include "manager/observability/http_connections.h"
#include "manager/observability/tls_files.h"

namespace qrm::manager {

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string type = "text/plain; charset=utf-8";
};
/// What is answered to GET of a path.
using HttpHandler = std::function<HttpAnswer(std::string_view path)>;

/// Tells whether who sends this bearer token may ask, at once or later on the same thread.
using HttpGate =
    std::function<void(const std::string& token, const std::function<void(const Status&)>& done)>;

/// Who gets in.
struct HttpSecurity {
  std::shared_ptr<TlsFiles> tls;  ///< null: without TLS
  HttpGate gate;                  ///< empty: whoever connects
};

/// What all connections of one port share.
struct HttpSite {
  HttpHandler handler;
  HttpSecurity security;
  HttpConnections connections;
};

/// Reads a request from `socket`, has the gate judge it, writes the answer, closes. Owns itself.
/// Threads: that of the socket's loop.
void ServeHttp(boost::asio::ip::tcp::socket socket, const std::shared_ptr<HttpSite>& site);

}  // namespace qrm::manager
