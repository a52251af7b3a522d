// A sorted map whose copies share what they do not change, for states that readers keep while the
// next one is made.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/shared_text.h"

namespace qrm::checkpoint {

/// Text keys to values, in chunks that copies share. Threads: const use from any; an Editor works
/// on a copy that nobody else sees yet. Cost, for n entries: a copy is n / 64 pointers at most; an
/// edit copies the chunk it falls into, once per Editor.
template <typename Value>
class PersistentMap {
 public:
  using Entry = std::pair<SharedText, Value>;
  class Editor;

  PersistentMap() = default;
  /// Of entries in the strict order of their keys. Cost: O(n).
  explicit PersistentMap(std::vector<Entry> sorted) : size_(sorted.size()) {
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      if (i % kNewChunk == 0) {
        chunks_.push_back(std::make_shared<Chunk>());
        chunks_.back()->entries.reserve(std::min(kNewChunk, sorted.size() - i));
      }
      chunks_.back()->entries.push_back(std::make_shared<const Entry>(std::move(sorted[i])));
    }
  }

  /// Null when missing; valid as long as a map that holds it.
  const Value* Find(std::string_view key) const {
    if (chunks_.empty()) {
      return nullptr;
    }
    const std::vector<EntryPtr>& entries = chunks_[ChunkFor(key)]->entries;
    const auto found = Position(entries, key);
    return found != entries.end() && (*found)->first == key ? &(*found)->second : nullptr;
  }

  std::size_t size() const { return size_; }

  /// Calls `visit(key, value)` in the order of the keys.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const auto& chunk : chunks_) {
      for (const EntryPtr& entry : chunk->entries) {
        visit(entry->first, entry->second);
      }
    }
  }

 private:
  static constexpr std::size_t kMaxChunk = 128;
  static constexpr std::size_t kNewChunk = kMaxChunk / 2;

  /// Copying a chunk copies pointers, not keys.
  using EntryPtr = std::shared_ptr<const Entry>;

  struct Chunk {
    uint64_t editor = 0;  ///< who may still change it
    std::vector<EntryPtr> entries;
  };

  template <typename Entries>
  static auto Position(Entries& entries, std::string_view key) {
    return std::lower_bound(
        entries.begin(), entries.end(), key,
        [](const EntryPtr& entry, std::string_view wanted) { return entry->first < wanted; });
  }

  /// The chunk that holds `key` or would; there must be one.
  std::size_t ChunkFor(std::string_view key) const {
    const auto after = std::upper_bound(chunks_.begin(), chunks_.end(), key,
                                        [](std::string_view wanted, const auto& chunk) {
                                          return wanted < chunk->entries.front()->first;
                                        });
    const auto index = static_cast<std::size_t>(after - chunks_.begin());
    return index == 0 ? 0 : index - 1;
  }

  std::vector<std::shared_ptr<Chunk>> chunks_;  // none is empty
  std::size_t size_ = 0;
};

/// Changes `map`, which no other thread may use meanwhile; maps that share chunks with it keep
/// theirs.
template <typename Value>
class PersistentMap<Value>::Editor {
 public:
  explicit Editor(PersistentMap& map) : map_(map), id_(NextId()) {}

  void Put(const SharedText& key, Value value) {
    if (map_.chunks_.empty()) {
      auto first = std::make_shared<Chunk>();
      first->editor = id_;
      first->entries.push_back(std::make_shared<const Entry>(key, std::move(value)));
      map_.chunks_.push_back(std::move(first));
      map_.size_ = 1;
      return;
    }
    const std::size_t index = map_.ChunkFor(key);
    std::vector<EntryPtr>& entries = Own(index).entries;
    const auto position = Position(entries, key);
    auto entry = std::make_shared<const Entry>(key, std::move(value));
    if (position != entries.end() && (*position)->first == key) {
      *position = std::move(entry);
      return;
    }
    entries.insert(position, std::move(entry));
    ++map_.size_;
    if (entries.size() > kMaxChunk) {
      Split(index);
    }
  }

  void Erase(std::string_view key) {
    if (map_.Find(key) == nullptr) {
      return;
    }
    const std::size_t index = map_.ChunkFor(key);
    std::vector<EntryPtr>& entries = Own(index).entries;
    entries.erase(Position(entries, key));
    --map_.size_;
    if (entries.empty()) {
      map_.chunks_.erase(map_.chunks_.begin() + static_cast<std::ptrdiff_t>(index));
    }
  }

 private:
  static uint64_t NextId() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }

  Chunk& Own(std::size_t index) {
    std::shared_ptr<Chunk>& chunk = map_.chunks_[index];
    if (chunk->editor != id_) {
      chunk = std::make_shared<Chunk>(Chunk{.editor = id_, .entries = chunk->entries});
    }
    return *chunk;
  }

  void Split(std::size_t index) {
    std::vector<EntryPtr>& entries = map_.chunks_[index]->entries;
    const auto middle = entries.begin() + static_cast<std::ptrdiff_t>(entries.size() / 2);
    auto upper = std::make_shared<Chunk>(Chunk{.editor = id_, .entries = {}});
    upper->entries.assign(std::make_move_iterator(middle), std::make_move_iterator(entries.end()));
    entries.erase(middle, entries.end());
    map_.chunks_.insert(map_.chunks_.begin() + static_cast<std::ptrdiff_t>(index) + 1,
                        std::move(upper));
  }

  PersistentMap& map_;
  uint64_t id_;
};

}  // namespace qrm::checkpoint
