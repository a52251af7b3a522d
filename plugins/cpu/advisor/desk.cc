// Numbers the states that advisors see, and keeps their advice.
#include "plugins/cpu/advisor/desk.h"

#include <chrono>
#include <utility>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/log.h"

namespace qrm::cpu {
namespace {

/// Higher than those of earlier processes, as long as the machine's clock does not go back.
uint64_t FirstGeneration(const Clock& clock) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(clock.Now().time_since_epoch())
          .count());
}

}  // namespace

AdviceDesk::AdviceDesk(AdvisorConfig config, const Clock& clock, std::function<void()> on_advice)
    : config_(std::move(config)),
      clock_(clock),
      on_advice_(std::move(on_advice)),
      book_(config_),
      generation_(FirstGeneration(clock)) {}

void AdviceDesk::Show(NodeSight sight) {
  {
    MutexLock lock(mutex_);
    if (sight_ != nullptr && sight_->online != sight.online) {
      ++generation_;
    }
    sight.advised.generation = generation_;
    if (sight_ != nullptr && *sight_ == sight) {
      return;
    }
    sight_ = std::make_shared<const NodeSight>(std::move(sight));
  }
  MutexLock lock(listeners_mutex_);
  for (const auto& [id, listener] : listeners_) {
    listener();
  }
}

PoolSizes AdviceDesk::InForce() {
  MutexLock lock(mutex_);
  return book_.InForce(clock_.Steady());
}

PoolSizes AdviceDesk::Used() const {
  MutexLock lock(mutex_);
  return used_;
}

void AdviceDesk::NoteUse(PoolSizes used) {
  {
    MutexLock lock(mutex_);
    if (used == used_) {
      return;
    }
    used_ = std::move(used);
  }
  on_advice_();
}

std::shared_ptr<const NodeSight> AdviceDesk::Sight() const {
  MutexLock lock(mutex_);
  return sight_;
}

StatusOr<AdviceDesk::Answer> AdviceDesk::Advise(const AdviceCall& call) {
  Answer answer;
  bool is_news = false;
  {
    MutexLock lock(mutex_);
    if (sight_ == nullptr) {
      return Errorf(StatusCode::kUnavailable,
                    "cannot take advice: the cpu plugin is still starting; try again");
    }
    answer.generation = generation_;
    const auto now = clock_.Steady();
    const PoolSizes before = book_.InForce(now);
    QRM_ASSIGN_OR_RETURN(answer.results, book_.Take(call, sight_->advised, now));
    is_news = book_.InForce(now) != before;
  }
  for (const Advice& advice : call.entries) {
    log::Debug("pool advised", {{"pool", Quoted(advice.pool)},
                                {"cpus", std::to_string(advice.cpus)},
                                {"advisor", Quoted(call.advisor)},
                                {"reason", Quoted(advice.reason)}});
  }
  if (is_news) {
    on_advice_();
  }
  return answer;
}

uint64_t AdviceDesk::Listen(std::function<void()> listener) {
  MutexLock lock(listeners_mutex_);
  listeners_.emplace(next_listener_, std::move(listener));
  return next_listener_++;
}

void AdviceDesk::Forget(uint64_t listener) {
  MutexLock lock(listeners_mutex_);
  listeners_.erase(listener);
}

}  // namespace qrm::cpu
