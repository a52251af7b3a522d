// Writes one object of the API server, one request at a time, with backoff after failures.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/base/status.h"
#include "cluster/api_client.h"

namespace qrm::manager {

/// Threads: the client's thread. The client is destroyed first.
class ObjectWriter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// Gets the object after the write.
  using Taken = std::function<void(const nlohmann::json& object)>;

  static constexpr std::chrono::seconds kFirstBackoff{1};
  static constexpr std::chrono::seconds kMostBackoff{60};

  /// `what` names the object in the log. Two writes are at least `pace` apart.
  ObjectWriter(std::string what, std::chrono::milliseconds pace)
      : what_(std::move(what)), pace_(pace) {}

  /// False during a write, and for some time after it.
  bool MayWrite(Time now) const { return !busy_ && now >= next_; }
  bool busy() const { return busy_; }
  /// The earliest time of the next write, unless busy.
  Time next() const { return next_; }
  /// Call only if MayWrite.
  void Write(cluster::ApiClient& client, cluster::ApiRequest request, Taken taken);
  /// Ends the wait after failures, because the API server is reachable again.
  void RetryNow();
  /// Clears the problem, because there is nothing left to write.
  void Forget() { problem_ = OkStatus(); }

  uint64_t writes() const { return writes_; }
  uint64_t failures() const { return failures_; }
  /// Why the latest write failed; OK if it succeeded.
  const Status& problem() const { return problem_; }

 private:
  void Fail(const Status& why);

  const std::string what_;
  const std::chrono::milliseconds pace_;
  bool busy_ = false;
  Time next_;
  std::chrono::milliseconds backoff_{0};
  uint64_t writes_ = 0;
  uint64_t failures_ = 0;
  Status problem_;
};

}  // namespace qrm::manager
