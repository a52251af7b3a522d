// A process that answers on irqbalance's socket as 1.9.2 does, and worse.
#pragma once

#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include "api/base/check.h"
#include "api/base/mutex.h"
#include "api/base/unix_socket.h"
#include "api/id_set.h"
#include "plugins/kernel/claim.h"
#include "plugins/kernel/interrupts.h"

namespace qrm::test {

/// Has the number of the test's own process, below the directory `root`. Threads: any.
class IrqbalanceDouble {
 public:
  enum class Place { kFile, kAbstract };

  explicit IrqbalanceDouble(const std::string& root, Place place = Place::kFile) {
    const std::string process = Process();
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    socklen_t length = sizeof(address);
    if (place == Place::kFile) {
      const std::string path = root + "/" + kernel::BanFile(process);
      std::filesystem::create_directories(std::filesystem::path(path).parent_path());
      address = SocketAddress(path).value_or(address);
    } else {
      const std::string name = fmt::format("irqbalance{}.sock", process);
      name.copy(&address.sun_path[1], sizeof(address.sun_path) - 1);
      length = static_cast<socklen_t>(sizeof(sa_family_t) + 1 + name.size());
    }
    const int on = 1;
    QRM_CHECK(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), length) == 0);
    QRM_CHECK(::setsockopt(socket_, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0);
    QRM_CHECK(::listen(socket_, 1) == 0);
    thread_ = std::thread([this] { Serve(); });
  }
  ~IrqbalanceDouble() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    Resume();
    ::close(socket_);
  }
  IrqbalanceDouble(const IrqbalanceDouble&) = delete;
  IrqbalanceDouble& operator=(const IrqbalanceDouble&) = delete;

  static std::string Process() { return std::to_string(::getpid()); }

  /// Its ten seconds are over: it applies its latest settings.
  void Balance() {
    const MutexLock lock(mutex_);
    shown_ = told_;
  }
  /// Its latest settings: "1,4", or "" for its own configuration.
  std::string told() const {
    const MutexLock lock(mutex_);
    return told_;
  }

  /// It is busy: it accepts, and answers nothing.
  void Hang() {
    const MutexLock lock(mutex_);
    is_busy_ = true;
  }
  /// Its work is done, and it answers.
  void Resume() {
    const MutexLock lock(mutex_);
    is_busy_ = false;
    for (const auto& [peer, request] : waiting_) {
      Take(peer, request);
      ::close(peer);
    }
    waiting_.clear();
  }
  /// It answered a client that was gone: SIGPIPE.
  bool is_dead() const {
    const MutexLock lock(mutex_);
    return is_dead_;
  }

  std::atomic<bool> is_mad = false;  ///< answers something else

 private:
  void Serve() {
    for (int peer = Accept(); peer >= 0; peer = Accept()) {
      Answer(peer);
    }
  }
  int Accept() const { return ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC); }

  void Answer(int peer) {
    char request[500] = {};
    char control[CMSG_SPACE(sizeof(ucred))] = {};
    iovec part{.iov_base = request, .iov_len = sizeof(request) - 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const bool came = ::recvmsg(peer, &message, 0) > 0;
    const cmsghdr* const sender = CMSG_FIRSTHDR(&message);
    // Else "Permission denied for user to connect to socket."
    const bool is_known = came && sender != nullptr && sender->cmsg_type == SCM_CREDENTIALS;
    const MutexLock lock(mutex_);
    if (is_known && is_busy_) {
      waiting_.emplace_back(peer, request);
      return;
    }
    if (is_known) {
      Take(peer, request);
    }
    ::close(peer);
  }

  void Take(int peer, const std::string& request) QRM_REQUIRES(mutex_) {
    constexpr char kBan[] = "settings cpus ";
    if (request.starts_with(kBan)) {
      const std::string list = request.substr(std::strlen(kBan));
      const std::string first = list.substr(0, list.find(' '));
      told_ = first == "NULL" ? "" : first;
    }
    if (request == "setup") {
      const std::string mask = kernel::CpuMaskText(*CpuSet::Parse(shown_), "00000000,00000000");
      const std::string answer =
          is_mad ? "\x1b[31mBANNED" : fmt::format("SLEEP 10 IRQ 5 LOAD 0 BANNED {}", mask);
      is_dead_ = is_dead_ || ::send(peer, answer.data(), answer.size(), MSG_NOSIGNAL) < 0;
    }
  }

  int socket_;
  mutable Mutex mutex_;
  std::vector<std::pair<int, std::string>> waiting_ QRM_GUARDED_BY(mutex_);
  bool is_busy_ QRM_GUARDED_BY(mutex_) = false;
  bool is_dead_ QRM_GUARDED_BY(mutex_) = false;
  std::string told_ QRM_GUARDED_BY(mutex_);
  std::string shown_ QRM_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace qrm::test
