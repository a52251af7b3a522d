// The cache at one moment, for readers.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/cache/annotation_keys.h"
#include "scheduler/cache/extended_resource.h"
#include "scheduler/cache/objects.h"

namespace qrm::scheduler {

using Resources = std::map<std::string, std::shared_ptr<const ExtendedResource>>;  ///< by type

/// A node at that moment.
struct NodeView {
  NodePtr node;  ///< null for one that is gone, or not known yet, and has pods or resources
  Resources resources;
  std::shared_ptr<const Resources> bare;  ///< the same without any pod; null: none
  /// When its qrmd gave the latest sign of life; absent: it gives none.
  std::optional<std::chrono::steady_clock::time_point> heard;
};

/// Pods that wait for pods to end, by the node that they are to get.
using Nominated = std::map<std::string, std::vector<PodPtr>>;

/// The nodes in parts, so that the next snapshot shares those that did not change.
using NodeBucket = std::map<std::string, std::shared_ptr<const NodeView>>;
using NodeBuckets = std::array<std::shared_ptr<const NodeBucket>, 64>;

inline std::size_t BucketOf(const std::string& node) {
  return std::hash<std::string>()(node) % std::tuple_size_v<NodeBuckets>;
}

/// The versions up to which the snapshot contains the API server's events, by kind: "pods",
/// "nodes" and custom resources. Versions of different kinds are not comparable.
using VersionByKind = std::map<std::string, std::string>;

/// All that filters read. One of them answers one question from beginning to end.
///
/// Threads: immutable, any.
struct Snapshot {
  std::string missing;  ///< a kind whose first list has not come; empty: all have
  VersionByKind versions;
  std::shared_ptr<const AnnotationKeys> annotation_keys;  ///< what pods were not stripped of
  NodeBuckets buckets;
  std::shared_ptr<const Nominated> nominated;  ///< null: none

  /// Null when nothing of the node is known.
  const NodeView* Find(const std::string& node) const {
    const auto& bucket = buckets[BucketOf(node)];
    if (bucket == nullptr) {
      return nullptr;
    }
    const auto found = bucket->find(node);
    return found == bucket->end() ? nullptr : found->second.get();
  }
};

using SnapshotPtr = std::shared_ptr<const Snapshot>;

}  // namespace qrm::scheduler
