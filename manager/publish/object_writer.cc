// Waits between writes, and doubles the wait after each failure.
#include "manager/publish/object_writer.h"

#include <algorithm>
#include <random>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/foreign_json.h"
#include "api/base/log.h"

namespace qrm::manager {

void ObjectWriter::Write(cluster::ApiClient& client, cluster::ApiRequest request, Taken taken) {
  busy_ = true;
  client.Call(std::move(request),
              [this, taken = std::move(taken)](const StatusOr<std::string>& body) {
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
                next_ = std::chrono::steady_clock::now() + pace_;
                taken(ParseJson(*body).value_or(nlohmann::json()));
              });
}

void ObjectWriter::RetryNow() {
  if (!problem_.ok()) {
    backoff_ = std::chrono::milliseconds(0);
    next_ = std::min(next_, std::chrono::steady_clock::now());
  }
}

void ObjectWriter::Fail(const Status& why) {
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
  next_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait(random));
}

}  // namespace qrm::manager
