// Writes one object of the API server, one request after another, and ever later while it fails.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/base/status.h"
#include "cluster/api_client.h"

namespace qrm::manager {

/// Threads: that of the client, which is destroyed first.
class ObjectWriter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// Gets the object as it is after the write.
  using Taken = std::function<void(const nlohmann::json& object)>;

  static constexpr std::chrono::seconds kFirstBackoff{1};
  static constexpr std::chrono::seconds kMostBackoff{60};

  /// `what` is written: a word for the log. Two writes are `pace` apart.
  ObjectWriter(std::string what, std::chrono::milliseconds pace)
      : what_(std::move(what)), pace_(pace) {}

  /// False while a write is under way, and for a while after one.
  bool MayWrite(Time now) const { return !busy_ && now >= next_; }
  bool busy() const { return busy_; }
  /// When it may again, unless it is busy.
  Time next() const { return next_; }
  /// Only when it may.
  void Write(cluster::ApiClient& client, cluster::ApiRequest request, Taken taken);
  /// There is nothing to write any more, so that what failed is past.
  void Forget() { problem_ = OkStatus(); }

  uint64_t writes() const { return writes_; }
  uint64_t failures() const { return failures_; }
  /// Why the latest write failed; OK when it did not.
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
