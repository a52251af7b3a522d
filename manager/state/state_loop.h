// The one thread that changes NodeState: admissions, removals, registrations and reconcile's
// results, in order.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/base/status.h"
#include "checkpoint/node_state.h"
#include "checkpoint/store.h"

namespace qrm::manager {

/// The latest published state. Threads: any; readers and the writer do not wait for each other.
class Snapshots {
 public:
  virtual ~Snapshots() = default;
  virtual std::shared_ptr<const checkpoint::NodeState> Load() const = 0;
};

/// Who hears of the disk, on the loop.
struct StateListeners {
  /// It takes changes that it has refused.
  std::function<void()> on_disk_returned = [] {};
  /// The state that the start could not read is known now; nothing was decided without it.
  std::function<void(const checkpoint::NodeState& state)> on_recalled =
      [](const checkpoint::NodeState&) {};
};

/// Runs posted work in order on its own thread and owns the store and the latest state.
/// Order of every change: commit, publish, answer.
class StateLoop final : public Snapshots {
 public:
  explicit StateLoop(checkpoint::OpenedStore opened, StateListeners listeners = {});
  ~StateLoop() override;
  StateLoop(const StateLoop&) = delete;
  StateLoop& operator=(const StateLoop&) = delete;

  /// Runs what was posted before, then ends the thread; later work is dropped. May be repeated.
  void Stop();

  /// Threads: any.
  void Post(std::function<void()> work);
  std::shared_ptr<const checkpoint::NodeState> Load() const override;

  /// OK when the state is the disk's, which could not be read at every start; it is published then.
  /// Threads: on the loop only. Errors: the store's.
  Status Recall();

  /// Whether the latest state is the disk's, so that what it lacks does not exist: nobody releases
  /// or removes by a state that is not. Threads: any.
  bool known() const;

  /// Why the disk refuses changes; empty while it takes them. Threads: any.
  std::string disk_problem() const;

  /// `plugin`, which is built in, keeps `value` beside its allocations: it goes with the next
  /// change to the checkpoint, an empty one too. Threads: any.
  void KeepValue(const std::string& plugin, std::string value);

  /// Makes `change` durable, then visible. Threads: on the loop only. Errors: the store's; nothing
  /// is published then.
  Status Commit(const checkpoint::Change& change);

  /// Makes `change` visible, and durable as soon as the disk takes it: for what a crash may take
  /// back because the runtime and the plugins will say it again. Logs when the disk begins to
  /// refuse and when it takes again. Threads: on the loop only. Errors: kInvalidArgument; nothing
  /// is published then.
  Status Remember(const checkpoint::Change& change);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
