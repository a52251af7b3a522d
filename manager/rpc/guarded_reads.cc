// Wraps recvmsg, and checks periodically for incomplete headers while there are any.
#include "manager/rpc/guarded_reads.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
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
#include "api/base/mutex.h"
#include "api/base/rejected.h"
#include "manager/rpc/header_guard.h"
#include "manager/rpc/unix_server.h"

namespace qrm::manager {
namespace {

constexpr std::chrono::milliseconds kLookPeriod{250};
/// The limit for incomplete requests on all connections. qrmctl sends 256 KiB at most.
constexpr std::size_t kMaxUnfinishedBytes = std::size_t{16} << 20;

/// The reason in the log.
const char* WhyOf(Rejected kind) {
  switch (kind) {
    case Rejected::kGrpcUnfinished:
      return "it starts large requests and does not finish them";
    case Rejected::kGrpcUnread:
      return "it does not read its answers, and there is no room for more";
    case Rejected::kGrpcCompressed:
      return "it compresses its requests";
    default:
      return "its headers do not end, or it sends too many frames";
  }
}

/// 0 when `fd` is closed.
ino_t InodeOf(int fd) {
  struct stat info{};
  return ::fstat(fd, &info) == 0 ? info.st_ino : 0;
}

/// Descriptors that may be guarded, so that reads of all others take no lock. All high numbers
/// share the last element.
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
    if (const auto former = connections_.find(fd); former != connections_.end()) {
      Forget(former);
    }
    connections_.emplace(fd, Connection{.inode = InodeOf(fd)});
    MayBeGuarded(fd) = true;
  }

  /// False when the connection must end; `size` bytes have been read into `message`.
  bool Take(int fd, const msghdr& message, std::size_t size) {
    std::vector<Rejection> rejected;
    bool stays = true;
    {
      const MutexLock lock(mutex_);
      const auto found = Find(fd);
      stays = found == connections_.end() || TakeFrom(found, message, size, rejected);
      EndUnfinished(rejected);
    }
    Write(rejected);
    return stays;
  }

  void EndSlowReader(int fd) {
    std::vector<Rejection> rejected;
    {
      const MutexLock lock(mutex_);
      if (const auto found = Find(fd); found != connections_.end()) {
        End(found, Rejected::kGrpcUnread, rejected);
      }
    }
    Write(rejected);
  }

 private:
  struct Connection {
    ino_t inode = 0;  // each socket has its own, so that a reused descriptor is noticed
    HeaderGuard guard;
  };
  using Connections = std::map<int, Connection>;
  /// A rejection that is counted and logged after the mutex was released.
  struct Rejection {
    Rejected kind;
    PeerCredentials peer;
  };

  Guards() {
    std::thread([this] { EndLateOnes(); }).detach();
  }

  static bool TakePieces(HeaderGuard& guard, const msghdr& message, std::size_t size) {
    const auto now = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < message.msg_iovlen && size > 0; ++i) {
      const std::size_t here = std::min(message.msg_iov[i].iov_len, size);
      if (!guard.Take({static_cast<const char*>(message.msg_iov[i].iov_base), here}, now)) {
        return false;
      }
      size -= here;
    }
    return true;
  }

  static PeerCredentials PeerAt(Connections::iterator connection) {
    return PeerOf(connection->first).value_or(PeerCredentials{});
  }

  void End(Connections::iterator connection, Rejected kind, std::vector<Rejection>& rejected)
      QRM_REQUIRES(mutex_) {
    rejected.push_back({kind, PeerAt(connection)});
    ::shutdown(connection->first, SHUT_RDWR);
    Forget(connection);
  }

  static void Write(const std::vector<Rejection>& rejected) {
    for (const Rejection& rejection : rejected) {
      Reject(rejection.kind,
             fmt::format("cannot serve process {} of user {}: {}; check that process",
                         rejection.peer.pid, rejection.peer.uid, WhyOf(rejection.kind)));
    }
  }

  void Forget(Connections::iterator connection) QRM_REQUIRES(mutex_) {
    if (static_cast<std::size_t>(connection->first) + 1 < may_be_guarded.size()) {
      MayBeGuarded(connection->first) = false;
    }
    unfinished_bytes_ -= connection->second.guard.unfinished_bytes();
    connections_.erase(connection);
  }

  /// The guarded connection of `fd`; the end when there is none.
  Connections::iterator Find(int fd) QRM_REQUIRES(mutex_) {
    const auto found = connections_.find(fd);
    if (found == connections_.end() || found->second.inode == InodeOf(fd)) {
      return found;
    }
    Forget(found);  // the connection is gone, and `fd` belongs to another file
    return connections_.end();
  }

  bool TakeFrom(Connections::iterator connection, const msghdr& message, std::size_t size,
                std::vector<Rejection>& rejected) QRM_REQUIRES(mutex_) {
    HeaderGuard& guard = connection->second.guard;
    unfinished_bytes_ -= guard.unfinished_bytes();
    const bool stays = TakePieces(guard, message, size);
    unfinished_bytes_ += guard.unfinished_bytes();
    for (int requests = guard.TakeCompressed(); requests > 0; --requests) {
      rejected.push_back({Rejected::kGrpcCompressed, PeerAt(connection)});
    }
    if (!stays) {
      End(connection, Rejected::kGrpcFrames, rejected);
    } else if (guard.incomplete_since().has_value()) {
      changed_.NotifyAll();
    }
    return stays;
  }

  /// Closes the connections with the largest incomplete requests first.
  void EndUnfinished(std::vector<Rejection>& rejected) QRM_REQUIRES(mutex_) {
    while (unfinished_bytes_ > kMaxUnfinishedBytes) {
      const auto most = std::max_element(
          connections_.begin(), connections_.end(), [](const auto& a, const auto& b) {
            return a.second.guard.unfinished_bytes() < b.second.guard.unfinished_bytes();
          });
      if (const auto found = Find(most->first); found != connections_.end()) {
        End(found, Rejected::kGrpcUnfinished, rejected);
      }
    }
  }

  bool AnyIncomplete() const QRM_REQUIRES(mutex_) {
    return std::any_of(connections_.begin(), connections_.end(), [](const auto& entry) {
      return entry.second.guard.incomplete_since().has_value();
    });
  }

  void ShutDownLateOnes(std::vector<Rejection>& rejected) QRM_REQUIRES(mutex_) {
    const auto now = std::chrono::steady_clock::now();
    for (auto next = connections_.begin(); next != connections_.end();) {
      const auto since = next->second.guard.incomplete_since();
      const int fd = next++->first;
      if (!since.has_value() || now - *since < HeaderGuard::kMaxTime) {
        continue;
      }
      if (const auto late = Find(fd); late != connections_.end()) {
        End(late, Rejected::kGrpcFrames, rejected);
      }
    }
  }

  void EndLateOnes() {
    while (true) {
      std::vector<Rejection> rejected;
      {
        const MutexLock lock(mutex_);
        changed_.Wait(mutex_, [this]() QRM_REQUIRES(mutex_) { return AnyIncomplete(); });
        ShutDownLateOnes(rejected);
      }
      Write(rejected);
      std::this_thread::sleep_for(kLookPeriod);
    }
  }

  Mutex mutex_;
  CondVar changed_;
  Connections connections_ QRM_GUARDED_BY(mutex_);
  std::size_t unfinished_bytes_ QRM_GUARDED_BY(mutex_) = 0;  // of all connections
};

}  // namespace

void GuardReads(int fd) {
  Guards::Get().Add(fd);
}

void EndConnection(int fd) {
  Guards::Get().EndSlowReader(fd);
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
