// Compares versions, because a watch may report a write later than the write's answer; doubles the
// wait between writes after each failure.
#include "manager/publish/published_object.h"

#include <algorithm>
#include <random>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include "api/base/foreign_json.h"
#include "api/base/log.h"
#include "api/resource_version.h"

namespace qrm::manager {
namespace {

using std::chrono::steady_clock;

/// By their versions; below 0: `one` is older.
int Compare(const nlohmann::json& one, const nlohmann::json& other) {
  const auto version = [](const nlohmann::json& object) {
    const nlohmann::json::json_pointer path("/metadata/resourceVersion");
    return object.contains(path) && object[path].is_string() ? object[path].get<std::string>()
                                                             : std::string();
  };
  return CompareVersions(version(one), version(other));
}

}  // namespace

struct PublishedObject::Timer : boost::asio::steady_timer {
  using boost::asio::steady_timer::basic_waitable_timer;
};

PublishedObject::PublishedObject(boost::asio::io_context& io, std::string what,
                                 std::chrono::milliseconds pace, std::function<void()> on_change)
    : what_(std::move(what)),
      pace_(pace),
      on_change_(std::move(on_change)),
      timer_(std::make_unique<Timer>(io)),
      object_(std::make_unique<nlohmann::json>()),
      listed_(std::make_unique<nlohmann::json>()) {}

PublishedObject::~PublishedObject() = default;

void PublishedObject::OnListBegin() {
  *listed_ = nullptr;
}

void PublishedObject::OnItem(const nlohmann::json& object) {
  *listed_ = object.is_object() ? object : nullptr;
}

void PublishedObject::OnListEnd(const std::string& /*version*/) {
  known_ = true;
  *object_ = std::exchange(*listed_, nullptr);
  on_change_();
}

void PublishedObject::OnSet(const nlohmann::json& object) {
  if (Compare(object, *object_) > 0) {
    *object_ = object;
  }
  on_change_();
}

void PublishedObject::OnDelete(const nlohmann::json& last_state) {
  if (Compare(last_state, *object_) >= 0) {
    *object_ = nullptr;
  }
  on_change_();
}

void PublishedObject::Settle(cluster::ApiClient& client,
                             std::optional<cluster::ApiRequest> request) {
  if (!request.has_value()) {
    problem_ = OkStatus();
  } else if (!busy_ && steady_clock::now() < next_) {
    timer_->expires_at(next_);
    timer_->async_wait([this](const boost::system::error_code& error) {
      if (!error) {
        on_change_();
      }
    });
  } else if (!busy_) {
    busy_ = true;
    client.Call(*std::move(request),
                [this](const StatusOr<std::string>& body) { TakeAnswer(body); });
  }
}

void PublishedObject::TakeAnswer(const StatusOr<std::string>& body) {
  busy_ = false;
  if (!body.ok()) {
    Fail(body.status());
    return;
  }
  ++writes_;
  if (!std::exchange(problem_, OkStatus()).ok()) {
    log::Info("publishing to the API server works again", {{"object", what_}});
  }
  backoff_ = std::chrono::milliseconds(0);
  next_ = steady_clock::now() + pace_;
  OnSet(ParseJson(*body).value_or(nlohmann::json()));
}

void PublishedObject::RetryNow() {
  if (!problem_.ok()) {
    backoff_ = std::chrono::milliseconds(0);
    next_ = std::min(next_, steady_clock::now());
  }
}

void PublishedObject::Fail(const Status& why) {
  ++failures_;
  if (problem_.ok()) {
    log::Warning("cannot publish to the API server",
                 {{"object", what_}, {"error", MessageOf(why)}});
  }
  problem_ = why;
  backoff_ = std::clamp<std::chrono::milliseconds>(2 * backoff_, kFirstBackoff, kMostBackoff);
  // Up to half less, so that not all nodes of a cluster try again at the same time.
  std::random_device random;
  std::uniform_int_distribution<int> wait(static_cast<int>(backoff_.count() / 2),
                                          static_cast<int>(backoff_.count()));
  next_ = steady_clock::now() + std::chrono::milliseconds(wait(random));
}

}  // namespace qrm::manager
