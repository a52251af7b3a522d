// Before a container's first process runs, lets plugins and compute drivers prepare the container,
// and sets its classes.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "api/base/clock.h"
#include "api/base/status.h"
#include "api/resource.h"
#include "manager/classes/class_keeper.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/state_loop.h"

namespace qrm::manager {

class Plugins;

/// Hands the container its CPUs, then reports it to the compute driver that placed it, if any. Then
/// asks the plugins with allocations of the container that have requested PreStartContainer, and
/// sets classes that cannot be set at the creation.
///
/// Threads: any.
class PreStart {
 public:
  using Done = std::function<void(const Status&)>;

  struct Parts {
    const Snapshots& state;
    Plugins& plugins;
    ClassKeeper* classes = nullptr;        ///< null: no container has a class
    const LiveContainers* live = nullptr;  ///< set where drivers place containers
    /// Runs its argument, on any thread, once others have left the container's exclusive CPUs and
    /// the container has left theirs.
    std::function<void(const ContainerKey& key, Done done)> hand_over =
        [](const ContainerKey&, const Done& done) { done(OkStatus()); };
  };
  /// All parts outlive this.
  PreStart(Parts parts, std::chrono::milliseconds deadline)
      : parts_(std::move(parts)), deadline_(deadline) {}

  /// Runs `done` once: at once if no plugin has to be asked, else on the thread of the last answer.
  /// Errors: that of the first plugin that fails, does not run or is late, by name.
  void Prepare(const ContainerKey& key, Done done);

  /// Reports to all compute drivers, or to one, their running containers, which may have started
  /// without a report: while the runtime was not connected, or the driver did not run. Drivers get
  /// some containers twice. Failures are logged.
  void TellLate(const std::string& driver = "");

  /// The same for one running container, after a change of its CPUs; `parts` as in the constructor.
  static void TellChange(const Parts& parts, const ContainerKey& key, Deadline deadline);

 private:
  void AskDriver(const ContainerKey& key, const Done& done);
  void AskPlugins(const checkpoint::NodeState& state, const ContainerKey& key, const Done& done);
  void GiveClasses(const ContainerKey& key, const std::string& what, const Done& done);

  const Parts parts_;
  const std::chrono::milliseconds deadline_;
};

}  // namespace qrm::manager
