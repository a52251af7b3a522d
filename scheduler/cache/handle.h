// What keeps an extended resource's capacities up to date, and the registry of all such handles.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "api/base/status.h"
#include "scheduler/cache/extended_cache.h"
#include "scheduler/cache/feed.h"
#include "scheduler/cache/handle_guard.h"
#include "scheduler/cache/snapshot.h"

namespace qrm::config {
class Section;
}  // namespace qrm::config

namespace qrm::scheduler {

/// What a handle computes once about a pod, before it is asked about nodes.
struct PodData {
  virtual ~PodData() = default;
};

/// A node that a pod may be placed on, in one snapshot.
struct Candidate {
  const Node& node;
  const Resources& resources;  ///< of the node
  const Snapshot& snapshot;
  const PodData* data;  ///< what PreFilter returned

  /// The node's resource of any type, with its pods; null when the node has not reported it.
  /// Source: KEP-4187, Handle.GetExtendedResource.
  template <typename Resource = ExtendedResource>
  const Resource* GetExtendedResource(const std::string& type) const {
    const auto found = resources.find(type);
    return found == resources.end() ? nullptr : dynamic_cast<const Resource*>(found->second.get());
  }
};

/// Owns the changes of one type of extended resource, and decides beside its resources. What it
/// throws is counted and logged, and the resource then judges as the key `failing` says; so it does
/// while a call has not returned in time. Source: KEP-4187, ExtendedResource.Handle.
class Handle {
 public:
  virtual ~Handle() = default;

  /// Reads the handle's section of `options` in the configuration; called once, before Run.
  /// Errors: kInvalidArgument; also, which is the default, for any option.
  virtual Status Configure(const config::Section& options);

  /// Subscribes to the source of the nodes' capacities; called once, before the first event. The
  /// handle writes later events into `cache`. Both outlive the handle's subscriptions.
  /// Threads: the subscriptions are called on the cache's writer; other threads use
  /// ExtendedCache::Post.
  virtual Status Run(ExtendedCache& cache, Feed& feed) = 0;
  /// Ends the handle's threads: `cache` goes.
  virtual void Stop() {}

  /// Whether `pod` requests this resource: other pods fit on nodes that have not reported it.
  /// Threads: any.
  virtual bool Wants(const Pod& pod) const = 0;

  /// Whether qrmd publishes the resource in annotations of its Node: what it said long ago may be
  /// wrong by now. Threads: any.
  virtual bool IsPublishedByNode() const { return false; }

  /// Hooks, all optional. Threads: any.
  virtual std::unique_ptr<const PodData> PreFilter(const Pod& /*pod*/,
                                                   const Snapshot& /*snapshot*/) const {
    return nullptr;
  }
  /// Whether `pod` fits, beside what AdmitPod of the node's resource says.
  virtual Admission Filter(const Pod& /*pod*/, const Candidate& /*candidate*/) const { return {}; }
  /// As ExtendedResource::Score, beside it.
  virtual std::optional<int> Score(const Pod& /*pod*/, const Candidate& /*candidate*/) const {
    return std::nullopt;
  }

  /// Hooks of a pod that is assumed on `node`, and of one that is no more, because its binding was
  /// rejected or the pod is gone. Threads: the cache's writer. Errors: the binding is rejected.
  virtual Status Reserve(const Pod& /*pod*/, const std::string& /*node*/) { return OkStatus(); }
  virtual void Unreserve(const Pod& /*pod*/, const std::string& /*node*/) {}
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

  /// What surrounds calls of handles and resources.
  HandleGuard& guard() const { return *guard_; }

 private:
  std::map<std::string, std::unique_ptr<Handle>> handles_;
  std::unique_ptr<HandleGuard> guard_ = std::make_unique<HandleGuard>();
};

/// By type, what makes the handles of a program.
using HandleFactories = std::map<std::string, HandleRegistry::Factory>;
/// Makes the handles of one more cache.
using MakeHandles = std::function<StatusOr<HandleRegistry>()>;

}  // namespace qrm::scheduler
