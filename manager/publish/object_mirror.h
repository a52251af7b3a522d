// One object of the API server as it is now, by a watch and by the answers to our own writes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cluster/list_watch.h"

namespace qrm::manager {

/// Threads: that of its ListWatch.
class ObjectMirror final : public cluster::ObjectListener {
 public:
  /// `on_change` runs whenever the object may have changed.
  explicit ObjectMirror(std::function<void()> on_change);
  ~ObjectMirror() override;
  ObjectMirror(const ObjectMirror&) = delete;
  ObjectMirror& operator=(const ObjectMirror&) = delete;

  /// Whether it is known if there is such an object.
  bool known() const { return known_; }
  /// Null when there is none.
  const nlohmann::json& object() const { return *object_; }
  /// The answer to a write; one that is older than what is known changes nothing.
  void Take(const nlohmann::json& object);

  void OnListBegin() override;
  void OnItem(const nlohmann::json& object) override;
  void OnListEnd(const std::string& version) override;
  void OnSet(const nlohmann::json& object) override;
  void OnDelete(const nlohmann::json& last_state) override;
  void OnVersion(const std::string& /*version*/) override {}

 private:
  const std::function<void()> on_change_;
  bool known_ = false;
  const std::unique_ptr<nlohmann::json> object_;
  const std::unique_ptr<nlohmann::json> listed_;
};

}  // namespace qrm::manager
