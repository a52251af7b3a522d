// Copies a resource before it changes when a snapshot has it.
#include "scheduler/cache/node_table.h"

#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/check.h"

namespace qrm::scheduler {
namespace {

std::string PublishedAt(const NodePtr& node) {
  if (node == nullptr) {
    return {};
  }
  const auto found = node->annotations.find(kNodePublished);
  return found == node->annotations.end() ? std::string() : std::string(found->second);
}

}  // namespace

// The clocks of nodes may be wrong, so that it counts when the text changed.
void NodeTable::SetNode(const NodePtr& node) {
  Entry& entry = Touch(node->name);
  const std::string published = PublishedAt(node);
  if (published.empty()) {
    entry.heard.reset();
  } else if (!entry.heard.has_value() || published != PublishedAt(entry.node)) {
    entry.heard = std::chrono::steady_clock::now();
  }
  entry.node = node;
}

void NodeTable::RemoveNode(const std::string& name) {
  Touch(name).node = nullptr;
  DropIfEmpty(name);
}

std::set<std::string> NodeTable::node_names() const {
  std::set<std::string> names;
  for (const auto& [name, entry] : entries_) {
    if (entry.node != nullptr) {
      names.insert(name);
    }
  }
  return names;
}

void NodeTable::AddPod(PackedPodPtr pod) {
  Entry& entry = Touch(*pod->node);
  Change(entry, *pod, &ExtendedResource::AddPod);
  QRM_CHECK(entry.pods.insert(std::move(pod)).second);
}

void NodeTable::RemovePod(const PackedPodPtr& pod) {
  Entry& entry = Touch(*pod->node);
  Change(entry, *pod, &ExtendedResource::RemovePod);
  QRM_CHECK(entry.pods.erase(pod) == 1);
  DropIfEmpty(*pod->node);
}

const ExtendedResource* NodeTable::FindResource(const std::string& node,
                                                const std::string& type) const {
  const auto entry = entries_.find(node);
  if (entry == entries_.end()) {
    return nullptr;
  }
  const auto slot = entry->second.resources.find(type);
  return slot == entry->second.resources.end() ? nullptr : slot->second.resource.get();
}

const std::set<PackedPodPtr, NodeTable::ByUid>* NodeTable::FindPods(const std::string& node) const {
  const auto entry = entries_.find(node);
  return entry == entries_.end() ? nullptr : &entry->second.pods;
}

void NodeTable::SetResource(const std::string& node, const std::string& type,
                            std::shared_ptr<ExtendedResource> resource) {
  Entry& entry = Touch(node);
  auto bare = std::make_shared<Resources>(entry.bare == nullptr ? Resources() : *entry.bare);
  bare->erase(type);
  const bool is_set = resource != nullptr && guard_.Run(type, guard_.writer(), [&] {
    bare->emplace(type, resource->Clone());
    for (const PackedPodPtr& pod : entry.pods) {
      resource->AddPod(Unpack(*pod));
    }
  });
  entry.bare = std::move(bare);
  if (!is_set) {
    entry.resources.erase(type);
    DropIfEmpty(node);
    return;
  }
  entry.resources[type] = {.resource = std::move(resource)};
}

const NodeBuckets& NodeTable::Publish() {
  std::map<std::size_t, std::shared_ptr<NodeBucket>> copies;
  for (const std::string& name : changed_) {
    const std::size_t index = BucketOf(name);
    auto& copy = copies[index];
    if (copy == nullptr) {
      copy = published_[index] == nullptr ? std::make_shared<NodeBucket>()
                                          : std::make_shared<NodeBucket>(*published_[index]);
    }
    const auto found = entries_.find(name);
    if (found == entries_.end()) {
      copy->erase(name);
      continue;
    }
    auto view = std::make_shared<NodeView>();
    view->node = found->second.node;
    view->bare = found->second.bare;
    view->heard = found->second.heard;
    for (auto& [type, slot] : found->second.resources) {
      slot.published = true;
      view->resources.emplace(type, slot.resource);
    }
    (*copy)[name] = std::move(view);
  }
  for (auto& [index, copy] : copies) {
    published_[index] = std::move(copy);
  }
  changed_.clear();
  return published_;
}

nlohmann::json NodeTable::Dump() const {
  nlohmann::json nodes = nlohmann::json::object();
  for (const auto& [name, entry] : entries_) {
    nlohmann::json& node = nodes[name];
    node["known"] = entry.node != nullptr;
    node["pods"] = nlohmann::json::object();
    node["resources"] = nlohmann::json::object();
    for (const PackedPodPtr& pod : entry.pods) {
      node["pods"][pod->uid] = *pod->pod_namespace + "/" + pod->name;
    }
    for (const auto& [type, slot] : entry.resources) {
      guard_.Run(type, guard_.writer(), [&, &key = type, &dumped = *slot.resource] {
        node["resources"][key] = dumped.Dump();
      });
    }
  }
  return nodes;
}

void NodeTable::Change(Entry& entry, const PackedPod& pod,
                       void (ExtendedResource::*change)(const Pod& pod)) {
  if (entry.resources.empty()) {
    return;
  }
  const Pod unpacked = Unpack(pod);
  for (auto each = entry.resources.begin(); each != entry.resources.end();) {
    const bool changed = guard_.Run(each->first, guard_.writer(),
                                    [&] { (ToChange(each->second).*change)(unpacked); });
    each = changed ? std::next(each) : entry.resources.erase(each);
  }
}

ExtendedResource& NodeTable::ToChange(Slot& slot) {
  if (slot.published) {
    slot.resource = slot.resource->Clone();
    slot.published = false;
  }
  return *slot.resource;
}

NodeTable::Entry& NodeTable::Touch(const std::string& node) {
  changed_.insert(node);
  return entries_[node];
}

void NodeTable::DropIfEmpty(const std::string& node) {
  const auto found = entries_.find(node);
  if (found->second.node == nullptr && found->second.pods.empty() &&
      found->second.resources.empty()) {
    entries_.erase(found);
  }
}

}  // namespace qrm::scheduler
