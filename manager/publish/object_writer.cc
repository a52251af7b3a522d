// Waits between writes, doubling the time with each failure.
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
  client.Call(
      std::move(request), [this, taken = std::move(taken)](const StatusOr<std::string>& body) {
        busy_ = false;
        if (!body.ok()) {
          Fail(body.status());
          return;
        }
        ++writes_;
        if (!std::exchange(problem_, OkStatus()).ok()) {
          log::Info("the API server takes what this node publishes again", {{"object", what_}});
        }
        backoff_ = std::chrono::milliseconds(0);
        next_ = std::chrono::steady_clock::now() + pace_;
        taken(ParseJson(*body).value_or(nlohmann::json()));
      });
}

void ObjectWriter::Fail(const Status& why) {
  ++failures_;
  if (problem_.ok()) {
    log::Warning("the API server does not take what this node publishes",
                 {{"object", what_}, {"error", MessageOf(why)}});
  }
  problem_ = why;
  backoff_ = std::clamp<std::chrono::milliseconds>(2 * backoff_, kFirstBackoff, kMostBackoff);
  // Up to a half less, so that the nodes of a cluster do not return at once.
  std::random_device random;
  std::uniform_int_distribution<int> wait(static_cast<int>(backoff_.count() / 2),
                                          static_cast<int>(backoff_.count()));
  next_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait(random));
}

}  // namespace qrm::manager
