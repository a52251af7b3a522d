// What the edges (control, metrics, health) ask of the daemon, so that none of them knows its
// parts.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "api/resource.h"
#include "manager/node_status.h"

namespace qrm::manager {

/// The daemon as the edges see it. Threads: any.
class NodeServices {
 public:
  virtual ~NodeServices() = default;

  /// As it is now; never waits for an admission.
  virtual NodeStatus Status() const = 0;

  /// The runtime's id of a container; empty when it has none now.
  virtual std::string RuntimeIdOf(const ContainerKey& key) const = 0;

  /// When the runtime last took an update of the container from us, since qrmd started.
  virtual std::optional<std::chrono::system_clock::time_point> LastUpdateOf(
      const ContainerKey& key) const = 0;

  /// Starts a reconcile as soon as none is running; returns at once. `resource` is the plugin that
  /// asked, or empty.
  virtual void ReconcileSoon(const std::string& resource) = 0;

  /// Runs `work` on the state loop, which may wait for plugins.
  virtual void Post(std::function<void()> work) = 0;
};

}  // namespace qrm::manager
