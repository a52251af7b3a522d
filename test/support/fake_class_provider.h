// A type of classes that a test sets, and that remembers its calls.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/mutex.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::test {

class FakeClassProvider final : public sdk::ClassProvider {
 public:
  explicit FakeClassProvider(sdk::ClassType given) : type(std::move(given)) {}

  // Set before others use it.
  sdk::ClassType type;
  std::function<Status(const sdk::ClassTarget&, const std::string& to)> on_apply =
      [](const auto&, const auto&) { return OkStatus(); };

  [[nodiscard]] sdk::ClassType List() const override { return type; }

  [[nodiscard]] StatusOr<sdk::ClassOptions> Resolve(const std::string& name) const override {
    return sdk::ClassOptions{.unified = {{type.name + ".class", name}}};
  }

  Status Refresh(const std::set<std::string>& in_use) override {
    Note(fmt::format("refresh {}", in_use.size()));
    return OkStatus();
  }

  Status Apply(const sdk::ClassTarget& target, const std::string& from,
               const std::string& to) override {
    Note(fmt::format("apply {}/{} {}->{}", target.key.container, target.runtime_id, from, to));
    const Status applied = on_apply(target, to);
    if (applied.ok()) {
      const MutexLock lock(mutex_);
      has_[target.runtime_id] = to;
    }
    return applied;
  }

  [[nodiscard]] StatusOr<std::string> ReadBack(const sdk::ClassTarget& target,
                                               const std::string& name) override {
    const MutexLock lock(mutex_);
    const std::string& has = has_[target.runtime_id];
    return has == name ? std::string() : fmt::format("it has {}", has.empty() ? "none" : has);
  }

  void Release(const sdk::ClassTarget& target) override {
    Note(fmt::format("release {}/{}", target.key.container, target.runtime_id));
  }

  /// Another process gives the container of that id `name`.
  void Meddle(const std::string& runtime_id, const std::string& name) {
    const MutexLock lock(mutex_);
    has_[runtime_id] = name;
  }
  std::string ClassOf(const std::string& runtime_id) {
    const MutexLock lock(mutex_);
    return has_[runtime_id];
  }
  /// The calls that may change something, in order.
  std::vector<std::string> calls() const {
    const MutexLock lock(mutex_);
    return calls_;
  }

 private:
  void Note(std::string call) {
    const MutexLock lock(mutex_);
    calls_.push_back(std::move(call));
  }

  mutable Mutex mutex_;
  std::map<std::string, std::string> has_ QRM_GUARDED_BY(mutex_);  // runtime id -> class
  std::vector<std::string> calls_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::test
