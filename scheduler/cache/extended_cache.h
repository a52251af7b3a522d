// The view of the cache that one type of extended resource has.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "scheduler/cache/extended_resource.h"

namespace qrm::scheduler {

class NodeTable;
class Mailbox;

/// The resources of one type, by node. Source: KEP-4187, ExtendedCache.
///
/// Threads: the cache's writer, except Post; readers use a Snapshot.
class ExtendedCache {
 public:
  /// `table` and `mailbox` outlive it.
  ExtendedCache(NodeTable& table, Mailbox& mailbox, std::string type);

  /// The node's resource with its pods; null when nothing was set. Valid until the next change.
  const ExtendedResource* GetExtendedResource(const std::string& node) const;

  /// Makes `resource`, which has no pods, the node's; null: nothing is known of the node any more.
  /// The cache adds the node's pods, so that none is lost with the former resource. The node itself
  /// need not be known yet. Cost: an AddPod for each pod of the node.
  void SetExtendedResource(const std::string& node, std::shared_ptr<ExtendedResource> resource);

  /// Runs `change` on the cache's writer soon: so threads with telemetry set resources.
  /// Threads: any, until Handle::Stop.
  void Post(std::function<void(ExtendedCache&)> change);

 private:
  NodeTable& table_;
  Mailbox& mailbox_;
  std::string type_;
};

}  // namespace qrm::scheduler
