// What keeps an extended resource's capacities up to date, and the registry of all such handles.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "api/base/status.h"
#include "scheduler/cache/extended_cache.h"
#include "scheduler/cache/feed.h"

namespace qrm::scheduler {

/// Owns the changes of one type of extended resource. Source: KEP-4187, ExtendedResource.Handle.
class Handle {
 public:
  virtual ~Handle() = default;

  /// Subscribes to the source of the nodes' capacities; called once, before the first event. The
  /// handle writes later events into `cache`. Both outlive the handle's subscriptions.
  /// Threads: the subscriptions are called on the cache's writer.
  virtual Status Run(ExtendedCache& cache, Feed& feed) = 0;

  /// Whether `pod` requests this resource: other pods fit on nodes that have not reported it.
  /// Threads: any.
  virtual bool Wants(const Pod& pod) const = 0;
};

/// The handles by the type of their resource. Source: KEP-4187, HandleRegistry.
///
/// Threads: registered before the cache is made; then const, any.
class HandleRegistry {
 public:
  using Factory = std::function<std::unique_ptr<Handle>()>;

  /// The handle of `type`: what `factory` makes, or the one of an earlier call, so that filters can
  /// share a resource.
  Handle& Register(const std::string& type, const Factory& factory);

  const std::map<std::string, std::unique_ptr<Handle>>& handles() const { return handles_; }

 private:
  std::map<std::string, std::unique_ptr<Handle>> handles_;
};

}  // namespace qrm::scheduler
