// An HTTPS server, with a script's behaviour.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace qrm::test {

/// Answers at 127.0.0.1 with a certificate that it made and signed itself.
///
/// Threads: any; it answers one connection after the other, on its own thread.
class TlsServer {
 public:
  struct Request {
    std::string path;
    std::string authorization;  ///< the field's value
    std::string body;
  };
  struct Answer {
    unsigned status = 200;
    std::string body;
  };
  using Handler = std::function<Answer(const Request&)>;

  explicit TlsServer(Handler handler);
  /// The handler must not wait any more.
  ~TlsServer();
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  int port() const;
  /// The certificate and its key, as PEM files have them.
  const std::string& certificate() const;
  const std::string& key() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::test
