// Serves the two file systems of a machine with resctrl from a separate process.
#include "test/support/resctrl/resctrl_double.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "api/base/check.h"
#include "api/base/errorf.h"
#include "test/support/resctrl/fuse_mount.h"
#include "test/support/resctrl/thread_files.h"

namespace qrm::test {
namespace {

constexpr char kDone[] = "done";
constexpr std::size_t kLongest = 1024;  // of a message

/// False when the other side is gone.
bool Send(int channel, const std::string& message) {
  return ::send(channel, message.data(), message.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(message.size());
}

/// Empty when the other side is gone.
std::string Receive(int channel) {
  std::array<char, kLongest> bytes{};
  const ssize_t size = ::recv(channel, bytes.data(), bytes.size(), 0);
  return size > 0 ? std::string(bytes.data(), static_cast<std::size_t>(size)) : "";
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t from = 0;
  for (std::size_t end = 0; end != std::string::npos; from = end + 1) {
    end = text.find('\n', from);
    lines.push_back(text.substr(from, end == std::string::npos ? end : end - from));
  }
  return lines;
}

/// The state of the serving process.
class Server {
 public:
  Server(const ResctrlMachine& machine, const ResctrlDouble::Before& before, std::string directory)
      : directory_(std::move(directory)),
        model_(machine),
        thread_files_(model_.threads(),
                      fmt::format("resctrl {}/resctrl resctrl rw,relatime{} 0 0\n", directory_,
                                  machine.bandwidth_in_mbps ? ",mba_MBps" : "")) {
    if (before) {
      model_.SetBefore([this, before](const std::string& path) { before(model_, path); });
    }
  }

  Status Start() {
    // Names of threads last: a thread that is gone is rejected when it is read.
    QRM_ASSIGN_OR_RETURN(
        proc_, FuseMount::Create(thread_files_, directory_ + "/proc", Names::kRemembered));
    return Mount();
  }

  /// Serves until the other side is gone.
  void Obey(int channel) {
    bool listens = true;
    while (listens) {
      const std::string message = Receive(channel);
      if (message.empty()) {
        return;
      }
      Carry(Lines(message));
      listens = Send(channel, kDone);
    }
  }

 private:
  Status Mount() {
    QRM_ASSIGN_OR_RETURN(mount_,
                         FuseMount::Create(model_, directory_ + "/resctrl", Names::kAskedEachTime));
    return OkStatus();
  }
  void Carry(const std::vector<std::string>& words) {
    const std::string& command = words.at(0);
    if (command == "watch") {
      model_.threads().Watch(words.at(1));
    } else if (command == "counter") {
      model_.SetCounter(words.at(1), words.at(2), words.at(3));
    } else if (command == "unmount") {
      mount_.reset();
      model_.Reset();
    } else {
      QRM_CHECK(Mount().ok());
    }
  }

  const std::string directory_;
  ResctrlModel model_;
  ThreadFiles thread_files_;
  std::unique_ptr<FuseMount> proc_;
  std::unique_ptr<FuseMount> mount_;
};

/// The whole life of the serving process.
[[noreturn]] void Serve(const ResctrlMachine& machine, const ResctrlDouble::Before& before,
                        const std::string& directory, int channel) {
  // It ends with the test, however that ends, and then unmounts.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  {
    Server server(machine, before, directory);
    const Status started = server.Start();
    if (Send(channel, started.ok() ? kDone : MessageOf(started))) {
      server.Obey(channel);
    }
  }
  ::_exit(0);
}

}  // namespace

StatusOr<std::unique_ptr<ResctrlDouble>> ResctrlDouble::Create(const ResctrlMachine& machine,
                                                               const Before& before) {
  if (::access("/dev/fuse", R_OK | W_OK) != 0) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot serve a file system as resctrl: /dev/fuse: {}; run as root where the "
                  "kernel has FUSE",
                  std::strerror(errno));
  }
  std::unique_ptr<ResctrlDouble> made(new ResctrlDouble());
  for (const char* const name : {"proc", "resctrl"}) {
    std::filesystem::create_directory(made->directory_ / name);
  }
  std::array<int, 2> ends{};
  QRM_CHECK(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  made->channel_ = ends[0];
  made->server_ = ::fork();
  QRM_CHECK(made->server_ >= 0);
  if (made->server_ == 0) {
    ::close(ends[0]);
    Serve(machine, before, made->directory(), ends[1]);
  }
  ::close(ends[1]);
  if (const std::string answer = Receive(made->channel_); answer != kDone) {
    return Errorf(StatusCode::kFailedPrecondition, "{}",
                  answer.empty() ? "the process that serves resctrl ended" : answer);
  }
  return made;
}

ResctrlDouble::~ResctrlDouble() {
  ::close(channel_);
  ::waitpid(server_, nullptr, 0);
  for (const char* const name : {"proc", "resctrl"}) {
    ::umount2((directory_ / name).c_str(), MNT_DETACH);  // where the server could not
  }
}

void ResctrlDouble::Tell(const std::string& command, const std::string& first,
                         const std::string& second, const std::string& third) const {
  const bool sent = Send(channel_, fmt::format("{}\n{}\n{}\n{}", command, first, second, third));
  QRM_CHECK(sent && Receive(channel_) == kDone);
}

}  // namespace qrm::test
