// A sorted map whose copies share what they do not change, for states that readers keep while the
// next one is made.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/shared_text.h"

namespace qrm::checkpoint {

/// Text keys to values, in a tree of two levels whose parts copies share. Threads: const use from
/// any; an Editor works on a copy that nobody else sees yet. Cost, for n entries: a copy is n /
/// 1000 pointers at most; an edit copies two parts of up to 64 pointers, once per Editor.
template <typename Value>
class PersistentMap {
 public:
  using Entry = std::pair<SharedText, Value>;
  class Editor;

  PersistentMap() = default;
  /// Of entries in the strict order of their keys. Cost: O(n).
  explicit PersistentMap(std::vector<Entry> sorted) : size_(sorted.size()) {
    std::vector<EntryPtr> entries;
    entries.reserve(sorted.size());
    for (Entry& entry : sorted) {
      entries.push_back(std::make_shared<const Entry>(std::move(entry)));
    }
    groups_ = InParts<Group>(InParts<Chunk>(std::move(entries)));
  }

  /// Null when missing; valid as long as a map that holds it.
  const Value* Find(std::string_view key) const {
    if (groups_.empty()) {
      return nullptr;
    }
    const Group& group = *groups_[IndexFor(groups_, key)];
    const std::vector<EntryPtr>& entries = group.parts[IndexFor(group.parts, key)]->parts;
    const auto found = Position(entries, key);
    return found != entries.end() && (*found)->first == key ? &(*found)->second : nullptr;
  }

  std::size_t size() const { return size_; }

  /// Calls `visit(key, value)` in the order of the keys.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const auto& group : groups_) {
      for (const auto& chunk : group->parts) {
        for (const EntryPtr& entry : chunk->parts) {
          visit(entry->first, entry->second);
        }
      }
    }
  }

  /// The keys of the entries that the two maps do not share. Cost: these, and a pointer per part.
  std::set<SharedText, std::less<>> KeysUnlike(const PersistentMap& other) const {
    const std::vector<const Entry*> mine = EntriesOutside(other);
    const std::vector<const Entry*> theirs = other.EntriesOutside(*this);
    std::vector<const Entry*> unlike;
    std::set_symmetric_difference(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                                  std::back_inserter(unlike));
    std::set<SharedText, std::less<>> keys;
    for (const Entry* entry : unlike) {
      keys.insert(entry->first);
    }
    return keys;
  }

 private:
  static constexpr std::size_t kMost = 64;
  static constexpr std::size_t kNew = kMost / 2;

  /// Copying a chunk copies pointers, not keys.
  using EntryPtr = std::shared_ptr<const Entry>;

  template <typename Part>
  struct Node {
    uint64_t editor = 0;      ///< who may still change it
    std::vector<Part> parts;  ///< not empty
  };
  using Chunk = Node<EntryPtr>;
  using Group = Node<std::shared_ptr<Chunk>>;

  /// `parts` in nodes that have room for more.
  template <typename N, typename Part>
  static std::vector<std::shared_ptr<N>> InParts(std::vector<Part> parts) {
    std::vector<std::shared_ptr<N>> nodes;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (i % kNew == 0) {
        nodes.push_back(std::make_shared<N>());
        nodes.back()->parts.reserve(std::min(kNew, parts.size() - i));
      }
      nodes.back()->parts.push_back(std::move(parts[i]));
    }
    return nodes;
  }

  /// Sorted.
  std::vector<const Chunk*> Chunks() const {
    std::vector<const Chunk*> chunks;
    for (const auto& group : groups_) {
      for (const auto& chunk : group->parts) {
        chunks.push_back(chunk.get());
      }
    }
    std::sort(chunks.begin(), chunks.end());
    return chunks;
  }

  /// The entries of the chunks that `other` does not share, sorted.
  std::vector<const Entry*> EntriesOutside(const PersistentMap& other) const {
    const std::vector<const Chunk*> mine = Chunks();
    const std::vector<const Chunk*> theirs = other.Chunks();
    std::vector<const Chunk*> outside;
    std::set_difference(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                        std::back_inserter(outside));
    std::vector<const Entry*> entries;
    for (const Chunk* chunk : outside) {
      for (const EntryPtr& entry : chunk->parts) {
        entries.push_back(entry.get());
      }
    }
    std::sort(entries.begin(), entries.end());
    return entries;
  }

  static const SharedText& FirstKey(const Chunk& chunk) { return chunk.parts.front()->first; }
  static const SharedText& FirstKey(const Group& group) { return FirstKey(*group.parts.front()); }

  template <typename Entries>
  static auto Position(Entries& entries, std::string_view key) {
    return std::lower_bound(
        entries.begin(), entries.end(), key,
        [](const EntryPtr& entry, std::string_view wanted) { return entry->first < wanted; });
  }

  /// The node that holds `key` or would; there must be one.
  template <typename N>
  static std::size_t IndexFor(const std::vector<std::shared_ptr<N>>& nodes, std::string_view key) {
    const auto after = std::upper_bound(
        nodes.begin(), nodes.end(), key,
        [](std::string_view wanted, const auto& node) { return FirstKey(*node) > wanted; });
    const auto index = static_cast<std::size_t>(after - nodes.begin());
    return index == 0 ? 0 : index - 1;
  }

  std::vector<std::shared_ptr<Group>> groups_;
  std::size_t size_ = 0;
};

/// Changes `map`, which no other thread may use meanwhile; maps that share parts with it keep
/// theirs.
template <typename Value>
class PersistentMap<Value>::Editor {
 public:
  explicit Editor(PersistentMap& map) : map_(map), id_(NextId()) {}

  void Put(const SharedText& key, Value value) {
    auto entry = std::make_shared<const Entry>(key, std::move(value));
    if (map_.groups_.empty()) {
      map_.groups_ = InParts<Group>(InParts<Chunk>(std::vector<EntryPtr>{std::move(entry)}));
      map_.size_ = 1;
      return;
    }
    const std::size_t at = IndexFor(map_.groups_, key);
    Group& group = Own(map_.groups_[at]);
    const std::size_t index = IndexFor(group.parts, key);
    std::vector<EntryPtr>& entries = Own(group.parts[index]).parts;
    const auto position = Position(entries, key);
    if (position != entries.end() && (*position)->first == key) {
      *position = std::move(entry);
      return;
    }
    entries.insert(position, std::move(entry));
    ++map_.size_;
    SplitIfFull(group.parts, index);
    SplitIfFull(map_.groups_, at);
  }

  void Erase(std::string_view key) {
    if (map_.Find(key) == nullptr) {
      return;
    }
    const std::size_t at = IndexFor(map_.groups_, key);
    Group& group = Own(map_.groups_[at]);
    const std::size_t index = IndexFor(group.parts, key);
    std::vector<EntryPtr>& entries = Own(group.parts[index]).parts;
    entries.erase(Position(entries, key));
    --map_.size_;
    if (EraseIfEmpty(group.parts, index)) {
      EraseIfEmpty(map_.groups_, at);
    }
  }

 private:
  static uint64_t NextId() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }

  template <typename N>
  N& Own(std::shared_ptr<N>& node) {
    if (node->editor != id_) {
      node = std::make_shared<N>(N{.editor = id_, .parts = node->parts});
    }
    return *node;
  }

  /// The node is this editor's own.
  template <typename N>
  void SplitIfFull(std::vector<std::shared_ptr<N>>& nodes, std::size_t index) {
    auto& parts = nodes[index]->parts;
    if (parts.size() <= kMost) {
      return;
    }
    const auto middle = parts.begin() + static_cast<std::ptrdiff_t>(parts.size() / 2);
    auto upper = std::make_shared<N>(N{.editor = id_, .parts = {}});
    upper->parts.assign(std::make_move_iterator(middle), std::make_move_iterator(parts.end()));
    parts.erase(middle, parts.end());
    nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(index) + 1, std::move(upper));
  }

  /// True when it was.
  template <typename N>
  static bool EraseIfEmpty(std::vector<std::shared_ptr<N>>& nodes, std::size_t index) {
    if (!nodes[index]->parts.empty()) {
      return false;
    }
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(index));
    return true;
  }

  PersistentMap& map_;
  uint64_t id_;
};

}  // namespace qrm::checkpoint
