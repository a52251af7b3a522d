// The one feed of nodes and custom resources that all handles share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scheduler/cache/annotation_keys.h"
#include "scheduler/cache/handle_guard.h"
#include "scheduler/cache/objects.h"

namespace qrm::scheduler {

/// A custom resource, as the API server has it.
struct Object {
  std::string name;  ///< with its namespace and '/' where it has one
  std::string resource_version;
  std::shared_ptr<const nlohmann::json> body;
};

/// Finds the nodes that custom resources are about, and gives subscribers the custom resource of
/// each node. If several are about a node, the first by name counts. Repeated events are dropped.
///
/// Threads: the cache's writer.
class Feed {
 public:
  /// The node that a custom resource is about; empty for none.
  using NodeOf = std::function<std::string(const nlohmann::json& body)>;
  /// What counts for `node` from now on; null: nothing.
  using OnObject = std::function<void(const std::string& node, const nlohmann::json* body)>;
  /// `node` as it is now; null: it is gone.
  using OnNode = std::function<void(const std::string& name, const Node* node)>;

  /// `resource` is PLURAL.VERSION.GROUP, as kubectl takes it: "things.v1.test.io". Several may
  /// subscribe to one; they agree about `node_of`, and the first one's is used.
  void Subscribe(const std::string& resource, const NodeOf& node_of, OnObject on_object);
  void SubscribeNodes(OnNode on_node);
  /// All objects of `resource`, also several about a node, or none: `on_object` is called with the
  /// name of each (with its namespace and '/', where it has one), and null for one that is gone.
  /// Resources of Kubernetes itself are PLURAL.VERSION: "configmaps.v1". NAMESPACE/ before it
  /// follows that namespace only.
  void SubscribeObjects(const std::string& resource, OnObject on_object);
  /// Pods come with the annotations that `glob` describes, a key or one with stars, and with no
  /// others. A later call makes pods be listed again.
  void ReadAnnotations(const std::string& glob);
  /// Pods come with the annotation that ExtendedResource::Decide writes.
  void ReadDecision(const std::string& key);

  /// Who subscribes from now on: `guard` counts what the subscriptions throw. Outlived by it.
  void SetSubscriber(HandleGuard& guard, const std::string& type) {
    guard_ = &guard;
    type_ = type;
  }

  /// The resources with subscribers.
  std::vector<std::string> resources() const;
  /// Another object once more annotations are read.
  const std::shared_ptr<const AnnotationKeys>& annotation_keys() const { return annotation_keys_; }

  /// An event of the API server. Objects of a resource without subscribers are dropped.
  void Set(const std::string& resource, Object object);
  void Delete(const std::string& resource, const std::string& name);
  /// All that there are: others are gone.
  void Replace(const std::string& resource, std::vector<Object> objects);
  void TellNode(const std::string& name, const Node* node) const;

 private:
  struct Known {
    std::string node;
    std::shared_ptr<const nlohmann::json> body;
  };
  struct Kind {
    NodeOf node_of;
    std::vector<OnObject> subscribers;
    std::vector<OnObject> all_subscribers;                   // of all objects, by their names
    std::map<std::string, Known> objects;                    // by name
    std::map<std::string, std::set<std::string>> names_for;  // node -> names of those about it
    std::map<std::string, std::shared_ptr<const nlohmann::json>> told;  // node -> what counts
  };
  template <typename Call>
  Call Guarded(Call call) const;
  static void Put(Kind& kind, Object object);
  static void Forget(Kind& kind, const std::string& name);
  static void Drop(Kind& kind, const std::string& name);
  static void Tell(Kind& kind, const std::string& node);

  HandleGuard* guard_ = nullptr;
  std::string type_;
  std::map<std::string, Kind> kinds_;
  std::vector<OnNode> node_subscribers_;
  std::shared_ptr<const AnnotationKeys> annotation_keys_ = std::make_shared<const AnnotationKeys>();
};

}  // namespace qrm::scheduler
