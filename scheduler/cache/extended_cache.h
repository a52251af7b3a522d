// The view of the cache that one type of extended resource has.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "scheduler/cache/node_table.h"

namespace qrm::scheduler {

/// The resources of one type, by node. Source: KEP-4187, ExtendedCache.
///
/// Threads: the cache's writer; readers use a Snapshot.
class ExtendedCache {
 public:
  /// `table` outlives it.
  ExtendedCache(NodeTable& table, std::string type) : table_(table), type_(std::move(type)) {}

  /// The node's resource with its pods; null when nothing was set. Valid until the next change.
  const ExtendedResource* GetExtendedResource(const std::string& node) const {
    return table_.FindResource(node, type_);
  }

  /// Makes `resource`, which has no pods, the node's; null: nothing is known of the node any more.
  /// The cache adds the node's pods, so that none is lost with the former resource. The node itself
  /// need not be known yet. Cost: an AddPod for each pod of the node.
  void SetExtendedResource(const std::string& node, std::shared_ptr<ExtendedResource> resource) {
    table_.SetResource(node, type_, std::move(resource));
  }

 private:
  NodeTable& table_;
  std::string type_;
};

}  // namespace qrm::scheduler
