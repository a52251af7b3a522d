// The configuration while qrmd runs: the keys in force, and how another configuration is read,
// tried and applied.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "manager/daemon/builtin_plugins.h"
#include "manager/daemon/config_table.h"
#include "manager/daemon/node_config.h"
#include "manager/observability/config_trial.h"

namespace qrm::manager {

/// Applies new values of keys, on the state loop. Errors: why they cannot be applied; nothing has
/// changed.
class ConfigTaker {
 public:
  virtual ~ConfigTaker() = default;
  virtual Status TakeClasses(const ClassesOptions& options) = 0;
  /// Applies the sections of the built-in plugins.
  virtual Status TakePlugins(const BuiltinOptions& options) = 0;
  /// Takes `permissions` and `drivers`, which no part rejects.
  virtual void TakeRules(const placement::AdmissionOptions& options) = 0;
  /// Gets a sentence for each changed key, and for a rejection.
  virtual void NoteChange(const std::string& change) = 0;
};

/// The keys whose values differ.
std::vector<ChangedKey> ChangedKeys(Config from, Config to);

/// Applies the keys that can change while qrmd runs: log-level, permissions, compute-drivers, the
/// sections of built-in plugins, and the rules of class-types. The log names all other keys that
/// differ; they change at the next start. A configuration that cannot be read, or that a plugin
/// rejects, changes nothing.
///
/// Threads: Follow, Try and MakeNext on the state loop, so that no admission runs meanwhile; others
/// any.
class LiveConfig {
 public:
  /// The keys that readers on other threads need, and the configuration that schedulers get.
  struct Keys {
    BuiltinOptions builtin;
    placement::AdmissionOptions admission;
    StatusOr<NodeConfig> told;
  };
  /// All outlive the object. `config` is completed by what the daemon found.
  struct Parts {
    const Machine& machine;
    const Config& config;
    const LocalPlugins& local_plugins;
  };
  /// `as_read` was read from `source`.
  LiveConfig(const Parts& parts, Config as_read, ConfigSource source);

  std::shared_ptr<const Keys> Load() const;
  /// Why the latest configuration was rejected; empty if it was accepted.
  std::string refusal() const;
  /// The keys of the file that wait for a restart.
  std::vector<ChangedKey> waiting() const;
  /// The configuration in force of each built-in plugin.
  std::vector<PluginPolicy> Policies() const;

  /// Reads the file and the flags as at the start.
  StatusOr<Config> Read() const;
  /// Reads `text` of the file `name`, for Try. Errors: why a reload would reject the file;
  /// kInvalidArgument if it is too large for a configuration.
  StatusOr<Config> ReadText(const std::string& text, const std::string& name) const;

  /// Applies `read` by `taker`. Errors: why it was rejected; nothing has changed then.
  Status Follow(const StatusOr<Config>& read, ConfigTaker& taker);

  /// What `next` would change. Errors: why a reload would reject it. Cost: a restart of each plugin
  /// that it changes.
  StatusOr<ConfigTrial> Try(const Config& next) const;

  /// The plugins whose configuration changes with `next`, created from `next`. Errors: why a reload
  /// would reject it.
  StatusOr<std::vector<BuiltinPlugin>> MakeNext(const BuiltinOptions& next) const;

 private:
  bool CountsAtOnce(const ChangedKey& changed) const;
  Status FollowAll(const Config& next, ConfigTaker& taker);
  /// False when the key waits for a restart.
  bool FollowKey(const ChangedKey& changed, const Config& next, ConfigTaker& taker);
  void Publish(const BuiltinOptions& builtin, const placement::AdmissionOptions& admission);

  const Parts parts_;
  const ConfigSource source_;
  Config in_force_;  // as in the files that it is compared with

  mutable Mutex mutex_;
  std::shared_ptr<const Keys> keys_ QRM_GUARDED_BY(mutex_);
  std::string refusal_ QRM_GUARDED_BY(mutex_);
  std::vector<ChangedKey> waiting_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
