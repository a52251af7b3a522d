// The cache itself: applies the API server's events and our bindings, one after another.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/base/status.h"
#include "scheduler/cache/extended_cache.h"
#include "scheduler/cache/feed.h"
#include "scheduler/cache/handle.h"
#include "scheduler/cache/mailbox.h"
#include "scheduler/cache/node_table.h"
#include "scheduler/cache/pod_book.h"
#include "scheduler/cache/snapshot.h"

namespace qrm::scheduler {

/// The kinds that are no custom resources, in VersionByKind and Snapshot::missing.
inline constexpr char kPods[] = "pods";
inline constexpr char kNodes[] = "nodes";
/// In VersionByKind, how often handles' threads have changed something.
inline constexpr char kPosted[] = "posted";

/// A consistent list of pods: the API server's most recent state.
struct PodList {
  std::vector<Pod> pods;
  std::string version;
  uint64_t begun = 0;  ///< what BeginList returned before the list was asked for
};

/// Nodes, pods and extended resources. A change whose version is not newer than the version that
/// its kind has reached is old, and is left out. A change without a version counts as new.
///
/// Threads: one, the writer; see SchedulerCache.
class ClusterCache {
 public:
  /// Runs every handle of `handles`, which outlives the cache. Errors: theirs.
  static StatusOr<std::unique_ptr<ClusterCache>> Make(const HandleRegistry& handles);
  /// Stops the handles.
  ~ClusterCache();
  ClusterCache(const ClusterCache&) = delete;
  ClusterCache& operator=(const ClusterCache&) = delete;

  void SetPod(Pod pod);
  void DeletePod(const std::string& uid, const std::string& version);
  /// All pods: those of `list`, and those that AddListed was given since BeginList.
  void ReplacePods(PodList list);
  uint64_t BeginList() { return pods_.BeginList(); }
  /// So that no list of 100,000 pods has to be in memory beside the cache.
  void AddListed(Pod pod);
  /// The pods that kube-scheduler has found no node for.
  std::vector<PodPtr> refused() const { return pods_.refused(); }

  /// As PodBook has them.
  std::vector<PodPtr> FindPods(const std::string& words) const { return pods_.FindAll(words); }
  std::string AssumedOn(const std::string& uid) const { return pods_.AssumedOn(uid); }

  /// Ends the handles' threads. Threads: any, but not the writer.
  void StopHandles();

  void SetNode(Node node);
  void DeleteNode(const std::string& name, const std::string& version);
  void ReplaceNodes(std::vector<Node> nodes, const std::string& version);

  void SetObject(const std::string& resource, Object object);
  void DeleteObject(const std::string& resource, const std::string& name,
                    const std::string& version);
  void ReplaceObjects(const std::string& resource, std::vector<Object> objects,
                      const std::string& version);

  /// Nothing else of `kind` has changed up to `version`.
  void Reach(const std::string& kind, const std::string& version) { TakeVersion(kind, version); }

  /// The custom resources that handles subscribed to.
  std::vector<std::string> resources() const { return feed_.resources(); }
  /// Whether pods must be listed again, or for the first time, because a new reader needs
  /// annotations that were dropped from earlier pods.
  bool TakeNewAnnotationKeys();

  /// Whether `pod` would fit `node` if the pods of these UIDs were gone, as the filter judges.
  bool FitsWithout(const Pod& pod, const std::string& node, const std::vector<std::string>& uids);
  /// Pods of less priority that end so that `pod` fits `node`: none when it fits once those are
  /// gone that end already. As few as possible, those of the least priority first. Absent when that
  /// would not help, or the node does not reject the pod.
  std::optional<std::vector<PodPtr>> VictimsOn(const Pod& pod, const std::string& node);

  /// Decides that the pod goes to `node`, by the newest state, and counts it there. The result is
  /// to be written on the pod with its binding; the same again for a pod that is assumed there.
  /// Errors: kUnavailable when lists or the pod have not come; kFailedPrecondition when it is
  /// bound, or another binding of it is under way; kResourceExhausted when it no longer fits, also
  /// when only the node's allocatable is short. Nothing has changed then.
  StatusOr<StringMap> Assume(const std::string& uid, const std::string& node);
  /// The API server has accepted the binding, or rejected it for good. A lost answer is neither:
  /// repeat the binding until there is an answer.
  void Accept(const std::string& uid) { pods_.Accept(uid); }
  void Release(const std::string& uid, const std::string& node);

  /// Runs what handles' threads have posted; `wake` is called when they post.
  void RunPosted();
  void OnPosted(std::function<void()> wake) { mailbox_.OnPut(std::move(wake)); }

  /// The state as it is now.
  SnapshotPtr Publish();

  /// All of the state except versions as JSON. Equal states have equal texts: the cache has the
  /// same text as a cache that is recreated from the same lists.
  std::string Dump() const;

 private:
  explicit ClusterCache(const HandleRegistry& handles)
      : handles_(handles), nodes_(handles.guard()) {}
  bool TakeVersion(const std::string& kind, const std::string& version);
  void Listed(const std::string& kind, const std::string& version);
  void Move(const StayChange& change);
  Status Reserve(const Pod& pod, const std::string& node);
  void Unreserve(const Pod& pod, const std::string& node);
  void Strip(Pod& pod) const;
  Status CheckAssumable(const std::string& uid, const std::string& node) const;
  /// Whether the node has room by its allocatable, too, which kube-scheduler has looked at.
  Status CheckSameView(const Snapshot& now, const Pod& pod, const std::string& node) const;

  const HandleRegistry& handles_;
  NodeTable nodes_;
  Mailbox mailbox_;
  uint64_t posted_ = 0;  // letters that were run
  PodBook pods_;
  Feed feed_;
  std::shared_ptr<const AnnotationKeys> taken_keys_;              // null: pods were not listed yet
  std::map<std::string, std::unique_ptr<ExtendedCache>> caches_;  // by type
  std::set<std::string> unlisted_{kPods, kNodes};
  VersionByKind versions_;
  std::map<std::string, StringMap> decisions_;  // by UID, of assumed pods
  bool stopped_ = false;
};

}  // namespace qrm::scheduler
