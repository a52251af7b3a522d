// Wraps recvmsg, and looks for headers that stopped halfway while there are some.
#include "manager/rpc/guarded_reads.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <fmt/core.h>

#include "api/base/cond_var.h"
#include "api/base/log.h"
#include "api/base/mutex.h"
#include "api/base/repeated_lines.h"
#include "manager/rpc/header_guard.h"
#include "manager/rpc/unix_listener.h"

namespace qrm::manager {
namespace {

constexpr std::chrono::milliseconds kLookPeriod{250};

/// 0 when `fd` is closed.
ino_t InodeOf(int fd) {
  struct stat info{};
  return ::fstat(fd, &info) == 0 ? info.st_ino : 0;
}

/// Which descriptors may be guarded, so that reads of all others take no lock; high numbers share
/// one place.
constinit std::array<std::atomic<bool>, 4096> may_be_guarded{};

std::atomic<bool>& MayBeGuarded(int fd) {
  const auto number = static_cast<std::size_t>(std::max(fd, 0));
  return may_be_guarded[std::min(number, may_be_guarded.size() - 1)];
}

/// The guards of all connections. It is never destroyed: gRPC's threads may outlive main.
class Guards {
 public:
  static Guards& Get() {
    static auto* const guards = new Guards();
    return *guards;
  }

  void Add(int fd) {
    const MutexLock lock(mutex_);
    connections_.insert_or_assign(fd, Connection{.inode = InodeOf(fd)});
    MayBeGuarded(fd) = true;
  }

  uint64_t ended() const { return ended_; }

  /// False when the connection must end; `size` bytes have been read into `message`.
  bool Take(int fd, const msghdr& message, std::size_t size) {
    std::vector<Line> lines;
    {
      const MutexLock lock(mutex_);
      const auto found = connections_.find(fd);
      if (found == connections_.end()) {
        return true;
      }
      if (found->second.inode != InodeOf(fd)) {  // its connection is gone, and this is no successor
        Forget(found);
        return true;
      }
      const auto now = std::chrono::steady_clock::now();
      if (TakePieces(found->second.guard, message, size, now)) {
        if (found->second.guard.incomplete_since().has_value()) {
          changed_.NotifyAll();
        }
        return true;
      }
      End(fd, now, lines);
      Forget(found);
    }
    Write(lines);
    return false;
  }

 private:
  struct Connection {
    ino_t inode = 0;  // sockets are numbered like files: tells a reused descriptor
    HeaderGuard guard;
  };
  using Connections = std::map<int, Connection>;
  struct Line {
    PeerCredentials peer;
    uint64_t equal_ones_before = 0;
  };

  Guards() {
    std::thread([this] { EndLateOnes(); }).detach();
  }

  static bool TakePieces(HeaderGuard& guard, const msghdr& message, std::size_t size,
                         HeaderGuard::Time now) {
    for (std::size_t i = 0; i < message.msg_iovlen && size > 0; ++i) {
      const std::size_t here = std::min(message.msg_iov[i].iov_len, size);
      if (!guard.Take({static_cast<const char*>(message.msg_iov[i].iov_base), here}, now)) {
        return false;
      }
      size -= here;
    }
    return true;
  }

  /// `lines` gets who is at the other end, at most once a minute for each.
  void End(int fd, HeaderGuard::Time now, std::vector<Line>& lines) QRM_REQUIRES(mutex_) {
    ++ended_;
    const PeerCredentials peer = PeerOf(fd).value_or(PeerCredentials{});
    if (const auto before = lines_.Take(fmt::format("{} {}", peer.pid, peer.uid), now);
        before.has_value()) {
      lines.push_back({peer, *before});
    }
    ::shutdown(fd, SHUT_RDWR);
  }

  static void Write(const std::vector<Line>& lines) {
    for (const Line& line : lines) {
      log::Warning("connection ended: its headers do not end, or its frames come too fast",
                   {{"pid", line.peer.pid},
                    {"uid", line.peer.uid},
                    {"equal_ones_before", line.equal_ones_before}});
    }
  }

  void Forget(Connections::iterator connection) QRM_REQUIRES(mutex_) {
    if (static_cast<std::size_t>(connection->first) + 1 < may_be_guarded.size()) {
      MayBeGuarded(connection->first) = false;
    }
    connections_.erase(connection);
  }

  bool AnyIncomplete() const QRM_REQUIRES(mutex_) {
    return std::any_of(connections_.begin(), connections_.end(), [](const auto& entry) {
      return entry.second.guard.incomplete_since().has_value();
    });
  }

  void ShutDownLateOnes(std::vector<Line>& lines) QRM_REQUIRES(mutex_) {
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(connections_, [&](const auto& entry) QRM_REQUIRES(mutex_) {
      const auto since = entry.second.guard.incomplete_since();
      const bool late = since.has_value() && now - *since >= HeaderGuard::kMaxTime;
      if (late && InodeOf(entry.first) == entry.second.inode) {
        End(entry.first, now, lines);
      }
      return late;
    });
  }

  void EndLateOnes() {
    while (true) {
      std::vector<Line> lines;
      {
        const MutexLock lock(mutex_);
        changed_.Wait(mutex_, [this]() QRM_REQUIRES(mutex_) { return AnyIncomplete(); });
        ShutDownLateOnes(lines);
      }
      Write(lines);
      std::this_thread::sleep_for(kLookPeriod);
    }
  }

  Mutex mutex_;
  CondVar changed_;
  Connections connections_ QRM_GUARDED_BY(mutex_);
  RepeatedLines lines_ QRM_GUARDED_BY(mutex_);
  std::atomic<uint64_t> ended_ = 0;
};

}  // namespace

void GuardReads(int fd) {
  Guards::Get().Add(fd);
}

uint64_t ConnectionsEnded() {
  return Guards::Get().ended();
}

}  // namespace qrm::manager

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's are
// reserved.
extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  const ssize_t size = ::syscall(SYS_recvmsg, fd, message, flags);
  const bool guarded = size > 0 && (flags & MSG_PEEK) == 0 && qrm::manager::MayBeGuarded(fd);
  const bool stays =
      !guarded || qrm::manager::Guards::Get().Take(fd, *message, static_cast<std::size_t>(size));
  return stays ? size : 0;
}
