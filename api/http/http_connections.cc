// Looks at each connection: they are few.
#include "api/http/http_connections.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/base/rejected.h"

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

bool HttpConnections::HoldBody(Id id, std::size_t bytes) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) {
    return false;
  }
  Connection& connection = found->second;
  if (connection.body_bytes == 0) {
    connection.body_number = bodies_++;
  }
  body_bytes_ += bytes - connection.body_bytes;
  connection.body_bytes = bytes;
  while (body_bytes_ > limits_.body_bytes) {
    const auto oldest = OldestPart();
    if (oldest == connections_.end()) {
      break;
    }
    Reject(Rejected::kHttpRequest,
           fmt::format("cannot take a request of {}: its body does not end, and there is no room "
                       "for more; see what sends it",
                       oldest->second.peer));
    Drop(oldest);
  }
  return connections_.contains(id);
}

void HttpConnections::BeginAnswer(Id id) {
  if (const auto found = connections_.find(id); found != connections_.end()) {
    found->second.answering = true;
  }
}

void HttpConnections::EndAnswer(Id id) {
  if (const auto found = connections_.find(id); found != connections_.end()) {
    found->second.answering = false;
    body_bytes_ -= std::exchange(found->second.body_bytes, 0);
  }
}

void HttpConnections::Remove(Id id) {
  if (const auto found = connections_.find(id); found != connections_.end()) {
    body_bytes_ -= found->second.body_bytes;
    connections_.erase(found);
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
  if (victim != connections_.end()) {
    Reject(Rejected::kHttpConnections,
           fmt::format("cannot keep a connection of {}: others need the room; see why it has many",
                       peer));
    Drop(victim);
  }
}

HttpConnections::Connections::iterator HttpConnections::OldestPart() {
  auto oldest = connections_.end();
  for (auto it = connections_.begin(); it != connections_.end(); ++it) {
    const Connection& connection = it->second;
    if (!connection.answering && connection.body_bytes > 0 &&
        (oldest == connections_.end() || connection.body_number < oldest->second.body_number)) {
      oldest = it;
    }
  }
  return oldest;
}

void HttpConnections::Drop(Connections::iterator victim) {
  const std::function<void()> drop = std::move(victim->second.drop);
  body_bytes_ -= victim->second.body_bytes;
  connections_.erase(victim);
  drop();
}

}  // namespace qrm
