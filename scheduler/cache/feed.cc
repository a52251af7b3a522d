// Sorts custom resources by the nodes that they are about.
#include "scheduler/cache/feed.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace qrm::scheduler {

void Feed::Subscribe(const std::string& resource, const NodeOf& node_of, OnObject on_object) {
  Kind& kind = kinds_[resource];
  if (kind.subscribers.empty()) {
    kind.node_of = node_of;
  }
  kind.subscribers.push_back(Guarded(std::move(on_object)));
}

void Feed::SubscribeObjects(const std::string& resource, OnObject on_object) {
  kinds_[resource].all_subscribers.push_back(Guarded(std::move(on_object)));
}

template <typename Call>
Call Feed::Guarded(Call call) const {
  if (guard_ == nullptr) {
    return call;
  }
  return [call = std::move(call), guard = guard_, type = type_](const std::string& name,
                                                                const auto* what) {
    guard->Run(type, guard->writer(), [&] { call(name, what); });
  };
}

void Feed::SubscribeNodes(OnNode on_node) {
  node_subscribers_.push_back(Guarded(std::move(on_node)));
}

void Feed::ReadAnnotations(const std::string& glob) {
  auto keys = std::make_shared<AnnotationKeys>(*annotation_keys_);
  if (keys->Read(glob)) {
    annotation_keys_ = std::move(keys);
  }
}

void Feed::ReadDecision(const std::string& key) {
  auto keys = std::make_shared<AnnotationKeys>(*annotation_keys_);
  keys->ReadDecision(key);
  annotation_keys_ = std::move(keys);
}

std::vector<std::string> Feed::resources() const {
  std::vector<std::string> names;
  names.reserve(kinds_.size());
  for (const auto& [resource, kind] : kinds_) {
    names.push_back(resource);
  }
  return names;
}

void Feed::Set(const std::string& resource, Object object) {
  if (const auto kind = kinds_.find(resource); kind != kinds_.end()) {
    Put(kind->second, std::move(object));
  }
}

void Feed::Delete(const std::string& resource, const std::string& name) {
  if (const auto kind = kinds_.find(resource); kind != kinds_.end()) {
    Forget(kind->second, name);
  }
}

void Feed::Replace(const std::string& resource, std::vector<Object> objects) {
  const auto found = kinds_.find(resource);
  if (found == kinds_.end()) {
    return;
  }
  Kind& kind = found->second;
  std::set<std::string> gone;
  for (const auto& [name, known] : kind.objects) {
    gone.insert(name);
  }
  for (Object& object : objects) {
    gone.erase(object.name);
    Put(kind, std::move(object));
  }
  for (const std::string& name : gone) {
    Forget(kind, name);
  }
}

void Feed::Forget(Kind& kind, const std::string& name) {
  if (kind.objects.contains(name)) {
    Drop(kind, name);
    for (const OnObject& subscriber : kind.all_subscribers) {
      subscriber(name, nullptr);
    }
  }
}

void Feed::TellNode(const std::string& name, const Node* node) const {
  for (const OnNode& subscriber : node_subscribers_) {
    subscriber(name, node);
  }
}

void Feed::Put(Kind& kind, Object object) {
  std::string node = kind.node_of == nullptr ? std::string() : kind.node_of(*object.body);
  const auto before = kind.objects.find(object.name);
  if (before == kind.objects.end() || *before->second.body != *object.body) {
    for (const OnObject& subscriber : kind.all_subscribers) {
      subscriber(object.name, object.body.get());
    }
  }
  if (before != kind.objects.end() && before->second.node != node) {
    Drop(kind, object.name);
  }
  if (!node.empty()) {
    kind.names_for[node].insert(object.name);
  }
  kind.objects[object.name] = {node, std::move(object.body)};
  Tell(kind, node);
}

void Feed::Drop(Kind& kind, const std::string& name) {
  const auto found = kind.objects.find(name);
  if (found == kind.objects.end()) {
    return;
  }
  const std::string node = found->second.node;
  kind.objects.erase(found);
  if (const auto names = kind.names_for.find(node); names != kind.names_for.end()) {
    names->second.erase(name);
    if (names->second.empty()) {
      kind.names_for.erase(names);
    }
  }
  Tell(kind, node);
}

void Feed::Tell(Kind& kind, const std::string& node) {
  const auto told = kind.told.find(node);
  const auto names = kind.names_for.find(node);
  if (names == kind.names_for.end()) {
    if (told == kind.told.end()) {
      return;
    }
    kind.told.erase(told);
    for (const OnObject& subscriber : kind.subscribers) {
      subscriber(node, nullptr);
    }
    return;
  }
  const auto& body = kind.objects.at(*names->second.begin()).body;
  if (told != kind.told.end() && *told->second == *body) {
    return;
  }
  kind.told[node] = body;
  for (const OnObject& subscriber : kind.subscribers) {
    subscriber(node, body.get());
  }
}

}  // namespace qrm::scheduler
