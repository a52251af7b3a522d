// The pod-resources socket: kubelet's API, answered from our snapshot.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "api/base/status.h"
#include "manager/registry/plugins.h"
#include "manager/state/state_loop.h"
#include "topology/machine.h"

namespace qrm::manager {

struct PodResourcesMetrics;

struct PodResourcesOptions {
  /// Off: the method answers as a kubelet in which its feature gate is off.
  bool allocatable_enabled = true;
  bool get_enabled = true;
  /// Per process that calls. Source: kubelet's limit for all its clients together.
  int qps = 100;
  int burst = 10;
  std::optional<gid_t> group;                      ///< who besides root may use the socket
  std::chrono::milliseconds plugin_timeout{1000};  ///< of a call to a plugin
  /// Before a plugin that did not answer is asked again what its containers hold.
  std::chrono::milliseconds plugin_retry{10'000};
  /// A call that finds an older answer of the plugins gets it, and has them asked for the next one.
  std::chrono::milliseconds allocatable_max_age{5000};
  /// Kubelet's own socket, whose devices and dynamic resources are added to our answers, and the
  /// pods that only kubelet knows; empty: none. A call waits for it up to the timeout.
  std::string kubelet_socket;
  std::chrono::milliseconds kubelet_timeout{1000};
};

/// Serves v1 and v1alpha1 PodResourcesLister. No call waits for a plugin, an admission or the disk;
/// only kubelet, when its socket is named, is asked on the way.
/// Threads: Start and Stop from one thread, the others from any.
class PodResourcesServer {
 public:
  /// The references outlive the server. `restored` tells, from any thread, whether the state is
  /// complete; until then calls get kFailedPrecondition.
  PodResourcesServer(const Snapshots& snapshots, Plugins& plugins, const Machine& machine,
                     PodResourcesMetrics& metrics, std::function<bool()> restored,
                     PodResourcesOptions options = {});
  ~PodResourcesServer();
  PodResourcesServer(const PodResourcesServer&) = delete;
  PodResourcesServer& operator=(const PodResourcesServer&) = delete;

  /// Errors: as UnixServer::Start.
  Status Start(const std::string& socket_path);
  void Stop();

  /// Asks the plugins anew what the node can give out; the answer replaces the cached one when all
  /// have answered or the timeout is over. Returns at once.
  void RefreshAllocatable();

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
