// The daemon: its parts, the order in which they start, and the order in which they stop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/classes/class_book.h"
#include "manager/daemon/builtin_plugins.h"
#include "manager/daemon/config.h"
#include "topology/machine.h"

namespace qrm::manager {

/// One qrmd.
///
/// Threads: one, main; the daemon starts its own (docs/architecture.md lists them) and ends them.
class Daemon {
 public:
  /// Puts the keys about classes into force. Errors: why they cannot be now; nothing changed.
  using TakeClasses = std::function<Status(const ClassesOptions& options)>;
  /// The configuration while it runs.
  struct Reading {
    std::string file;  ///< that is watched; empty: none
    /// Reads it again, on the I/O loop, with what takes over keys about classes.
    std::function<void(const TakeClasses& take_classes)> again;
  };

  /// Opens the state and makes all parts; nothing listens yet. Errors: kFailedPrecondition when
  /// another qrmd uses the state directory. A damaged state is repaired and never an error.
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
