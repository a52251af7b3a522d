// Tracks the plugins whose answers the pod-resources API lacks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/base/mutex.h"
#include "api/base/status.h"

namespace prometheus {
class Counter;
template <typename T>
class Family;
}  // namespace prometheus

namespace qrm::manager {

/// Counts failed answers of one kind, and keeps each plugin's latest failure until it answers.
/// Threads: any.
class PluginFailures {
 public:
  /// `untold` completes "plugin NAME does not report ..."; `errors`, counted by resource, outlives
  /// this.
  PluginFailures(std::string untold, prometheus::Family<prometheus::Counter>& errors);

  void Add(const std::string& resource, const Status& why);
  /// The plugin answered, or was replaced.
  void Forget(const std::string& resource);
  /// Forgets all plugins but those.
  void Keep(const std::vector<std::string>& resources);

  /// One for each plugin that fails, by name: what it does not report, and why.
  std::vector<std::string> Sentences() const;

 private:
  const std::string untold_;
  prometheus::Family<prometheus::Counter>& errors_;
  mutable Mutex mutex_;
  std::map<std::string, std::string> reasons_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
