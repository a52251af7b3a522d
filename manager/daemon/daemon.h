// The daemon: its parts, the order in which they start, and the order in which they stop.
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

namespace qrm::manager {

struct Config;

/// One qrmd.
///
/// Threads: one, main; the daemon starts its own (docs/architecture.md lists them) and ends them.
class Daemon {
 public:
  /// What puts keys into force. Errors: why they cannot be now; nothing changed.
  struct Takers {
    std::function<Status(const ClassesOptions& options)> classes;
    std::function<Status(const BuiltinOptions& options)> plugins;  ///< their sections
  };
  /// Puts into force what was read, on the state loop. Errors: why it was refused; nothing changed.
  using Following = std::function<Status(const Takers& takers)>;
  /// The configuration while it runs.
  struct Reading {
    std::string file;                  ///< that is watched; empty: none
    std::function<Following()> again;  ///< reads it, on a thread of its own
    ConfigTrials::Reader tried;        ///< reads the text of another one
  };

  /// Attaches to the runtime, opens the state and makes all parts; nothing listens yet. Errors:
  /// kFailedPrecondition when another qrmd uses the state directory; as NriPlugin::Start. A damaged
  /// state is repaired and never an error.
  /// `reading` begins again at each SIGHUP, and when its file has changed.
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
