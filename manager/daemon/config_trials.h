// Tries another configuration on what the node has given, without putting it into force.
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

/// A configuration that was read, beside the one in force.
struct ReadChanges {
  std::vector<ChangedKey> keys;
  BuiltinOptions builtin;  ///< what the built-in plugins would be configured to do
};

/// Threads: Try and MakeNext on the state loop, so that no admission comes between; the others any.
class ConfigTrials {
 public:
  /// Compares what was read with what is in force then; on the state loop.
  using Comparison = std::function<ReadChanges()>;
  /// Reads the text of a file, on any thread. Errors: why the file would be refused.
  using Reader =
      std::function<StatusOr<Comparison>(const std::string& text, const std::string& name)>;

  /// All outlive the object.
  struct Parts {
    const Machine& machine;
    const Config& config;
    const ConfigInForce& in_force;
    const LocalPlugins& local_plugins;
  };
  explicit ConfigTrials(const Parts& parts) : parts_(parts) {}

  /// Before anybody tries.
  void ReadWith(Reader reader) { reader_ = std::move(reader); }

  /// The file `name` that holds `text`, for Try. Errors: why it would be refused; kInvalidArgument
  /// for one that is too large for a configuration.
  StatusOr<Comparison> Read(const std::string& text, const std::string& name) const;

  /// What it would change. Errors: why it would be refused. Cost: that of a restart of the plugins
  /// that it configures anew.
  StatusOr<ConfigTrial> Try(const Comparison& read) const;

  /// The plugins that `next` configures otherwise than they are. Errors: why it cannot be taken.
  StatusOr<std::vector<BuiltinPlugin>> MakeNext(const BuiltinOptions& next) const;

  /// What is in force, of each built-in plugin.
  std::vector<PluginPolicy> Policies() const;

 private:
  const Parts parts_;
  Reader reader_;
};

}  // namespace qrm::manager
