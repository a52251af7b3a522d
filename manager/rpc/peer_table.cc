// Keeps connections by descriptor, and uses their inodes to detect reused descriptors.
#include "manager/rpc/peer_table.h"

#include <vector>

#include <sys/socket.h>
#include <sys/stat.h>

#include "api/base/errorf.h"

namespace qrm::manager {
namespace {

constexpr int kUserFactor = 4;  // how much faster than a process its user may connect

/// 0 when `fd` is closed.
ino_t InodeOf(int fd) {
  struct stat info{};
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

template <typename Key>
std::size_t CountOf(const std::map<Key, std::size_t>& counts, const Key& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

template <typename Key>
void CountDown(std::map<Key, std::size_t>& counts, const Key& key) {
  const auto found = counts.find(key);
  if (--found->second == 0) {
    counts.erase(found);
  }
}

}  // namespace

PeerTable::PeerTable(const ConnectionLimits& limits) : limits_(limits) {
  if (limits.per_second > 0) {
    process_rate_.emplace(limits.per_second, static_cast<int>(limits.per_process));
    user_rate_.emplace(kUserFactor * limits.per_second, static_cast<int>(limits.per_user));
  }
}

Status PeerTable::Add(int fd, const PeerCredentials& peer, Time now) {
  QRM_RETURN_IF_ERROR(CheckRate(peer, now));
  const MutexLock lock(mutex_);
  Forget(fd);
  if (!CheckRoom(peer).ok() && now - swept_at_ >= kSweepInterval) {
    DropClosed(now);
  }
  QRM_RETURN_IF_ERROR(CheckRoom(peer));
  connections_.emplace(fd, Connection{.peer = peer, .inode = InodeOf(fd)});
  ++count_by_process_[peer];
  ++count_by_user_[peer.uid];
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

void PeerTable::Disconnect(int fd) const {
  const MutexLock lock(mutex_);
  const auto found = connections_.find(fd);
  if (found != connections_.end() && InodeOf(fd) == found->second.inode) {
    shutdown(fd, SHUT_RDWR);
  }
}

Status PeerTable::CheckRate(const PeerCredentials& peer, Time now) {
  const bool in_time = !process_rate_.has_value() || !user_rate_.has_value() ||
                       (process_rate_->Allow(peer, now) && user_rate_->Allow(peer.uid, now));
  return in_time ? OkStatus()
                 : Errorf(StatusCode::kResourceExhausted,
                          "cannot accept a connection of process {} of user {}: it opens more than "
                          "{} connections a second; reuse connections",
                          peer.pid, peer.uid, limits_.per_second);
}

Status PeerTable::CheckRoom(const PeerCredentials& peer) const {
  if (connections_.size() >= limits_.total) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot accept a connection of process {}: {} connections are open; close some",
                  peer.pid, connections_.size());
  }
  if (CountOf(count_by_process_, peer) >= limits_.per_process) {
    return Errorf(
        StatusCode::kResourceExhausted,
        "cannot accept a connection of process {}: it has {} open connections; reuse them",
        peer.pid, limits_.per_process);
  }
  if (CountOf(count_by_user_, peer.uid) >= limits_.per_user) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot accept a connection of user {}: it has {} open connections; close some",
                  peer.uid, limits_.per_user);
  }
  return OkStatus();
}

void PeerTable::DropClosed(Time now) {
  swept_at_ = now;
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

void PeerTable::Forget(int fd) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) {
    return;
  }
  CountDown(count_by_process_, found->second.peer);
  CountDown(count_by_user_, found->second.peer.uid);
  connections_.erase(found);
}

}  // namespace qrm::manager
