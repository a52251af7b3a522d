// A load at a fixed rate, whatever the service does: each request has an intended time, from which
// its latency counts. So a service that stalls delays all requests that were due meanwhile.
//
//   open_loop --port P --request TEXT [--prepare TEXT] [--rate R] [--seconds S] [--connections C]
//             [--answer BYTES] [--cpu N] [--out FILE]
//   open_loop --gaps SECONDS [--cpu N]       for how long the machine takes a busy CPU away
//
// TEXT has C's escapes \r, \n and \\. All answers have the length BYTES, or that of the first one.
// When the load begins, it prints "begin BYTES PRIORITY". FILE gets a line for each answer: its
// intended time and its latency, in microseconds.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "bench/command_line.h"

namespace qrm::bench {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int kPriority = 50;
constexpr seconds kStartWithin{20};
constexpr milliseconds kQuiet{300};  // after which an answer is complete
constexpr seconds kDrain{3};         // for the answers after the last request
constexpr std::size_t kBuffer = 1 << 18;

[[noreturn]] void Fail(const std::string& sentence) {
  fmt::print(stderr, "open_loop: {}\n", sentence);
  std::exit(EXIT_FAILURE);
}

std::string Unescaped(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      bytes += text[i];
      continue;
    }
    const char escaped = text[++i];
    bytes += escaped == 'n' ? '\n' : escaped == 'r' ? '\r' : escaped;
  }
  return bytes;
}

/// On CPU `cpu` unless that is empty, and before all ordinary work.
bool TakeCpu(const std::string& cpu) {
  if (!cpu.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(std::stoul(cpu), &set);
    if (::sched_setaffinity(0, sizeof(set), &set) != 0) {
      Fail(fmt::format("cannot run on CPU {}; name one that is online", cpu));
    }
  }
  const sched_param priority{.sched_priority = kPriority};
  return ::sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
}

class Connection {
 public:
  explicit Connection(uint16_t port) {
    const sockaddr_in address = {.sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr = {htonl(INADDR_LOOPBACK)},
                                 .sin_zero = {}};
    const auto deadline = steady_clock::now() + kStartWithin;
    while (true) {
      fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (fd_ < 0) {
        Fail("cannot make a socket; raise the limit of open files");
      }
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the API of sockets
      if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
        break;
      }
      ::close(fd_);
      if (steady_clock::now() > deadline) {
        Fail(fmt::format("nothing listens on 127.0.0.1:{} after {} s; see the service's log", port,
                         kStartWithin.count()));
      }
      std::this_thread::sleep_for(milliseconds(20));
    }
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const timeval limit{.tv_sec = kDrain.count(), .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  }
  ~Connection() { ::close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const { return fd_; }
  void Send(const std::string& request) const {
    if (::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size())) {
      Fail(fmt::format("the service takes no more requests within {} s; lower --rate",
                       kDrain.count()));
    }
  }
  /// The bytes that have come since the last call; 0 if there are none.
  std::size_t Read() const {
    static std::array<char, kBuffer> buffer;
    const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got == 0) {
      Fail("the service closes its connections; let it keep them");
    }
    return static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  /// The length of the answer to `request` on a service that does nothing else.
  std::size_t Ask(const std::string& request) const {
    Send(request);
    pollfd poll = {.fd = fd_, .events = POLLIN, .revents = 0};
    std::size_t length = 0;
    while (::poll(&poll, 1,
                  static_cast<int>(length == 0 ? seconds(kStartWithin) / milliseconds(1)
                                               : kQuiet.count())) > 0) {
      length += Read();
    }
    return length;
  }

  std::deque<nanoseconds> intended;  // of the requests without an answer
  std::size_t bytes = 0;             // of the next answer

 private:
  int fd_ = -1;
};

struct Load {
  std::string request;
  std::size_t answer = 0;  // its length
  nanoseconds between{0};
  int64_t requests = 0;
};

struct Answer {
  nanoseconds intended;
  nanoseconds latency;
};

class Run {
 public:
  Run(const Load& load, std::deque<Connection>& connections)
      : load_(load), connections_(connections) {
    for (const Connection& each : connections_) {
      polls_.push_back({.fd = each.fd(), .events = POLLIN, .revents = 0});
    }
    answers_.reserve(static_cast<std::size_t>(load_.requests));
  }

  std::vector<Answer> Play() {
    const nanoseconds end = load_.between * load_.requests + kDrain;
    while (std::ssize(answers_) < load_.requests && Now() < end) {
      Wait();
      for (std::size_t i = 0; i < polls_.size(); ++i) {
        if (polls_[i].revents != 0) {
          Take(connections_[i]);
        }
      }
      for (; sent_ < load_.requests && load_.between * sent_ <= Now(); ++sent_) {
        Connection& to = connections_[static_cast<std::size_t>(sent_) % connections_.size()];
        to.intended.push_back(load_.between * sent_);
        to.Send(load_.request);
      }
    }
    for (Connection& each : connections_) {
      for (const nanoseconds intended : each.intended) {
        answers_.push_back({intended, Now() - intended});
      }
    }
    return std::move(answers_);
  }

 private:
  nanoseconds Now() const { return steady_clock::now() - begin_; }
  /// Until an answer comes or a request is due.
  void Wait() {
    const nanoseconds due =
        sent_ < load_.requests ? load_.between * sent_ - Now() : nanoseconds(milliseconds(10));
    const nanoseconds left = std::max(due, nanoseconds(0));
    const timespec limit{.tv_sec = left / seconds(1), .tv_nsec = (left % seconds(1)).count()};
    ::ppoll(polls_.data(), polls_.size(), &limit, nullptr);
  }
  void Take(Connection& from) {
    from.bytes += from.Read();
    while (from.bytes >= load_.answer && !from.intended.empty()) {
      from.bytes -= load_.answer;
      answers_.push_back({from.intended.front(), Now() - from.intended.front()});
      from.intended.pop_front();
    }
  }

  const Load& load_;
  std::deque<Connection>& connections_;
  const steady_clock::time_point begin_ = steady_clock::now();
  std::vector<pollfd> polls_;
  std::vector<Answer> answers_;
  int64_t sent_ = 0;
};

int Play(const CommandLine& options) {
  const auto port = options.Number<uint16_t>("--port", 0);
  const auto rate = std::max<int64_t>(options.Number<int64_t>("--rate", 1000), 1);
  Load load{.request = Unescaped(options.Text("--request")),
            .between = nanoseconds(seconds(1)) / rate,
            .requests = rate * options.Number<int64_t>("--seconds", 8)};
  std::deque<Connection> connections;
  for (int i = 0; i < options.Number("--connections", 16); ++i) {
    connections.emplace_back(port);
  }
  if (!options.Text("--prepare").empty() &&
      connections.front().Ask(Unescaped(options.Text("--prepare"))) == 0) {
    Fail("the service does not answer --prepare");
  }
  load.answer = options.Number<std::size_t>("--answer", 0);
  if (load.answer == 0) {
    load.answer = connections.front().Ask(load.request);
    if (load.answer == 0 || connections.back().Ask(load.request) != load.answer) {
      Fail(
          fmt::format("the answers to --request do not all have {} bytes; choose a request with "
                      "answers of one length",
                      load.answer));
    }
  }
  const bool is_first = TakeCpu(options.Text("--cpu"));
  fmt::print(stderr, "begin {} {}\n", load.answer, is_first ? "real-time" : "ordinary");
  const std::vector<Answer> answers = Run(load, connections).Play();
  std::ofstream out(options.values.contains("--out") ? options.Text("--out") : "/dev/stdout");
  for (const Answer& each : answers) {
    out << duration_cast<microseconds>(each.intended).count() << ' '
        << duration_cast<microseconds>(each.latency).count() << '\n';
  }
  return out.flush() ? EXIT_SUCCESS : EXIT_FAILURE;
}

/// Looks at the clock all the time beside a busy thread for each CPU, and prints how often and for
/// how long it was not run.
int MeasureGaps(const CommandLine& options) {
  constexpr microseconds kGap{1000};
  std::atomic<bool> ended = false;
  std::vector<std::thread> hogs;
  hogs.reserve(std::thread::hardware_concurrency());
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
    hogs.emplace_back([&] {
      while (!ended.load(std::memory_order_relaxed)) {
      }
    });
  }
  const bool is_first = TakeCpu(options.Text("--cpu"));
  const auto end = steady_clock::now() + seconds(options.Number("--gaps", 1));
  nanoseconds longest{0};
  int gaps = 0;
  for (auto last = steady_clock::now(); last < end;) {
    const auto now = steady_clock::now();
    longest = std::max<nanoseconds>(longest, now - last);
    gaps += now - last >= kGap ? 1 : 0;
    last = now;
  }
  ended = true;
  for (std::thread& hog : hogs) {
    hog.join();
  }
  fmt::print("{} {} {}\n", gaps, duration_cast<microseconds>(longest).count(),
             is_first ? "real-time" : "ordinary");
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace qrm::bench

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  const auto options =
      qrm::bench::ReadCommandLine(argc, argv,
                                  {"--port", "--request", "--prepare", "--rate", "--seconds",
                                   "--answer", "--connections", "--cpu", "--out", "--gaps"});
  return options.smoke || options.values.contains("--gaps") ? qrm::bench::MeasureGaps(options)
                                                            : qrm::bench::Play(options);
}
