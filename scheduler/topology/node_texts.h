// What nodes say of themselves in an annotation.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/base/rejected.h"
#include "api/base/status.h"
#include "scheduler/cache/feed.h"

namespace qrm::scheduler {

/// The meanings of one annotation of Nodes. Nodes that say the same share what it means.
///
/// Threads: the cache's writer.
template <typename Meaning>
class NodeTexts {
 public:
  using MeaningPtr = std::shared_ptr<Meaning>;
  /// The meaning of `text`. Errors: name the annotation.
  using Read = std::function<StatusOr<Meaning>(const std::string& text)>;
  /// `node` says so from now on; null: nothing that could be read.
  using Take = std::function<void(const std::string& node, const MeaningPtr& meaning)>;

  /// Follows the annotation `key`: once, for as long as `feed` lives. What `read` cannot read is
  /// reported and counted as rejected.
  void Follow(Feed& feed, const std::string& key, Read read, Take take) {
    feed.SubscribeNodes([this, key, read = std::move(read), take = std::move(take)](
                            const std::string& name, const Node* node) {
      const std::string text = TextOf(node, key);
      const auto known = nodes_.find(name);
      if (text == (known == nodes_.end() ? std::string() : known->second->text)) {
        return;
      }
      if (text.empty()) {
        nodes_.erase(known);
        take(name, nullptr);
        return;
      }
      const SaidPtr said = SaidOf(name, text, read);
      nodes_[name] = said;
      take(name, said->meaning);
    });
  }

 private:
  struct Said {
    std::string text;
    MeaningPtr meaning;
  };
  using SaidPtr = std::shared_ptr<const Said>;

  static std::string TextOf(const Node* node, const std::string& key) {
    const bool is_there = node != nullptr && node->annotations.contains(key);
    return is_there ? node->annotations.at(key) : std::string();
  }

  SaidPtr SaidOf(const std::string& node, const std::string& text, const Read& read) {
    std::erase_if(said_, [](const auto& said) { return said.expired(); });
    for (const auto& each : said_) {
      if (SaidPtr said = each.lock(); said->text == text) {
        return said;
      }
    }
    auto said = std::make_shared<const Said>(Said{text, MeaningOf(node, text, read)});
    said_.push_back(said);
    return said;
  }

  static MeaningPtr MeaningOf(const std::string& node, const std::string& text, const Read& read) {
    StatusOr<Meaning> meaning = read(text);
    if (!meaning.ok()) {
      Reject(Rejected::kNodeAnnotation, "node " + node + ": " + MessageOf(meaning.status()));
      return nullptr;
    }
    return std::make_shared<Meaning>(*std::move(meaning));
  }

  std::map<std::string, SaidPtr> nodes_;         // by node
  std::vector<std::weak_ptr<const Said>> said_;  // each text once
};

}  // namespace qrm::scheduler
