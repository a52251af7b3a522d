// Decides which HTTP connection goes when there are too many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace qrm {

/// The open connections of one port. Every new connection is accepted. If there is no room, the
/// connection that has been silent for longest is closed: of the same peer if that peer has its
/// share, else of the peer with most connections. So no peer keeps others out.
///
/// Threads: one at a time.
class HttpConnections {
 public:
  using Id = uint64_t;
  struct Limits {
    std::size_t total = 64;
    std::size_t per_peer = 16;
    std::size_t body_bytes = std::size_t{1} << 20;  ///< of all requests that have no answer yet
  };

  HttpConnections() : HttpConnections(Limits()) {}
  explicit HttpConnections(const Limits& limits) : limits_(limits) {}

  /// Adds a connection of `peer`, which `drop` closes, and drops another one if there is no room
  /// for both.
  Id Add(const std::string& peer, std::function<void()> drop);
  /// Its request's body has `bytes` so far. Where all bodies have more than their limit, those that
  /// are not whole go, the one that began first before the others: honest ones take milliseconds.
  /// False when it has gone itself.
  bool HoldBody(Id id, std::size_t bytes);
  /// Its request has come: it is silent no more, and goes only when all others are being answered,
  /// too.
  void BeginAnswer(Id id);
  /// It has its answer, and waits for its next request: it is as silent as one that came now.
  void EndAnswer(Id id);
  /// It has ended. A dropped one is gone already.
  void Remove(Id id);

  std::size_t size() const { return connections_.size(); }

 private:
  struct Connection {
    std::string peer;
    std::function<void()> drop;
    bool answering = false;
    std::size_t body_bytes = 0;
    uint64_t body_number = 0;  // in the order in which bodies began
  };
  using Connections = std::map<Id, Connection>;
  std::size_t CountOf(const std::string& peer) const;
  std::string LargestPeer() const;
  void DropOneOf(const std::string& peer);
  Connections::iterator OldestPart();
  void Drop(Connections::iterator victim);

  const Limits limits_;
  Id next_id_ = 0;
  Connections connections_;  // in the order in which they came
  std::size_t body_bytes_ = 0;
  uint64_t bodies_ = 0;
};

}  // namespace qrm
