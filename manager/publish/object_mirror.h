// One object of the API server as it is now, by a watch and by the answers to our own writes.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "cluster/list_watch.h"

namespace qrm::manager {

/// Threads: that of its ListWatch.
class ObjectMirror final : public cluster::ObjectListener {
 public:
  /// `on_change` runs whenever the object may have changed.
  explicit ObjectMirror(std::function<void()> on_change) : on_change_(std::move(on_change)) {}

  /// Whether it is known if there is such an object.
  bool known() const { return known_; }
  /// Null when there is none.
  const nlohmann::json& object() const { return object_; }
  /// The answer to a write; one that is older than what is known changes nothing.
  void Take(const nlohmann::json& object);

  void OnListBegin() override { listed_ = nullptr; }
  void OnItem(const nlohmann::json& object) override {
    listed_ = object.is_object() ? object : nullptr;
  }
  void OnListEnd(const std::string& version) override;
  void OnSet(const nlohmann::json& object) override;
  void OnDelete(const nlohmann::json& last_state) override;
  void OnVersion(const std::string& /*version*/) override {}

 private:
  const std::function<void()> on_change_;
  bool known_ = false;
  nlohmann::json object_;
  nlohmann::json listed_;
};

}  // namespace qrm::manager
