// A type of QoS classes that a plugin process implements.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "manager/registry/plugins.h"
#include "plugins/sdk/calls/class_calls.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::manager {

/// Calls the plugin that is registered as `type`. While it is not registered or not running, no
/// container can get a class, containers keep theirs, and the type shows the plugin's latest data.
///
/// Errors: kUnavailable while the plugin is not running, kDeadlineExceeded if it takes too long,
/// and the plugin's own.
class PluginClasses final : public sdk::ClassProvider {
 public:
  /// `plugins` outlives it.
  PluginClasses(std::string type, Plugins& plugins, std::chrono::milliseconds call_deadline);

  [[nodiscard]] sdk::ClassType List() const override;
  [[nodiscard]] StatusOr<sdk::ClassOptions> Resolve(const std::string& class_name) const override;
  Status Refresh(const std::set<std::string>& in_use) override;
  Status Apply(const sdk::ClassTarget& target, const std::string& from,
               const std::string& to) override;
  [[nodiscard]] StatusOr<std::string> ReadBack(const sdk::ClassTarget& target,
                                               const std::string& class_name) override;
  void Release(const sdk::ClassTarget& target) override;
  [[nodiscard]] std::vector<sdk::ClassReading> Readings() override;

 private:
  template <typename Call>
  StatusOr<typename Call::Answer> Ask(typename Call::Request request);
  /// Empty while the plugin is live.
  [[nodiscard]] std::string Absence() const;
  Status TakeOver(calls::ClassOffer offer);

  const std::string type_;
  Plugins& plugins_;
  const std::chrono::milliseconds deadline_;
  mutable Mutex mutex_;
  bool known_ QRM_GUARDED_BY(mutex_) = false;  ///< the plugin has sent its classes
  calls::ClassOffer offer_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
