// Keeps one timer. It waits for the earliest deadline, or for an earlier one that was ended.
#include "manager/registry/calls/call_deadlines.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "api/base/clock.h"
#include "api/base/mutex.h"

namespace qrm::manager {

struct CallDeadlines::State : std::enable_shared_from_this<State> {
  explicit State(boost::asio::io_context& io) : timer(io) {}

  void Arm() QRM_REQUIRES(mutex);
  void Expire();

  Mutex mutex;
  std::map<Watch, std::function<void()>> watched QRM_GUARDED_BY(mutex);
  uint64_t last_number QRM_GUARDED_BY(mutex) = 0;
  boost::asio::steady_timer timer QRM_GUARDED_BY(mutex);
  Deadline armed_for QRM_GUARDED_BY(mutex) = Deadline::max();  ///< max: the timer is off
};

void CallDeadlines::State::Arm() {
  if (watched.empty() || watched.begin()->first.deadline >= armed_for) {
    return;
  }
  armed_for = watched.begin()->first.deadline;
  timer.expires_at(armed_for);  // ends the wait for a later deadline
  timer.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    if (const auto self = weak.lock(); self != nullptr && !error) {
      self->Expire();
    }
  });
}

void CallDeadlines::State::Expire() {
  std::vector<std::function<void()>> expired;
  {
    const MutexLock lock(mutex);
    const auto later = watched.upper_bound({std::chrono::steady_clock::now(), UINT64_MAX});
    for (auto watch = watched.begin(); watch != later; watch = watched.erase(watch)) {
      expired.push_back(std::move(watch->second));
    }
    armed_for = Deadline::max();
    Arm();
  }
  for (const std::function<void()>& expire : expired) {
    expire();
  }
}

struct CallDeadlines::Impl {
  std::shared_ptr<State> state;  // the only reference, except while watches expire
};

CallDeadlines::CallDeadlines(boost::asio::io_context& io)
    : impl_(new Impl{std::make_shared<State>(io)}) {}

CallDeadlines::~CallDeadlines() = default;

CallDeadlines::Watch CallDeadlines::Begin(Deadline deadline, std::function<void()> expire) {
  const MutexLock lock(impl_->state->mutex);
  const Watch watch{deadline, ++impl_->state->last_number};
  impl_->state->watched.emplace(watch, std::move(expire));
  impl_->state->Arm();
  return watch;
}

void CallDeadlines::End(const Watch& watch) {
  std::function<void()> expire;  // destroyed after the lock: it may hold the call's last reference
  const MutexLock lock(impl_->state->mutex);
  if (const auto found = impl_->state->watched.find(watch); found != impl_->state->watched.end()) {
    expire = std::move(found->second);
    impl_->state->watched.erase(found);
  }
}

}  // namespace qrm::manager
