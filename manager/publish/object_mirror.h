// The current version of one object of the API server, from a watch and from answers to our writes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cluster/list_watch.h"

namespace qrm::manager {

/// Threads: the ListWatch's thread.
class ObjectMirror final : public cluster::ObjectListener {
 public:
  /// `on_change` runs whenever the object may have changed.
  explicit ObjectMirror(std::function<void()> on_change);
  ~ObjectMirror() override;
  ObjectMirror(const ObjectMirror&) = delete;
  ObjectMirror& operator=(const ObjectMirror&) = delete;

  /// Whether the first list has arrived.
  bool known() const { return known_; }
  /// Null if the object does not exist.
  const nlohmann::json& object() const { return *object_; }
  /// Takes the answer to a write, unless it is older than the known version.
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
