// The state that a plugin needs after a restart: its grants and its own saved state.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::sdk {

/// The whole recorded state.
struct StoredState {
  Grants grants;
  std::optional<std::string> saved;  ///< the last SaveState
};

/// One step of a plugin's state; all of it becomes durable, or nothing.
struct StateChange {
  Grants granted;  ///< new or replaced grants
  std::vector<ContainerKey> removed;
  std::optional<std::string> removed_pod;  ///< the UID of a pod whose grants are all removed
  std::optional<std::string> saved;        ///< a new SaveState
  /// The manager has the grants on record, and restores those lost in a power loss.
  bool manager_teaches = false;
};

/// Where a plugin's state is kept.
///
/// Threads: one at a time; the host calls it from the plugin's thread only.
class PluginState {
 public:
  virtual ~PluginState() = default;

  /// Called once, before any Commit. Unreadable records are skipped and logged.
  virtual StatusOr<StoredState> Load() = 0;

  /// Makes `change` durable; once it returns OK, the change survives kill -9 and power loss.
  /// Exception: changes that the manager corrects when the plugin registers again survive kill -9
  /// only, until a change follows that survives both. These are removals, and grants if the manager
  /// restores them. Removing a missing grant is not an error. Errors: the disk then has the state
  /// before `change`, and a later Commit may succeed. kDataLoss means that the state was deleted,
  /// replaced or damaged; call BeginAnew.
  virtual Status Commit(const StateChange& change) = 0;

  /// Moves the old state aside, and makes `everything` the durable state.
  virtual Status BeginAnew(const StateChange& everything) = 0;
};

/// The id of this boot of the machine; empty if the kernel does not provide one. Source: Linux,
/// random(4), boot_id.
std::string CurrentBoot();

/// State in the SQLite database at `path`, which is created if it is missing. A damaged database is
/// moved aside and logged, and a new one is created: damage never stops the plugin. Errors:
/// kResourceExhausted for a full disk, kFailedPrecondition when the directory cannot be written.
/// Grants that the manager restores are void after a reboot (another `boot`): the power loss may
/// have undone later changes that released them. With an empty `boot`, every grant survives a power
/// loss. Cost: one fdatasync per Commit that must survive a power loss.
StatusOr<std::unique_ptr<PluginState>> OpenPluginState(const std::string& path,
                                                       const std::string& boot = CurrentBoot());

/// State in memory: for a plugin whose grants are recorded elsewhere, and for tests. It begins as
/// `begin`. `on_save` gets each changed SaveState, on the plugin's thread.
std::unique_ptr<PluginState> MakeMemoryState(
    StoredState begin = {}, std::function<void(const std::string& saved)> on_save = {});

}  // namespace qrm::sdk
