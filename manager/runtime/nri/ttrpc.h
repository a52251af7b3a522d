// ttrpc calls over one logical connection of the mux: the serving and the calling side.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "manager/runtime/nri/mux.h"

namespace qrm::manager {

/// A request as it arrived.
struct TtrpcCall {
  std::string service;
  std::string method;
  std::string_view payload;          ///< the serialized request, until the handler returns
  std::chrono::nanoseconds timeout;  ///< the rest of the caller's time; 0: not known
};

/// Answers a call with the serialized response or an error. Threads: any; once.
using TtrpcReply = std::function<void(StatusOr<std::string> response)>;
using TtrpcHandler = std::function<void(TtrpcCall call, TtrpcReply reply)>;

/// Passes every unary call on `connection` to `handler`; replies may come in any order. Malformed
/// and oversized requests, and streams, are answered here. A reply beyond kMaxSendBytes becomes
/// kResourceExhausted, since the peer's reader would never recover from it.
///
/// Threads: the I/O loop, before `mux` starts.
void ServeTtrpc(const std::shared_ptr<Mux>& mux, uint32_t connection, TtrpcHandler handler);

/// Calls the service at the other end of `connection`.
///
/// Threads: the I/O loop.
class TtrpcClient {
 public:
  using Done = std::function<void(StatusOr<std::string> response)>;

  /// Before `mux` starts. `io` outlives the client.
  TtrpcClient(boost::asio::io_context& io, const std::shared_ptr<Mux>& mux, uint32_t connection);
  /// Calls without an answer end with kCancelled.
  ~TtrpcClient();
  TtrpcClient(const TtrpcClient&) = delete;
  TtrpcClient& operator=(const TtrpcClient&) = delete;

  /// `done` runs once: with the serialized response, with the peer's error, or with
  /// kDeadlineExceeded.
  void Call(const std::string& service, const std::string& method, const std::string& request,
            std::chrono::nanoseconds timeout, Done done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace qrm::manager
