// The daemon: starts its parts in order, and stops them in reverse order.
#pragma once

#include <memory>
#include <vector>

#include "api/base/status.h"
#include "manager/classes/class_book.h"
#include "manager/daemon/builtin_plugins.h"
#include "manager/daemon/config_table.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

/// The whole of qrmd.
///
/// Threads: main only. The daemon starts and joins its own threads; docs/architecture.md lists
/// them.
class Daemon {
 public:
  /// Opens the state and creates all parts; nothing listens yet. Reads `source`, from which
  /// `config` was read, again at each SIGHUP, and when its file has changed. A damaged state is
  /// repaired, and is not an error. Errors: kFailedPrecondition when another qrmd uses the state
  /// directory; as NriPlugin::Start.
  static StatusOr<std::unique_ptr<Daemon>> Create(Config config, Machine machine,
                                                  std::vector<BuiltinPlugin> builtins,
                                                  ClassBook::Providers class_providers,
                                                  ConfigSource source);
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
