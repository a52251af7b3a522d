// Has plugins and compute drivers prepare a container before its first process runs, and gives it
// its classes.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "api/base/status.h"
#include "api/resource.h"
#include "manager/classes/class_keeper.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/state_loop.h"

namespace qrm::manager {

class Plugins;

/// Has others leave the CPUs of the container, and it theirs. Where a compute driver placed it,
/// tells the driver then. Then asks the plugins that a container has something of and whose options
/// want it, and has those of its classes given that cannot be set when it is made.
///
/// Threads: any.
class PreStart {
 public:
  using Done = std::function<void(const Status&)>;

  struct Parts {
    const Snapshots& state;
    Plugins& plugins;
    ClassKeeper* classes = nullptr;        ///< null: nobody has a class
    const LiveContainers* live = nullptr;  ///< set where drivers place containers
    /// Runs its argument once others have left the CPUs that the container owns, and it theirs; on
    /// any thread.
    std::function<void(const ContainerKey& key, Done done)> hand_over =
        [](const ContainerKey&, const Done& done) { done(OkStatus()); };
  };
  /// All parts outlive this.
  PreStart(Parts parts, std::chrono::milliseconds deadline)
      : parts_(std::move(parts)), deadline_(deadline) {}

  /// Runs `done` once, at once when nobody wants to be asked, else on the thread that brings the
  /// last answer. Errors: the first that fails, is away or is late, by name.
  void Prepare(const ContainerKey& key, Done done);

  /// Tells compute drivers, or one, of their containers that run and may have started while the
  /// runtime could not say so, or the driver was away; of others they hear the same again. A
  /// failure is logged.
  void TellLate(const std::string& driver = "");

 private:
  bool Runs(const ContainerKey& key) const;
  bool IsTold(const std::string& driver) const;
  void AskDriver(const ContainerKey& key, const Done& done);
  void TellDriver(const ContainerKey& key, const std::string& driver, const Done& done);
  void AskPlugins(const checkpoint::NodeState& state, const ContainerKey& key, const Done& done);
  void GiveClasses(const ContainerKey& key, const std::string& what, const Done& done);

  const Parts parts_;
  const std::chrono::milliseconds deadline_;
};

}  // namespace qrm::manager
