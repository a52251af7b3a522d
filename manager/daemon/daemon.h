// The daemon: starts its parts in order, and stops them in reverse order.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/classes/class_book.h"
#include "manager/daemon/builtin_plugins.h"
#include "manager/daemon/config_trials.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::placement {
struct AdmissionOptions;
}  // namespace qrm::placement

namespace qrm::manager {

struct Config;

/// The whole of qrmd.
///
/// Threads: main only. The daemon starts and joins its own threads; docs/architecture.md lists
/// them.
class Daemon {
 public:
  /// Apply new values of keys. Errors: why they cannot be applied; nothing has changed.
  struct Takers {
    std::function<Status(const ClassesOptions& options)> classes;
    std::function<Status(const BuiltinOptions& options)> plugins;  ///< applies their sections
    /// Takes `permissions` and `drivers`, which no part rejects.
    std::function<void(const placement::AdmissionOptions& options)> rules = [](const auto&) {};
    /// Gets a sentence for each changed key, and for a rejection.
    std::function<void(const std::string& change)> note = [](const std::string&) {};
    /// Takes all keys of the file that wait for a restart.
    std::function<void(std::vector<ChangedKey> keys)> waiting = [](const auto&) {};
  };
  /// Applies a new configuration, on the state loop. Errors: why it was rejected; nothing changed.
  using Following = std::function<Status(const Takers& takers)>;
  /// How the configuration is read while qrmd runs.
  struct Reading {
    std::string file;                  ///< watched for changes; empty: none
    std::function<Following()> again;  ///< reads the file, on its own thread
    ConfigTrials::Reader tried;        ///< reads the text of another configuration
  };

  /// Opens the state and creates all parts; nothing listens yet. Calls `reading` at each SIGHUP,
  /// and when its file has changed. A damaged state is repaired, and is not an error. Errors:
  /// kFailedPrecondition when another qrmd uses the state directory; as NriPlugin::Start.
  static StatusOr<std::unique_ptr<Daemon>> Create(Config config, Machine machine,
                                                  std::vector<BuiltinPlugin> builtins,
                                                  ClassBook::Providers class_providers,
                                                  Reading reading);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Serves until SIGTERM or SIGINT, then stops everything in reverse order. Errors: a socket that
  /// cannot be served.
  Status Run();

 private:
  struct Impl;
  explicit Daemon(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
