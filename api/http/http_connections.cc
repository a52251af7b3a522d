// Looks at each connection: they are few.
#include "api/http/http_connections.h"

#include <algorithm>
#include <utility>

namespace qrm {

HttpConnections::Id HttpConnections::Add(const std::string& peer, std::function<void()> drop) {
  if (CountOf(peer) >= limits_.per_peer) {
    DropOneOf(peer);
  } else if (connections_.size() >= limits_.total) {
    DropOneOf(LargestPeer());
  }
  const Id id = next_id_++;
  connections_.emplace(id, Connection{.peer = peer, .drop = std::move(drop)});
  return id;
}

void HttpConnections::BeginAnswer(Id id) {
  if (const auto found = connections_.find(id); found != connections_.end()) {
    found->second.answering = true;
  }
}

void HttpConnections::EndAnswer(Id id) {
  if (const auto found = connections_.find(id); found != connections_.end()) {
    found->second.answering = false;
  }
}

std::size_t HttpConnections::CountOf(const std::string& peer) const {
  return static_cast<std::size_t>(
      std::count_if(connections_.begin(), connections_.end(),
                    [&](const auto& entry) { return entry.second.peer == peer; }));
}

std::string HttpConnections::LargestPeer() const {
  std::map<std::string, std::size_t> counts;
  for (const auto& [id, connection] : connections_) {
    ++counts[connection.peer];
  }
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

void HttpConnections::DropOneOf(const std::string& peer) {
  auto victim = connections_.end();
  for (auto it = connections_.begin(); it != connections_.end(); ++it) {
    const bool better =
        victim == connections_.end() || (victim->second.answering && !it->second.answering);
    if (it->second.peer == peer && better) {
      victim = it;
    }
  }
  if (victim == connections_.end()) {
    return;
  }
  const std::function<void()> drop = std::move(victim->second.drop);
  connections_.erase(victim);
  drop();
}

}  // namespace qrm
