// Which pod counts on which node: by what the API server shows, and by what we bind ourselves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "scheduler/cache/objects.h"

namespace qrm::scheduler {

/// A pod that counts on a node; `pod` has the annotations of its binding.
struct Stay {
  std::string node;
  PodPtr pod;
};

/// What changed for one pod: it counted as `before` and counts as `after`.
struct StayChange {
  std::optional<Stay> before;
  std::optional<Stay> after;
};

/// The rules of who counts. A pod counts on one node at most: where the API server shows it, unless
/// it has finished; else where we assumed it.
///
/// An assumed pod stops being one when the API server shows it bound or finished, when it is gone,
/// when its binding was refused, and when a list that was begun after its binding was accepted
/// shows it unbound (the server's data was restored from earlier). Time alone ends nothing: a
/// binding may still be on its way.
///
/// Threads: the cache's writer.
class PodBook {
 public:
  /// The API server shows `pod` so. Absent when nobody needs to hear of it.
  std::optional<StayChange> Set(PodPtr pod);
  std::optional<StayChange> Delete(const std::string& uid);
  /// It shows these and no others, in a consistent list that was begun when BeginList returned
  /// `begun`.
  std::vector<StayChange> Replace(std::vector<PodPtr> pods, uint64_t begun);
  uint64_t BeginList() const { return accepted_; }

  /// The pod as the API server shows it, or null.
  PodPtr Find(const std::string& uid) const;
  /// Where it counts, or null.
  const Stay* FindStay(const std::string& uid) const;
  /// The node that it is assumed on; empty for none.
  std::string AssumedOn(const std::string& uid) const;

  /// A pod that is known and counts nowhere counts on `node`, with `annotations` added to its own.
  StayChange Assume(const std::string& uid, const std::string& node, const StringMap& annotations);
  /// The API server has accepted the binding.
  void Accept(const std::string& uid);
  /// It has refused it: the pod is not on `node` by our doing.
  std::optional<StayChange> Release(const std::string& uid, const std::string& node);

  /// Those that the API server shows as refused, and that are not assumed on a node.
  std::vector<PodPtr> refused() const;
  /// By UID, the node that it is assumed on.
  std::map<std::string, std::string> assumed() const;

 private:
  struct Record {
    PodPtr shown;                // null: the API server does not show it
    std::string assumed_on;      // by us; empty: not assumed
    StringMap decision;          // annotations of the binding, while it is assumed
    uint64_t accepted = 0;       // number of the accepted binding; 0: not accepted yet
    std::optional<Stay> counts;  // what follows from the others
  };

  static std::optional<Stay> Conclude(const Record& record);
  std::optional<StayChange> Settle(const std::string& uid, Record& record);

  std::map<std::string, Record> records_;  // by UID
  uint64_t accepted_ = 0;                  // bindings so far
};

}  // namespace qrm::scheduler
