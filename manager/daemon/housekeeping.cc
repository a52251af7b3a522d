// Repeats the chores with a timer.
#include "manager/daemon/housekeeping.h"

#include <chrono>

#include "manager/daemon/free_memory.h"

namespace qrm::manager {
namespace {

constexpr std::chrono::seconds kPeriod{5};

}  // namespace

void Housekeeping::Start() {
  if (parts_.kubelet.Look() == KubeletWatch::News::kFree) {
    parts_.follower.RetryUnplaced();
    parts_.reconciler.Trigger();
  }
  GiveBackFreeMemory();  // a list of all containers takes megabytes, for an instant
  timer_.expires_after(kPeriod);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      Start();
    }
  });
}

}  // namespace qrm::manager
