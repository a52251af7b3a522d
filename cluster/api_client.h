// Calls the API server: single requests, and streams that last as long as the server sends lines.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "cluster/access.h"

namespace qrm::cluster {

struct ApiRequest {
  std::string method = "GET";
  std::string path;
  std::string content_type = "application/json";
  std::string body;
  std::chrono::milliseconds timeout{10'000};
  std::size_t most_answer_bytes = std::size_t{64} << 20;  ///< beyond: kResourceExhausted
};

/// How a stream ended: OK at the time that was asked for.
struct StreamEnd {
  Status status;
  std::optional<std::chrono::seconds> retry_after;
};

/// Callbacks of a stream. Any of them may destroy it.
struct StreamListener {
  std::function<void()> on_open = [] {};  ///< the server has begun to answer
  std::function<void(std::string_view line)> on_line;
  std::function<void(const StreamEnd&)> on_end;
};

/// A stream of lines. Destroying it ends it; no callback runs afterwards.
class ApiStream {
 public:
  struct Options {
    std::string path;
    std::chrono::milliseconds timeout{10'000};   ///< for the answer's beginning
    std::chrono::milliseconds silence{180'000};  ///< without a byte: kDeadlineExceeded
  };
  ~ApiStream();
  ApiStream(const ApiStream&) = delete;
  ApiStream& operator=(const ApiStream&) = delete;

 private:
  friend class ApiClient;
  struct Reading;
  explicit ApiStream(std::shared_ptr<Reading> reading) : reading_(std::move(reading)) {}

  const std::shared_ptr<Reading> reading_;
};

/// Sends up to `Options::connections` requests at once over connections that it keeps; others wait.
///
/// Errors: kInvalidArgument for 400 and 422, kUnauthenticated, kPermissionDenied, kNotFound,
/// kAborted for 409, kOutOfRange for 410, kUnavailable for all other answers and for none,
/// kDeadlineExceeded. 429 is asked again after the time that it names, and 401 once with a token
/// that is read again. A request that got no answer may have been carried out: only those that may
/// be carried out twice, all but POST, are sent again by themselves.
///
/// Threads: that of `io`.
class ApiClient {
 public:
  struct Options {
    std::string user_agent = "qrm";
    std::size_t connections = 8;
  };
  using Done = std::function<void(StatusOr<std::string> body)>;

  /// `io` outlives it.
  ApiClient(boost::asio::io_context& io, ClusterAccess access, Options options);
  /// No callback runs afterwards.
  ~ApiClient();
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  const ClusterAccess& access() const;

  /// `done` runs once, later, with the body of the answer.
  void Call(ApiRequest request, Done done);

  /// GET whose answer is reported line by line, then its end, on a separate connection.
  std::unique_ptr<ApiStream> Stream(ApiStream::Options options, StreamListener listener);

 private:
  struct Impl;
  const std::shared_ptr<Impl> impl_;
};

/// A callback that passes its argument to `next`, with the object behind `weak`, unless that is
/// gone or has `stopped`.
template <typename Self, typename Next>
auto WhileItRuns(std::weak_ptr<Self> weak, Next next) {
  return [weak = std::move(weak), next = std::move(next)](const auto& got) {
    if (const auto self = weak.lock(); self != nullptr && !self->stopped) {
      next(*self, got);
    }
  };
}

/// The error that an answer with this status is, by the message of its v1 Status body.
Status ErrorOf(const std::string& what, unsigned status, const std::string& body);

}  // namespace qrm::cluster
