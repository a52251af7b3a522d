// Pods as the cache keeps them, by the hundred thousand: what is equal among pods is kept once.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>

#include "scheduler/cache/objects.h"

namespace qrm::scheduler {

/// A text that many share; equal ones of a pool are one object.
using SharedText = std::shared_ptr<const std::string>;

/// Keeps texts once, as long as they have users.
///
/// Threads: one. Cost: of Share, the logarithm of how many there are.
class TextPool {
 public:
  SharedText Share(std::string text);
  std::size_t size() const { return texts_.size(); }

 private:
  struct ByText {
    using is_transparent = void;
    bool operator()(const SharedText& a, const SharedText& b) const { return *a < *b; }
    bool operator()(const SharedText& a, const std::string& b) const { return *a < b; }
    bool operator()(const std::string& a, const SharedText& b) const { return a < *b; }
  };

  std::set<SharedText, ByText> texts_;
  std::size_t sweep_at_ = 64;  // texts, at which texts without users are dropped
};

/// A Pod without its resource version. Units: some 300 B of its own; what it shares with the pods
/// of its workload is kept once.
///
/// Threads: immutable; made on that of its pool.
struct PackedPod {
  std::string uid;
  std::string name;
  SharedText pod_namespace;
  SharedText node;  ///< empty: waits for a place
  SharedText labels;
  SharedText annotations;
  SharedText needs;      ///< containers, overhead, QoS class and priority
  SharedText nominated;  ///< empty: no node
  bool finished = false;
  bool refused = false;
  bool ending = false;

  /// Of the same pool: texts are compared by where they are.
  bool operator==(const PackedPod&) const = default;
};
using PackedPodPtr = std::shared_ptr<const PackedPod>;

PackedPodPtr Pack(Pod pod, TextPool& pool);
Pod Unpack(const PackedPod& packed);

/// True when `a` and `b`, of one pool, differ in nothing that resources read.
bool SameToResources(const PackedPod& a, const PackedPod& b);

}  // namespace qrm::scheduler
