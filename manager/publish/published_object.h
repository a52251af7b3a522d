// One object of the API server: its current version, from a watch and from answers to our writes,
// and our writes, one request at a time, with backoff after failures.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "cluster/list_watch.h"

namespace qrm::manager {

/// Threads: that of the ListWatch and of the client, which are destroyed first.
class PublishedObject final : public cluster::ObjectListener {
 public:
  static constexpr std::chrono::seconds kFirstBackoff{1};
  static constexpr std::chrono::seconds kMostBackoff{60};

  /// `what` names the object in the log. Two writes are at least `pace` apart. `on_change` runs
  /// whenever the object may have changed, or may be written again.
  PublishedObject(boost::asio::io_context& io, std::string what, std::chrono::milliseconds pace,
                  std::function<void()> on_change);
  ~PublishedObject() override;
  PublishedObject(const PublishedObject&) = delete;
  PublishedObject& operator=(const PublishedObject&) = delete;

  /// Whether the first list has arrived.
  bool known() const { return known_; }
  /// Null if the object does not exist.
  const nlohmann::json& object() const { return *object_; }

  /// Sends `request`, which makes the object as it should be; absent: it is. During a write, and
  /// for some time after it, nothing is sent, and `on_change` runs at the end of that time.
  void Settle(cluster::ApiClient& client, std::optional<cluster::ApiRequest> request);
  /// Ends the wait after failures, because the API server is reachable again.
  void RetryNow();

  uint64_t writes() const { return writes_; }
  uint64_t failures() const { return failures_; }
  /// Why the latest write failed; OK if it succeeded, or nothing is left to write.
  const Status& problem() const { return problem_; }

  void OnListBegin() override;
  void OnItem(const nlohmann::json& object) override;
  void OnListEnd(const std::string& version) override;
  void OnSet(const nlohmann::json& object) override;
  void OnDelete(const nlohmann::json& last_state) override;
  void OnVersion(const std::string& /*version*/) override {}

 private:
  struct Timer;

  void TakeAnswer(const StatusOr<std::string>& body);
  void Fail(const Status& why);

  const std::string what_;
  const std::chrono::milliseconds pace_;
  const std::function<void()> on_change_;
  const std::unique_ptr<Timer> timer_;
  bool known_ = false;
  const std::unique_ptr<nlohmann::json> object_;
  const std::unique_ptr<nlohmann::json> listed_;
  bool busy_ = false;
  std::chrono::steady_clock::time_point next_;
  std::chrono::milliseconds backoff_{0};
  uint64_t writes_ = 0;
  uint64_t failures_ = 0;
  Status problem_;
};

}  // namespace qrm::manager
