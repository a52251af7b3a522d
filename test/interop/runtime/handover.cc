// The machine's own time for the least part of an admission: one thread hands a request to another,
// which makes a record durable and hands it back, both scheduled like qrmd's threads. Asks in real
// time every 20 ms until its input ends, then prints the nanoseconds of each.
//   handover FILE plain|nice|real-time
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "api/base/status.h"
#include "manager/daemon/process/priority.h"
#include "test/support/synced_log.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kRecordBytes = 4120;  // what one admission writes
constexpr int kIntervalMillis = 20;         // between admissions of the test

const std::map<std::string, qrm::manager::Priority, std::less<>> kModes = {
    {"plain", {}}, {"nice", {.nice = -20}}, {"real-time", {.nice = -20, .realtime = 1}}};

/// Wakes a thread that waits for it.
class Turn {
 public:
  void Give() const { ::eventfd_write(fd_, 1); }
  void Take() const {
    eventfd_t count = 0;
    ::eventfd_read(fd_, &count);
  }

 private:
  const int fd_ = ::eventfd(0, EFD_CLOEXEC);
};

[[noreturn]] void Fail(const qrm::Status& why) {
  fmt::print(stderr, "{}\n", qrm::MessageOf(why));
  std::exit(1);
}

void RunAs(const qrm::manager::Priority& priority) {
  if (const qrm::Status runs = qrm::manager::RunWith(priority); !runs.ok()) {
    Fail(runs);
  }
}

bool InputEnds(int within_millis) {
  pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return ::poll(&input, 1, within_millis) > 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || !kModes.contains(argv[2])) {
    fmt::print(stderr, "usage: handover FILE plain|nice|real-time\n");
    return 2;
  }
  const qrm::manager::Priority& served = kModes.at(argv[2]);
  const Turn asked;
  const Turn decided;
  const Turn durable;
  const Turn answered;
  std::thread decider([&] {
    for (RunAs(served);;) {
      asked.Take();
      decided.Give();
      durable.Take();
      answered.Give();
    }
  });
  decider.detach();
  std::thread committer([&, path = std::string(argv[1])] {
    qrm::test::SyncedLog log(path, kRecordBytes, qrm::test::SyncedLog::Length::kGrows);
    for (RunAs(served);;) {
      decided.Take();
      log.Append();
      durable.Give();
    }
  });
  committer.detach();

  RunAs({.realtime = 1});
  std::vector<Clock::duration> took;
  while (!InputEnds(kIntervalMillis)) {
    const Clock::time_point begin = Clock::now();
    asked.Give();
    answered.Take();
    took.push_back(Clock::now() - begin);
  }
  for (const Clock::duration one : took) {
    fmt::print("{}\n", std::chrono::nanoseconds(one).count());
  }
  std::fflush(stdout);
  ::_exit(0);  // the threads wait for ever
}
