// Which pod counts on which node: by what the API server shows, and by what we bind ourselves.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/base/status.h"
#include "scheduler/cache/objects.h"
#include "scheduler/cache/packed_pod.h"
#include "scheduler/cache/snapshot.h"

namespace qrm::scheduler {

/// What changed for one pod: it counted as `before` and counts as `after`, on the node that they
/// name, with the annotations of its binding. Null: nowhere.
struct StayChange {
  PackedPodPtr before;
  PackedPodPtr after;
};

/// The rules of where pods count. A pod counts on one node at most: where the API server shows it,
/// unless it has finished; else where we assumed it.
///
/// An assumed pod stops being one when the API server shows it bound or finished, when it is gone,
/// when its binding was rejected, and when a list that was begun after its binding was accepted
/// shows it unbound (the server's data was restored from earlier). Time alone ends nothing: a
/// binding may still be on its way.
///
/// Threads: the cache's writer.
class PodBook {
 public:
  /// The API server shows `pod` so. Absent when nothing changes for resources.
  std::optional<StayChange> Set(Pod pod);
  std::optional<StayChange> Delete(const std::string& uid);
  /// It shows those of AddListed and no others, in a consistent list that was begun when BeginList
  /// returned `begun`.
  std::vector<StayChange> Replace(uint64_t begun);
  /// Forgets those of a list that did not end.
  uint64_t BeginList();
  void AddListed(Pod pod) { listed_.push_back(Pack(std::move(pod), texts_)); }

  /// The pod as the API server shows it, without its version, or null.
  PodPtr Find(const std::string& uid) const;
  /// As it counts, or null.
  PackedPodPtr FindStay(const std::string& uid) const;
  /// The pods that the API server shows by these words: a name, NAMESPACE/NAME or a UID. Cost: all
  /// pods.
  std::vector<PodPtr> FindAll(const std::string& words) const;
  /// The node that it is assumed on; empty for none.
  std::string AssumedOn(const std::string& uid) const;

  /// A pod that is known and counts nowhere counts on `node`, with `annotations` added to its own.
  StayChange Assume(const std::string& uid, const std::string& node, const StringMap& annotations);
  /// The API server has accepted the binding.
  void Accept(const std::string& uid);
  /// The API server has rejected it: we have not put the pod on `node`.
  std::optional<StayChange> Release(const std::string& uid, const std::string& node);

  /// The pods that wait for a node that pods are ended on for them; null: none.
  std::shared_ptr<const Nominated> nominated();

  /// The pods that the API server shows as unschedulable, and that are not assumed on a node.
  std::vector<PodPtr> refused() const;
  /// By UID, the node that it is assumed on.
  std::map<std::string, std::string> assumed() const;

 private:
  /// A pod that is on a node by us.
  struct Assumption {
    std::string node;
    StringMap decision;     // annotations of the binding
    uint64_t accepted = 0;  // number of the accepted binding; 0: not accepted yet
  };
  struct Record {
    PackedPodPtr shown;                   // null: the API server does not show it
    PackedPodPtr counts;                  // what follows from the others; null: nowhere
    std::unique_ptr<Assumption> assumed;  // null: it is not
  };

  std::optional<StayChange> Set(PackedPodPtr pod);
  PackedPodPtr Conclude(const Record& record);
  void Nominate(const std::string& uid, const Record& record);
  std::optional<StayChange> Settle(const std::string& uid, Record& record);

  TextPool texts_;
  std::map<std::string, Record> records_;  // by UID
  std::vector<PackedPodPtr> listed_;
  std::map<std::string, PackedPodPtr> nominated_;  // by UID
  std::shared_ptr<const Nominated> by_node_;       // of nominated_; null: not made yet, or none
  uint64_t accepted_ = 0;                          // bindings so far
};

}  // namespace qrm::scheduler
