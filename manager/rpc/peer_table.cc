// Connections by descriptor, told apart from later ones of the same number by their inode.
#include "manager/rpc/peer_table.h"

#include <vector>

#include <sys/stat.h>

namespace qrm::manager {
namespace {

/// 0 when `fd` is closed.
ino_t InodeOf(int fd) {
  struct stat info{};
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

}  // namespace

Status PeerTable::Add(int fd, const PeerCredentials& peer) {
  const MutexLock lock(mutex_);
  Forget(fd);
  if (connections_.size() >= max_connections_ || CountOf(peer) >= max_per_peer_) {
    DropClosed();
  }
  if (connections_.size() >= max_connections_) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot take a connection of process {}: {} are open; close some", peer.pid,
                  connections_.size());
  }
  if (CountOf(peer) >= max_per_peer_) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot take a connection of process {}: it has {} open; reuse them", peer.pid,
                  CountOf(peer));
  }
  connections_.emplace(fd, Connection{.peer = peer, .inode = InodeOf(fd)});
  ++count_by_peer_[peer];
  return OkStatus();
}

std::optional<PeerCredentials> PeerTable::Find(int fd) const {
  const MutexLock lock(mutex_);
  const auto found = connections_.find(fd);
  if (found == connections_.end()) {
    return std::nullopt;
  }
  return found->second.peer;
}

void PeerTable::DropClosed() {
  std::vector<int> closed;
  for (const auto& [fd, connection] : connections_) {
    if (InodeOf(fd) != connection.inode) {
      closed.push_back(fd);
    }
  }
  for (const int fd : closed) {
    Forget(fd);
  }
}

std::size_t PeerTable::CountOf(const PeerCredentials& peer) const {
  const auto found = count_by_peer_.find(peer);
  return found == count_by_peer_.end() ? 0 : found->second;
}

void PeerTable::Forget(int fd) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) {
    return;
  }
  const auto count = count_by_peer_.find(found->second.peer);
  if (--count->second == 0) {
    count_by_peer_.erase(count);
  }
  connections_.erase(found);
}

}  // namespace qrm::manager
