// The one thread that changes NodeState: admissions, removals, registrations and reconcile's
// results, in order.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/base/durations.h"
#include "api/base/status.h"
#include "checkpoint/node_state.h"
#include "checkpoint/store.h"

namespace qrm::manager {

/// The latest write of the state to disk.
struct WritePace {
  std::chrono::steady_clock::time_point begun;
  std::optional<std::chrono::steady_clock::time_point> ended;  ///< none: it is under way

  /// How long it took, if it ended in the minute before `now`, or has taken so far.
  std::chrono::nanoseconds Took(std::chrono::steady_clock::time_point now) const {
    constexpr std::chrono::minutes kRecent{1};
    return ended.has_value() && now - *ended >= kRecent ? std::chrono::nanoseconds(0)
                                                        : ended.value_or(now) - begun;
  }
};

/// The latest published state. Threads: any; readers and the writer do not wait for each other.
class Snapshots {
 public:
  virtual ~Snapshots() = default;
  virtual std::shared_ptr<const checkpoint::NodeState> Load() const = 0;
};

/// Callbacks about the disk, on the loop.
struct StateListeners {
  /// A write has ended, after which the store had so many `repairs` since the start. Also once
  /// while the loop is created.
  std::function<void(const WritePace& pace, const Status& written, std::size_t repairs)>
      on_written = [](const WritePace&, const Status&, std::size_t) {};
  /// The disk began to reject changes, while qrmd ran.
  std::function<void(const std::string& problem)> on_disk_refused = [](const std::string&) {};
  /// The disk accepts changes again after it rejected some.
  std::function<void()> on_disk_returned = [] {};
  /// The state that could not be read at the start is known now; no decision was made without it.
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

  /// OK when the state is the disk's, which is then published. A start may have failed to read it.
  /// Threads: on the loop only. Errors: the store's.
  Status Recall();

  /// Whether the latest state is the disk's. Only then does a missing record mean that a pod or
  /// container is unknown, so that its resources may be released. Threads: any.
  bool known() const;

  /// Why the disk rejects changes; empty while it accepts them. Threads: any.
  std::string disk_problem() const;

  /// Of the latest write. Threads: any.
  WritePace write_pace() const;

  /// Keeps `value` beside the allocations of the built-in `plugin`. It is written to the checkpoint
  /// with the next change, even an empty one. Threads: any.
  void KeepValue(const std::string& plugin, std::string value);

  /// Whether the disk accepts writes now. Threads: on the loop only. Errors: the store's.
  Status Try();

  /// Makes `change` durable, then visible. Threads: on the loop only. Errors: the store's; nothing
  /// is published then.
  Status Commit(const checkpoint::Change& change);

  /// Makes `change` visible, and durable as soon as the disk accepts it. For changes that a crash
  /// may undo because the runtime and the plugins report them again. Logs when the disk begins to
  /// reject changes and when it accepts them again. Threads: on the loop only. Errors:
  /// kInvalidArgument; nothing is published then.
  Status Remember(const checkpoint::Change& change);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
