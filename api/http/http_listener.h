// Serves HTTP/1.1 on one port.
#pragma once

#include <memory>
#include <string>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "api/http/http_address.h"
#include "api/http/http_session.h"

namespace qrm {

/// A port that silent, slow and wordy peers do not block: HttpConnections chooses which to close.
/// It also answers when the process has no file handle left, except those that it keeps back.
///
/// Threads: that of `io`; Listen before it runs, Close and the destructor after.
class HttpListener {
 public:
  /// `io` outlives the listener.
  HttpListener(boost::asio::io_context& io, HttpHandler handler, const HttpRules& rules = {});
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  /// Without a host: on IPv6 and IPv4, or on IPv4 alone where the kernel has no other. `key` is
  /// where the address comes from. Errors: kUnavailable when the address is taken or not ours.
  Status Listen(const HttpAddress& address, const std::string& key, HttpSecurity security = {});
  void Close();

  /// Where it listens; 0 when it does not.
  int port() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace qrm
