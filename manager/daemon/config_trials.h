// Tries another configuration on the node's allocations, without applying it.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "api/base/status.h"
#include "manager/daemon/builtin_plugins.h"
#include "manager/observability/config_trial.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

struct Config;
class ConfigInForce;

/// A new configuration, compared with the one in force.
struct ReadChanges {
  std::vector<ChangedKey> keys;
  BuiltinOptions builtin;  ///< the new options of the built-in plugins
};

/// Threads: Try and MakeNext on the state loop, so that no admission runs meanwhile; others any.
class ConfigTrials {
 public:
  /// Compares the new configuration with the one in force. Threads: the state loop.
  using Comparison = std::function<ReadChanges()>;
  /// Reads the text of a file, on any thread. Errors: why a reload would reject the file.
  using Reader =
      std::function<StatusOr<Comparison>(const std::string& text, const std::string& name)>;

  /// All outlive ConfigTrials.
  struct Parts {
    const Machine& machine;
    const Config& config;
    const ConfigInForce& in_force;
    const LocalPlugins& local_plugins;
  };
  explicit ConfigTrials(const Parts& parts) : parts_(parts) {}

  /// Call before Read.
  void ReadWith(Reader reader) { reader_ = std::move(reader); }

  /// Reads `text` of the file `name`, for Try. Errors: why a reload would reject the file;
  /// kInvalidArgument if it is too large for a configuration.
  StatusOr<Comparison> Read(const std::string& text, const std::string& name) const;

  /// What the new configuration would change. Errors: why a reload would reject it. Cost: a restart
  /// of each plugin that it changes.
  StatusOr<ConfigTrial> Try(const Comparison& read) const;

  /// The plugins whose configuration changes with `next`, created from `next`. Errors: why a reload
  /// would reject it.
  StatusOr<std::vector<BuiltinPlugin>> MakeNext(const BuiltinOptions& next) const;

  /// The configuration in force of each built-in plugin.
  std::vector<PluginPolicy> Policies() const;

 private:
  const Parts parts_;
  Reader reader_;
};

}  // namespace qrm::manager
