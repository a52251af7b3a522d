// The nodes with their pods and extended resources, and the immutable views of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "scheduler/cache/extended_resource.h"
#include "scheduler/cache/handle_guard.h"
#include "scheduler/cache/objects.h"
#include "scheduler/cache/packed_pod.h"
#include "scheduler/cache/snapshot.h"

namespace qrm::scheduler {

/// What there is by node. Pods and resources may come before their node and stay after it: they
/// count again when it returns.
///
/// Threads: the cache's writer.
class NodeTable {
 public:
  /// `guard` outlives it. A resource that throws is dropped: its node has not reported it then.
  explicit NodeTable(HandleGuard& guard) : guard_(guard) {}

  struct ByUid {
    bool operator()(const PackedPodPtr& a, const PackedPodPtr& b) const { return a->uid < b->uid; }
  };

  void SetNode(const NodePtr& node);
  void RemoveNode(const std::string& name);
  std::set<std::string> node_names() const;

  /// The pod uses its node from now on, or does not any more. AddPod of a pod that is there, or
  /// RemovePod of one that is not, is a mistake of the caller's.
  void AddPod(PackedPodPtr pod);
  void RemovePod(const PackedPodPtr& pod);

  const ExtendedResource* FindResource(const std::string& node, const std::string& type) const;
  void SetResource(const std::string& node, const std::string& type,
                   std::shared_ptr<ExtendedResource> resource);

  /// The nodes as they are now. Cost: that of the nodes that changed since the last call, and of
  /// those in the same buckets.
  const NodeBuckets& Publish();

  /// Null when nothing of the node is known.
  const std::set<PackedPodPtr, ByUid>* FindPods(const std::string& node) const;

  /// By name: whether the node is known, its pods, and what its resources dump.
  nlohmann::json Dump() const;

 private:
  struct Slot {
    std::shared_ptr<ExtendedResource> resource;
    bool published = false;  ///< a snapshot has it: it is copied before it changes
  };
  struct Entry {
    NodePtr node;
    std::set<PackedPodPtr, ByUid> pods;
    std::map<std::string, Slot> resources;  // by type
    std::shared_ptr<const Resources> bare;  // as they were set
    std::optional<std::chrono::steady_clock::time_point> heard;
  };

  static ExtendedResource& ToChange(Slot& slot);
  void Change(Entry& entry, const PackedPod& pod, void (ExtendedResource::*change)(const Pod& pod));
  Entry& Touch(const std::string& node);
  void DropIfEmpty(const std::string& node);

  HandleGuard& guard_;
  std::map<std::string, Entry> entries_;
  std::set<std::string> changed_;
  NodeBuckets published_;
};

}  // namespace qrm::scheduler
