// A sorted map whose copies share what they do not change, for states that readers keep while the
// next one is made.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include "api/base/shared_text.h"
#include "api/pod_set.h"
#include "api/resource.h"

namespace qrm::checkpoint {

/// Text keys to values, in a balanced tree whose parts copies share. Threads: const use from any;
/// an Editor works on a copy that no other thread sees yet. Cost, for n entries: a copy is a
/// pointer; an edit copies the log2(n) nodes above its entry and touches one beside each, since
/// what it costs on a large map is memory that no cache has. Source: Hirai and Yamamoto, "Balancing
/// weight-balanced trees", with their factors 3 and 2.
template <typename Value>
class PersistentMap {
 public:
  class Editor;

  PersistentMap() = default;
  /// Of entries in the strict order of their keys. Cost: O(n).
  explicit PersistentMap(std::vector<std::pair<SharedText, Value>> sorted)
      : root_(Build(sorted, 0, sorted.size())) {}

  /// Null when missing; valid as long as a map that holds it.
  const Value* Find(std::string_view key) const {
    const Node* node = root_.get();
    while (node != nullptr) {
      const int order = key.compare(node->key());
      if (order == 0) {
        return &node->entry->value;
      }
      node = (order < 0 ? node->left : node->right).get();
    }
    return nullptr;
  }

  std::size_t size() const { return SizeOf(root_.get()); }
  /// Nodes from the root to the furthest entry. Cost: O(n).
  std::size_t depth() const { return DepthOf(root_.get()); }

  /// Calls `visit(key, value)` in the order of the keys.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (Walk walk(root_.get()); !walk.at_end(); walk.Skip()) {
      walk.OpenAll();
      visit(walk.top().entry->key, walk.top().entry->value);
    }
  }

  /// The keys of the entries that the two maps do not share. Cost: log2(n) for each.
  PodSet KeysUnlike(const PersistentMap& other) const {
    PodSet keys;
    Walk mine(root_.get());
    Walk theirs(other.root_.get());
    while (!mine.at_end() && !theirs.at_end()) {
      if (mine.SharesWith(theirs)) {
        mine.Skip();
        theirs.Skip();
      } else if (mine.size() > 1 || theirs.size() > 1) {
        (mine.size() > theirs.size() ? mine : theirs).Open();
      } else {
        const int order = mine.top().key().compare(theirs.top().key());
        keys.insert((order <= 0 ? mine : theirs).top().entry->key);
        if (order <= 0) {
          mine.Skip();
        }
        if (order >= 0) {
          theirs.Skip();
        }
      }
    }
    for (Walk* const rest : {&mine, &theirs}) {
      for (; !rest->at_end(); rest->Skip()) {
        rest->OpenAll();
        keys.insert(rest->top().entry->key);
      }
    }
    return keys;
  }

 private:
  template <typename T>
  using Counted = boost::intrusive_ref_counter<T, boost::thread_safe_counter>;

  /// Apart from its node, so that copies of the node share it.
  struct Entry : Counted<Entry> {
    Entry(SharedText given_key, Value given_value)
        : key(std::move(given_key)), value(std::move(given_value)) {}

    const SharedText key;
    const Value value;
  };
  using EntryPtr = boost::intrusive_ptr<const Entry>;

  struct Node : Counted<Node> {
    std::string_view key() const { return entry->key; }

    uint32_t size = 1;    ///< entries from here on
    uint64_t editor = 0;  ///< who may still change it
    EntryPtr entry;
    boost::intrusive_ptr<Node> left;
    boost::intrusive_ptr<Node> right;
  };
  using NodePtr = boost::intrusive_ptr<Node>;

  static std::size_t SizeOf(const Node* node) { return node == nullptr ? 0 : node->size; }

  // NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
  static std::size_t DepthOf(const Node* node) {
    return node == nullptr ? 0
                           : 1 + std::max(DepthOf(node->left.get()), DepthOf(node->right.get()));
  }

  static void CountAnew(Node& node) {
    node.size = static_cast<uint32_t>(1 + SizeOf(node.left.get()) + SizeOf(node.right.get()));
  }

  // NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
  static NodePtr Build(std::vector<std::pair<SharedText, Value>>& sorted, std::size_t begin,
                       std::size_t end) {
    if (begin == end) {
      return nullptr;
    }
    const std::size_t middle = begin + (end - begin) / 2;
    NodePtr node(new Node);
    node->left = Build(sorted, begin, middle);
    node->entry = new Entry(std::move(sorted[middle].first), std::move(sorted[middle].second));
    node->right = Build(sorted, middle + 1, end);
    CountAnew(*node);
    return node;
  }

  /// A walk in the order of the keys, over whole trees or single entries: a tree that is opened
  /// becomes the tree before its entry, the entry, and the tree after it.
  class Walk {
   public:
    explicit Walk(const Node* root) { Push(root, true); }

    bool at_end() const { return stack_.empty(); }
    const Node& top() const { return *stack_.back().node; }
    /// Of the tree that is next; an entry alone has one.
    std::size_t size() const { return stack_.back().is_tree ? top().size : 1; }
    bool SharesWith(const Walk& other) const {
      return size() == other.size() &&
             (size() == 1 ? top().entry == other.top().entry : &top() == &other.top());
    }
    void Skip() { stack_.pop_back(); }
    void Open() {
      const Node* const node = stack_.back().node;
      stack_.pop_back();
      Push(node->right.get(), true);
      Push(node, false);
      Push(node->left.get(), true);
    }
    /// Until an entry is next.
    void OpenAll() {
      while (size() > 1) {
        Open();
      }
    }

   private:
    struct Step {
      const Node* node;
      bool is_tree;
    };

    void Push(const Node* node, bool is_tree) {
      if (node != nullptr) {
        stack_.push_back({node, is_tree});
      }
    }

    std::vector<Step> stack_;
  };

  NodePtr root_;
};

/// Changes `map`, which no other thread may use meanwhile; maps that share parts with it keep
/// theirs.
template <typename Value>
class PersistentMap<Value>::Editor {
 public:
  explicit Editor(PersistentMap& map) : map_(map), id_(NextId()) {}

  void Put(const SharedText& key, Value value) {
    PutBelow(map_.root_, EntryPtr(new Entry(key, std::move(value))));
  }

  void Erase(std::string_view key) {
    if (map_.Find(key) != nullptr) {
      EraseBelow(map_.root_, key);
    }
  }

 private:
  // Their proof holds for these.
  static constexpr std::size_t kDelta = 3;
  static constexpr std::size_t kGamma = 2;

  static uint64_t NextId() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }

  /// The node at `place`, which this editor alone has from now on.
  Node& Own(NodePtr& place) {
    if (place->editor != id_) {
      place = new Node(*place);
      place->editor = id_;
    }
    return *place;
  }

  // NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
  void PutBelow(NodePtr& place, EntryPtr entry) {
    if (place == nullptr) {
      place = new Node;
      place->editor = id_;
      place->entry = std::move(entry);
      return;
    }
    Node& node = Own(place);
    const int order = std::string_view(entry->key).compare(node.key());
    if (order == 0) {
      node.entry = std::move(entry);
      return;
    }
    PutBelow(order < 0 ? node.left : node.right, std::move(entry));
    Balance(place);
  }

  /// It is there.
  // NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
  void EraseBelow(NodePtr& place, std::string_view key) {
    const int order = key.compare(place->key());
    if (order != 0) {
      Node& node = Own(place);
      EraseBelow(order < 0 ? node.left : node.right, key);
    } else if (place->left == nullptr || place->right == nullptr) {
      place = NodePtr(place->left == nullptr ? place->right : place->left);
      return;
    } else {
      Node& node = Own(place);
      node.entry = TakeFirst(node.right);
    }
    Balance(place);
  }

  /// Takes the first entry out of the tree at `place`.
  // NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
  EntryPtr TakeFirst(NodePtr& place) {
    if (place->left == nullptr) {
      EntryPtr first = place->entry;
      place = NodePtr(place->right);
      return first;
    }
    EntryPtr first = TakeFirst(Own(place).left);
    Balance(place);
    return first;
  }

  static std::size_t Weight(const NodePtr& node) { return SizeOf(node.get()) + 1; }

  /// The node at `place` is this editor's, and one entry more or less is below it.
  void Balance(NodePtr& place) {
    Node& node = *place;
    CountAnew(node);
    if (Weight(node.right) > kDelta * Weight(node.left)) {
      Lighten(place, &Node::right, &Node::left);
    } else if (Weight(node.left) > kDelta * Weight(node.right)) {
      Lighten(place, &Node::left, &Node::right);
    }
  }

  using Side = NodePtr Node::*;

  /// The node at `place` is this editor's, and its `heavy` side is too heavy.
  void Lighten(NodePtr& place, Side heavy, Side light) {
    NodePtr& below = (*place).*heavy;
    Node& child = Own(below);
    if (Weight(child.*light) >= kGamma * Weight(child.*heavy)) {
      Own(child.*light);
      Rotate(below, light, heavy);
    }
    Rotate(place, heavy, light);
  }

  /// The node on the side `up` takes the place, whose node goes `down`. Both are this editor's.
  static void Rotate(NodePtr& place, Side up, Side down) {
    const NodePtr former = place;
    place = (*former).*up;
    (*former).*up = (*place).*down;
    (*place).*down = former;
    CountAnew(*former);
    CountAnew(*place);
  }

  PersistentMap& map_;
  uint64_t id_;
};

}  // namespace qrm::checkpoint
