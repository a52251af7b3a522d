// Has plugins prepare a container before its first process runs, and gives it its classes.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "api/base/status.h"
#include "api/resource.h"
#include "manager/classes/class_keeper.h"
#include "manager/registry/plugins.h"
#include "manager/state/state_loop.h"

namespace qrm::manager {

/// Asks the plugins that a container has something of and whose options want it, then has those of
/// its classes given that cannot be set when it is made.
///
/// Threads: any.
class PreStart {
 public:
  struct Parts {
    const Snapshots& state;
    Plugins& plugins;
    ClassKeeper* classes = nullptr;  ///< null: nobody has a class
  };
  /// All parts outlive this.
  PreStart(Parts parts, std::chrono::milliseconds deadline) : parts_(parts), deadline_(deadline) {}

  /// Runs `done` once, at once when nobody wants to be asked, else on the thread that brings the
  /// last answer. Errors: the first plugin's that fails, is away or is late, by name.
  void Prepare(const ContainerKey& key, std::function<void(const Status&)> done);

 private:
  void GiveClasses(const ContainerKey& key, const std::string& what,
                   const std::function<void(const Status&)>& done);

  const Parts parts_;
  const std::chrono::milliseconds deadline_;
};

}  // namespace qrm::manager
