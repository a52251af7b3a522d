// What a plugin must find again after a restart: its grants and its own saved state.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::sdk {

/// Everything that was kept.
struct StoredState {
  Grants grants;
  std::optional<std::string> saved;  ///< the last SaveState
};

/// One step of a plugin's state; all of it becomes durable, or nothing.
struct StateChange {
  Grants granted;  ///< new, or in place of former ones
  std::vector<ContainerKey> removed;
  std::optional<std::string> removed_pod;  ///< the UID of a pod whose grants all go
  std::optional<std::string> saved;        ///< a new SaveState
  /// The manager has what is granted on record, and teaches what a power loss takes back.
  bool manager_teaches = false;
};

/// Where a plugin's state is kept.
///
/// Threads: one at a time; the host calls it from the plugin's thread only.
class PluginState {
 public:
  virtual ~PluginState() = default;

  /// Called once, before any Commit. What cannot be read is left out and logged.
  virtual StatusOr<StoredState> Load() = 0;

  /// Makes `change` durable; once it returns OK, the change survives kill -9 and power loss. What
  /// the manager sets right when the plugin registers again survives kill -9 only, until a change
  /// follows that survives both: removals, since the manager has such grants released, and, of a
  /// manager that teaches, grants. What is removed without being there is no error. Errors: the
  /// disk then holds the state before `change`, and a later Commit may succeed; but kDataLoss says
  /// that somebody deleted, replaced or damaged it, and that BeginAnew is to follow.
  virtual Status Commit(const StateChange& change) = 0;

  /// Moves aside what is left, and makes `everything` the durable state.
  virtual Status BeginAnew(const StateChange& everything) = 0;
};

/// What differs between two starts of this machine; empty when the kernel does not tell. Source:
/// Linux, random(4), boot_id.
std::string CurrentBoot();

/// State in the SQLite database at `path`, which is made when it is missing. A damaged one is moved
/// aside, kept and logged, and a new one is begun: it never stops the plugin. Errors:
/// kResourceExhausted for a full disk, kFailedPrecondition when the directory cannot be written.
/// Grants that a manager teaches are void when `boot` is another than that in which they were
/// given: the power may have taken back later ones, by which they were released. An empty `boot`
/// has every grant survive a power loss.
/// Cost: one fdatasync per Commit that is to survive a power loss.
StatusOr<std::unique_ptr<PluginState>> OpenPluginState(const std::string& path,
                                                       const std::string& boot = CurrentBoot());

/// State that lives as long as the process: for a plugin whose grants somebody else keeps, and for
/// tests. It begins as `begin`; `on_save` hears each SaveState that changed, on the plugin's
/// thread.
std::unique_ptr<PluginState> MakeMemoryState(
    StoredState begin = {}, std::function<void(const std::string& saved)> on_save = {});

}  // namespace qrm::sdk
