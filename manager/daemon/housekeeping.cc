// Repeats the chores with a timer.
#include "manager/daemon/housekeeping.h"

#include <chrono>
#include <csignal>

#include "api/base/heap.h"
#include "api/base/log.h"
#include "manager/daemon/process/start_pages.h"

namespace qrm::manager {
namespace {

constexpr std::chrono::seconds kPeriod{5};
constexpr std::chrono::milliseconds kSoon{100};
/// By then the start is over, and what runs then has run once.
constexpr int kTurnAfterStart = 3;

}  // namespace

void Housekeeping::Start() {
  switch (parts_.kubelet.Look()) {
    case KubeletWatch::News::kNone:
      break;
    case KubeletWatch::News::kFree:
      parts_.follower.RetryUnplaced();
      parts_.reconciler.Trigger();
      break;
    case KubeletWatch::News::kOutdated:
      // Whoever started this container starts it again, with the files mounted anew.
      log::Warning(
          "ending: kubelet's state files were replaced and their mounts show the old ones");
      std::raise(SIGTERM);
      return;
  }
  GiveBackFreeMemory();  // a list of all containers takes megabytes, for an instant
  if (++turns_ == kTurnAfterStart) {
    GiveBackStartPages();
  }
  timer_.expires_after(kPeriod);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      Start();
    }
  });
}

void Housekeeping::Stop() {
  timer_.cancel();
  memory_timer_.cancel();
}

void Housekeeping::GiveBackSoon() {
  memory_timer_.expires_after(kSoon);
  memory_timer_.async_wait([](const boost::system::error_code& error) {
    if (!error) {
      GiveBackFreeMemory();
    }
  });
}

}  // namespace qrm::manager
