// Counts identical rejections, and derives the event's name from pod and message.
#include "manager/publish/pod_warnings.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include <fmt/format.h>

#include "manager/publish/node_topology.h"

namespace qrm::manager {
namespace {

/// After this time without a repetition, a rejection is new. The API server keeps events for an
/// hour.
constexpr std::chrono::minutes kForgotten{10};
constexpr std::size_t kMostTold = 1000;

/// The same for identical rejections, also after a restart.
std::string EventName(const PodMessage& warning) {
  constexpr std::size_t kMostBytes = 200;  // an object's name has up to 253
  std::string name = warning.pod_name.substr(0, kMostBytes);
  while (!name.empty() && std::isalnum(static_cast<unsigned char>(name.back())) == 0) {
    name.pop_back();
  }
  return fmt::format("{}.{:016x}", name, HashOf(warning.message, HashOf(warning.pod_uid)));
}

}  // namespace

std::optional<cluster::ApiRequest> PodWarnings::Take(const PodMessage& warning, const Now& now) {
  ForgetOld(now.steady);
  if (told_.size() >= kMostTold) {
    return std::nullopt;
  }
  Told& told = told_[{warning.pod_uid, warning.message}];
  told.first = told.count++ == 0 ? now.wall : told.first;
  told.latest = now.steady;
  if (!MayWrite(told, now.steady)) {
    return std::nullopt;
  }
  --tokens_;
  told.written = now.steady;
  return cluster::WarningRequest({.name = EventName(warning),
                                  .pod_namespace = warning.pod_namespace,
                                  .pod_name = warning.pod_name,
                                  .pod_uid = warning.pod_uid,
                                  .reason = warning.reason,
                                  .message = warning.message,
                                  .component = "qrmd",
                                  .host = node_,
                                  .count = told.count,
                                  .first = told.first,
                                  .last = now.wall});
}

bool PodWarnings::MayWrite(const Told& told, std::chrono::steady_clock::time_point now) {
  while (tokens_ < kBurst && now - refilled_ >= kRefill) {
    ++tokens_;
    refilled_ += kRefill;
  }
  if (tokens_ == kBurst) {
    refilled_ = now;
  }
  return tokens_ > 0 && (!told.written.has_value() || now - *told.written >= kPeriod);
}

void PodWarnings::ForgetOld(std::chrono::steady_clock::time_point now) {
  std::erase_if(told_, [now](const auto& entry) { return now - entry.second.latest > kForgotten; });
}

}  // namespace qrm::manager
