// Runs the periodic work with a timer.
#include "manager/daemon/housekeeping.h"

#include <chrono>
#include <csignal>
#include <utility>

#include <boost/asio/steady_timer.hpp>

#include "api/base/changed_file.h"
#include "api/base/heap.h"
#include "api/base/log.h"
#include "manager/kubelet/kubelet_policy.h"
#include "manager/pods/pod_placer.h"
#include "manager/pods/runtime_follower.h"
#include "manager/reconcile/reconciler.h"

namespace qrm::manager {
namespace {

constexpr std::chrono::seconds kPeriod{5};
/// Short enough that all of a fault's signs are there within 10 s.
constexpr std::chrono::seconds kFaultPeriod{2};
constexpr std::chrono::seconds kFilePeriod{1};
constexpr std::chrono::milliseconds kSoon{100};

}  // namespace

struct Housekeeping::Timers {
  boost::asio::steady_timer chores;
  boost::asio::steady_timer memory;
  boost::asio::steady_timer faults;
  boost::asio::steady_timer file;
  ChangedFile config;
};

Housekeeping::Housekeeping(Parts parts)
    : parts_(std::move(parts)),
      timers_(new Timers{boost::asio::steady_timer(parts_.io), boost::asio::steady_timer(parts_.io),
                         boost::asio::steady_timer(parts_.io), boost::asio::steady_timer(parts_.io),
                         ChangedFile(parts_.config_file)}) {}

Housekeeping::~Housekeeping() = default;

void Housekeeping::Start() {
  LookForFaults();
  if (!parts_.config_file.empty()) {
    LookAtConfig();
  }
  DoChores();
}

void Housekeeping::LookAtConfig() {
  timers_->file.expires_after(kFilePeriod);
  timers_->file.async_wait([this](const boost::system::error_code& error) {
    if (error) {
      return;
    }
    if (timers_->config.HasSettled()) {
      parts_.chores.ReadAgain();
    }
    LookAtConfig();
  });
}

void Housekeeping::KnowConfig() {
  timers_->config.Know();
}

void Housekeeping::LookForFaults() {
  timers_->faults.expires_after(kFaultPeriod);
  timers_->faults.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      parts_.chores.LookForFaults();
      LookForFaults();
    }
  });
}

void Housekeeping::DoChores() {
  switch (parts_.kubelet.Look()) {
    case KubeletWatch::News::kNone:
      break;
    case KubeletWatch::News::kFree:
      parts_.follower.placer().RetryUnplaced();
      parts_.reconciler.Trigger();
      break;
    case KubeletWatch::News::kOutdated:
      // The service manager or kubelet restarts qrmd, with the new files mounted.
      log::Warning(
          "stopping: kubelet's state files were replaced, and the mounts show the old files");
      std::raise(SIGTERM);
      return;
  }
  GiveBackFreeMemory();  // a list of all containers takes megabytes for a moment
  timers_->chores.expires_after(kPeriod);
  timers_->chores.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      DoChores();
    }
  });
}

void Housekeeping::Stop() {
  timers_->chores.cancel();
  timers_->memory.cancel();
  timers_->faults.cancel();
  timers_->file.cancel();
}

void Housekeeping::GiveBackSoon() {
  timers_->memory.expires_after(kSoon);
  timers_->memory.async_wait([](const boost::system::error_code& error) {
    if (!error) {
      GiveBackFreeMemory();
    }
  });
}

}  // namespace qrm::manager
