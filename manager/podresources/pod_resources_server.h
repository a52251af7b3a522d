// The pod-resources socket: kubelet's API, answered from our snapshot.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/podresources/pod_resources_options.h"
#include "manager/state/state_loop.h"
#include "topology/machine.h"

namespace qrm::manager {

class Plugins;
struct PodResourcesMetrics;

/// Serves v1 and v1alpha1 PodResourcesLister. No call waits for a plugin, an admission or the disk;
/// only kubelet, when its socket is named, is asked on the way.
/// Threads: Start and Stop from one thread, the others from any.
class PodResourcesServer {
 public:
  /// The references outlive the server.
  struct Parts {
    const Snapshots& snapshots;
    Plugins& plugins;
    const Machine& machine;
    PodResourcesMetrics& metrics;
    /// Whether the state is complete, from any thread; until then calls get kFailedPrecondition.
    std::function<bool()> restored;
  };
  explicit PodResourcesServer(Parts parts, PodResourcesOptions options = {});
  ~PodResourcesServer();
  PodResourcesServer(const PodResourcesServer&) = delete;
  PodResourcesServer& operator=(const PodResourcesServer&) = delete;

  /// Errors: as UnixServer::Start.
  Status Start();
  void Stop();

  /// Asks the plugins anew what the node can give out; the answer replaces the cached one when all
  /// have answered or the timeout is over. Returns at once.
  void RefreshAllocatable();

  /// What the plugins last told that the node can give out, and asks them again when that is old.
  /// Null until they have told.
  std::shared_ptr<const AllocatableByResource> Allocatable();

  /// The plugin of `resource` registered, is back, or says that its allocations changed: does so,
  /// and has it asked at the next List what its containers hold. Returns at once.
  void OnPluginChanged(const std::string& resource);

  /// One sentence for each plugin without whose answers ours lack its resources. Threads: any.
  std::vector<std::string> Problems() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
