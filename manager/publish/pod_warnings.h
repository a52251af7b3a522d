// Warnings about pods, as events for the API server at a limited rate.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cluster/requests.h"
#include "manager/state/pod_message.h"

namespace qrm::manager {

/// Creates events of warnings. Identical warnings about a pod are one event with a count, written
/// at once and then at most once a minute. All events share a limit of kBurst at once, and then one
/// every six seconds.
///
/// Threads: one.
class PodWarnings {
 public:
  static constexpr std::chrono::minutes kPeriod{1};
  static constexpr std::chrono::seconds kRefill{6};
  static constexpr int kBurst = 25;

  struct Now {
    std::chrono::steady_clock::time_point steady;
    std::chrono::system_clock::time_point wall;
  };

  explicit PodWarnings(std::string node) : node_(std::move(node)) {}

  /// The request to send. Absent: the warning is only counted, and a later event includes it.
  std::optional<cluster::ApiRequest> Take(const PodMessage& warning, const Now& now);

 private:
  struct Told {
    uint64_t count = 0;
    std::chrono::system_clock::time_point first;
    std::optional<std::chrono::steady_clock::time_point> written;
    std::chrono::steady_clock::time_point latest;
  };

  bool MayWrite(const Told& told, std::chrono::steady_clock::time_point now);
  void ForgetOld(std::chrono::steady_clock::time_point now);

  const std::string node_;
  std::map<std::pair<std::string, std::string>, Told> told_;  // by pod's UID and message
  int tokens_ = kBurst;
  std::chrono::steady_clock::time_point refilled_;
};

}  // namespace qrm::manager
