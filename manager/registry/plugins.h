// The registered plugins as the rest of the manager calls them: in parallel, with deadlines,
// without gRPC in sight.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/clock.h"
#include "api/base/status.h"
#include "api/resource.h"
#include "manager/registry/calls/held_allocations.h"
#include "manager/registry/calls/placement.h"

namespace qrm::manager {

/// How a plugin came to be known.
enum class RegisteredBy { kBuiltIn, kRegister, kWatcher, kCheckpoint };

/// "built-in", "register", "watcher", "checkpoint".
constexpr std::string_view ToString(RegisteredBy by) {
  switch (by) {
    case RegisteredBy::kBuiltIn:
      return "built-in";
    case RegisteredBy::kRegister:
      return "register";
    case RegisteredBy::kWatcher:
      return "watcher";
    case RegisteredBy::kCheckpoint:
      break;
  }
  return "checkpoint";
}

/// One plugin as it is known now.
struct PluginInfo {
  std::string resource;
  std::string endpoint;  ///< socket path, or "built-in"
  RegisteredBy registered_by = RegisteredBy::kBuiltIn;
  PluginOptions options;
  bool live = false;
  /// Why it is not live, or why it is suspect: one sentence with its remedy; empty when all is
  /// well.
  std::string problem;
  std::chrono::steady_clock::time_point registered_at;
};

/// A pool as a plugin reports it; `cpus` in the kernel's list form.
struct PoolInfo {
  std::string name;
  std::string cpus;
  std::vector<std::string> roles;
  uint64_t containers = 0;
};

using PoolsCallback = std::function<void(StatusOr<std::vector<PoolInfo>>)>;

/// The plugins' answers to GetResourcesAllocation.
using AllocationsByPlugin = std::map<std::string, StatusOr<HeldAllocations>>;

/// Calls to plugins. A call to a plugin that is away fails at once with kUnavailable and a sentence
/// that names the plugin and its socket; a late answer is dropped at the deadline with
/// kDeadlineExceeded. An answer that breaks the protocol is kInvalidArgument and marks the plugin
/// suspect until its next good answer.
///
/// Threads: any; the blocking calls are for the state loop, hints for dry runs, too.
class Plugins {
 public:
  virtual ~Plugins() = default;

  virtual std::vector<PluginInfo> List() const = 0;
  virtual std::optional<PluginInfo> Find(const std::string& resource) const = 0;

  /// Shows the plugin as suspect because of `problem`, one sentence, until its next good answer:
  /// for answers that are well-formed but cannot be, such as CPUs that another container owns.
  virtual void MarkSuspect(const std::string& resource, const std::string& problem) = 0;

  /// Each request goes to the plugin of its resource, all in parallel; the answers stand in the
  /// order of the requests.
  virtual std::vector<StatusOr<HintList>> GetTopologyHints(
      const std::vector<ContainerRequest>& requests, Deadline deadline) = 0;
  virtual std::vector<StatusOr<AllocationByResource>> Allocate(
      const std::vector<ContainerRequest>& requests, Deadline deadline) = 0;

  /// Tells `resources`' plugins, in parallel, that the pod is gone.
  virtual std::map<std::string, Status> RemovePod(const std::string& pod_uid,
                                                  const std::vector<std::string>& resources,
                                                  Deadline deadline) = 0;
  /// Undoes the allocations of one container of a pod that lives on. kUnimplemented for plugins
  /// without our extension: they return the same allocation when it is asked for again, and drop it
  /// with the pod.
  virtual std::map<std::string, Status> ReleaseContainer(const ContainerKey& key,
                                                         const std::vector<std::string>& resources,
                                                         Deadline deadline) = 0;

  /// Asks the live plugins of `resources`, or when that is empty all with need_reconcile, in
  /// parallel; `done` runs once, on a thread of gRPC: it must only post.
  virtual void GetResourcesAllocation(const std::set<std::string>& resources, Deadline deadline,
                                      std::function<void(AllocationsByPlugin)> done) = 0;

  /// What each live plugin offers; a plugin that fails is left out and its problem recorded.
  virtual void GetAllocatable(
      Deadline deadline,
      std::function<
          void(std::map<std::string, StatusOr<std::map<std::string, AllocatableResource>>>)>
          done) = 0;

  /// What the plugin of `resource` tells of one container by place, for all resources that it gave;
  /// `done` runs once, on a thread of gRPC or at once: it must only post. kUnimplemented for
  /// plugins that do not tell.
  virtual void GetPlacement(const ContainerKey& key, const std::string& resource, Deadline deadline,
                            std::function<void(StatusOr<PlacedByResource>)> done) = 0;

  /// The pools of the plugin of `resource`, as they are or after the change; `done` as with
  /// GetPlacement. Beside the admissions: the plugin itself orders its calls, and what a change
  /// means for containers, the next reconcile brings them.
  virtual void GetPools(const std::string& resource, Deadline deadline, PoolsCallback done) = 0;
  virtual void SetPools(const std::string& resource,
                        const std::map<std::string, std::string>& cpus_by_pool, Deadline deadline,
                        PoolsCallback done) = 0;
};

}  // namespace qrm::manager
