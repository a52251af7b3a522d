// One connection of an HTTP port.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/sockets.h"
#include "api/base/status.h"
#include "api/http/http_connections.h"
#include "api/http/tls_files.h"

namespace qrm {

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> more_headers;
};

/// A request that was read whole.
struct HttpQuestion {
  std::string method;
  std::string target;  ///< the path, with its query
  std::string body;
  std::string host;           ///< as the client named this server
  std::string origin;         ///< whose page asks; empty: no page, or one that may hide it
  std::string content_type;   ///< of the body
  std::string if_none_match;  ///< the tag of the answer that the client has
};
/// Takes the answer, once. Threads: any.
using HttpReply = std::function<void(HttpAnswer)>;
/// Answers at once or later. Threads: that of the port.
using HttpHandler = std::function<void(HttpQuestion, HttpReply)>;

/// Answers GET of a path at once, and rejects all other methods.
HttpHandler AnswerGet(std::function<HttpAnswer(std::string_view path)> answer);

/// What a port bears.
struct HttpRules {
  enum class AfterAnswer { kClose, kKeepOpen };

  std::size_t most_body_bytes = 0;
  AfterAnswer after_answer = AfterAnswer::kClose;
  HttpConnections::Limits connections;
  std::chrono::milliseconds idle{120'000};  ///< of connections that were kept open
};

/// Checks whether the owner of a bearer token may ask, at once or later on the same thread.
using HttpGate =
    std::function<void(const std::string& token, const std::function<void(const Status&)>& done)>;

/// Who gets in.
struct HttpSecurity {
  std::shared_ptr<TlsFiles> tls;  ///< null: without TLS
  HttpGate gate;                  ///< empty: every client
  /// Whether every client may read a path in spite of `gate`; empty: no path.
  std::function<bool(std::string_view path)> is_open;
};

/// What all connections of one port share.
struct HttpSite {
  HttpSite(HttpHandler site_handler, const HttpRules& site_rules)
      : handler(std::move(site_handler)), rules(site_rules), connections(site_rules.connections) {}

  const HttpHandler handler;
  const HttpRules rules;
  HttpSecurity security;
  HttpConnections connections;
};

/// Reads a request from `socket`, has the gate judge it, writes the answer, closes or reads the
/// next one. Owns itself.
/// Threads: that of the socket's loop.
void ServeHttp(TcpSocket socket, const std::shared_ptr<HttpSite>& site);

}  // namespace qrm
