// Decides which HTTP connection goes when there are too many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace qrm {

/// The open connections of one port. Whoever connects is let in: where there is no room, the one
/// that has been silent for the longest goes, of the same peer if that has its share and else of
/// the peer that has most. So nobody keeps others out by holding connections.
///
/// Threads: one at a time.
class HttpConnections {
 public:
  using Id = uint64_t;
  struct Limits {
    std::size_t total = 64;
    std::size_t per_peer = 16;
  };

  HttpConnections() : HttpConnections(Limits()) {}
  explicit HttpConnections(const Limits& limits) : limits_(limits) {}

  /// Adds a connection of `peer`, which `drop` closes, and drops another one if there is no room
  /// for both.
  Id Add(const std::string& peer, std::function<void()> drop);
  /// Its request has come: it is silent no more, and goes only when all others are being answered,
  /// too.
  void BeginAnswer(Id id);
  /// It has its answer, and waits for its next request: it is as silent as one that came now.
  void EndAnswer(Id id);
  /// It has ended. A dropped one is gone already.
  void Remove(Id id) { connections_.erase(id); }

  std::size_t size() const { return connections_.size(); }

 private:
  struct Connection {
    std::string peer;
    std::function<void()> drop;
    bool answering = false;
  };
  std::size_t CountOf(const std::string& peer) const;
  std::string LargestPeer() const;
  void DropOneOf(const std::string& peer);

  const Limits limits_;
  Id next_id_ = 0;
  std::map<Id, Connection> connections_;  // in the order in which they came
};

}  // namespace qrm
