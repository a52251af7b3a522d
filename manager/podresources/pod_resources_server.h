// The pod-resources socket: kubelet's API, answered from qrmd's snapshot.
#pragma once

#include <functional>
#include <map>
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
/// it only waits for kubelet, if kubelet's socket is configured.
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

  /// Asks the plugins for the node's allocatable resources again. The answer replaces the cached
  /// one when all have answered or the timeout has passed. Returns at once.
  void RefreshAllocatable();

  /// The node's allocatable resources, as the plugins reported them in the latest round; starts a
  /// refresh when they are old. Null until the plugins have answered.
  std::shared_ptr<const AllocatableByResource> Allocatable();

  /// The plugin of `resource` has registered, runs again, or has changed its allocations:
  /// refreshes, and asks it about its containers at the next List. Returns at once.
  void OnPluginChanged(const std::string& resource);

  /// By plugin, and "kubelet": how old its used answer is while it fails; 0 while it answers.
  /// Units: seconds. Threads: any.
  std::map<std::string, double> AnswerAges() const;

  /// One sentence for each plugin whose resources are missing in answers. Threads: any.
  std::vector<std::string> Problems() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
