// Kubelet's HTTPS port, with a script's behaviour.
#pragma once

#include <memory>
#include <string>

namespace qrm::test {

class TlsServer;

/// Answers GET /pods at 127.0.0.1 with a certificate that it made and signed itself. Requests
/// without the token get 401, requests for a container's log 403, and other paths 404, which
/// kubelet sends for an unknown path without an authorization.
///
/// Threads: any; it answers one connection after the other.
class TlsKubelet {
 public:
  TlsKubelet();
  ~TlsKubelet();
  TlsKubelet(const TlsKubelet&) = delete;
  TlsKubelet& operator=(const TlsKubelet&) = delete;

  int port() const;
  /// The certificate, as a PEM file has it.
  const std::string& certificate() const;

  void SetToken(const std::string& token);
  /// The token is allowed everything from now on, but no container has a log.
  void AllowAll();
  /// As with `enableDebuggingHandlers: false`: logs get 405 from now on.
  void DisableDebugging();
  void SetAnswer(int status, const std::string& body);
  /// Answers wait until Release.
  void Hold();
  void Release();

  /// Requests that were answered, whatever the answer.
  int answered() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
  const std::unique_ptr<TlsServer> server_;  // last, for its thread asks the other
};

}  // namespace qrm::test
