// Answers from known specs, else waits briefly for them on the I/O loop, else estimates.
#include "manager/demand/exact_source.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "api/base/log.h"
#include "api/base/mutex.h"

namespace qrm::manager {
namespace {

template <typename Pod>
PodSpecPtr SpecOf(const SpecSource& source, const Pod& pod) {
  PodSpecPtr own = source.Find(pod.uid);
  return own != nullptr ? own : source.FindMirror(pod.uid, pod.pod_namespace, pod.name);
}

bool IsOf(const PodSpec& spec, const checkpoint::PodMeta& pod) {
  return spec.pod_namespace == pod.pod_namespace && spec.name == pod.name;
}

void WarnOfOtherPod(const PodSpec& spec, const checkpoint::PodMeta& pod, const SpecSource& source) {
  log::Warning("ignoring the spec of another pod", {{"uid", pod.uid},
                                                    {"pod", pod.pod_namespace + "/" + pod.name},
                                                    {"spec", spec.pod_namespace + "/" + spec.name},
                                                    {"from", source.name()}});
}

}  // namespace

/// A question for a container's demand: the estimate, and the callback that gets the answer.
struct Question {
  ContainerDemand estimate;
  DemandSource::Found found;
};

/// The questions about one pod whose spec is looked for, in order. They are answered together when
/// the wait of the first one ends; until then, further questions queue behind them.
struct Wait {
  explicit Wait(boost::asio::io_context& io) : timer(io) {}

  // Used on the I/O loop only.
  boost::asio::steady_timer timer;
  std::vector<bool> looking;  // by source
  bool over = false;

  std::vector<Question> questions;  // guarded by the mutex of the source
};
using WaitPtr = std::shared_ptr<Wait>;

struct ExactSource::Impl : std::enable_shared_from_this<ExactSource::Impl> {
  Impl(boost::asio::io_context& loop, std::vector<SpecSource*> spec_sources, CgroupEstimate by,
       std::chrono::milliseconds longest)
      : io(loop), sources(std::move(spec_sources)), estimate(std::move(by)), max_wait(longest) {}

  std::optional<ContainerDemand> Refined(const ContainerDemand& estimated, const PodSpecPtr& spec,
                                         const SpecSource& source) const;
  std::optional<ContainerDemand> Known(const ContainerDemand& estimated) const;

  // On the I/O loop.
  void Begin(const std::string& uid, const WaitPtr& wait, Deadline end);
  void LookWith(std::size_t index, const std::string& uid, const WaitPtr& wait, Deadline end);
  bool IsEnough(const Wait& wait);
  void End(const std::string& uid, const WaitPtr& wait);

  boost::asio::io_context& io;
  const std::vector<SpecSource*> sources;
  const bool can_look = std::any_of(sources.begin(), sources.end(),
                                    [](const SpecSource* source) { return source->can_look(); });
  const CgroupEstimate estimate;
  const std::chrono::milliseconds max_wait;

  Mutex mutex;
  bool stopped QRM_GUARDED_BY(mutex) = false;
  std::map<std::string, WaitPtr> waits QRM_GUARDED_BY(mutex);  // by pod UID
};

ExactSource::ExactSource(boost::asio::io_context& io, std::vector<SpecSource*> sources,
                         CgroupEstimate estimate, std::chrono::milliseconds max_wait)
    : impl_(std::make_shared<Impl>(io, std::move(sources), std::move(estimate), max_wait)) {}

ExactSource::~ExactSource() {
  Stop();
}

void ExactSource::Stop() {
  std::map<std::string, WaitPtr> dropped;
  {
    const MutexLock lock(impl_->mutex);
    impl_->stopped = true;
    dropped.swap(impl_->waits);
  }
}

void ExactSource::Find(const RuntimePod& pod, const RuntimeContainer& container, Deadline deadline,
                       Found found) {
  StatusOr<ContainerDemand> estimated = impl_->estimate.Estimate(pod, container);
  if (!estimated.ok()) {
    found(std::move(estimated));
    return;
  }
  std::optional<ContainerDemand> exact = impl_->Known(*estimated);
  if (!exact.has_value() && !impl_->can_look) {
    exact = *estimated;
  }
  WaitPtr begun;
  {
    const MutexLock lock(impl_->mutex);
    if (impl_->stopped) {
      return;
    }
    const auto pending = impl_->waits.find(pod.uid);
    if (pending != impl_->waits.end()) {
      pending->second->questions.push_back({*std::move(estimated), std::move(found)});
      return;
    }
    if (!exact.has_value()) {
      begun = std::make_shared<Wait>(impl_->io);
      begun->questions.push_back({*std::move(estimated), std::move(found)});
      impl_->waits.emplace(pod.uid, begun);
    }
  }
  if (exact.has_value()) {
    found(*std::move(exact));  // NOLINT(bugprone-use-after-move): moved only without `exact`
    return;
  }
  boost::asio::dispatch(impl_->io,
                        [weak = impl_->weak_from_this(), uid = pod.uid, wait = std::weak_ptr(begun),
                         end = std::min(deadline, DeadlineAfter(impl_->max_wait))] {
                          const std::shared_ptr<Impl> self = weak.lock();
                          if (const WaitPtr current = wait.lock(); self != nullptr && current) {
                            self->Begin(uid, current, end);
                          }
                        });
}

void ExactSource::Prefetch(const RuntimePod& pod) {
  const bool known =
      std::any_of(impl_->sources.begin(), impl_->sources.end(),
                  [&](const SpecSource* source) { return SpecOf(*source, pod) != nullptr; });
  if (known || pod.uid.empty()) {
    return;
  }
  for (SpecSource* source : impl_->sources) {
    source->Prefetch(pod.uid);
  }
}

std::optional<ContainerDemand> ExactSource::FindNow(const ContainerDemand& recorded) const {
  return impl_->Known(recorded);
}

uint64_t ExactSource::revision() const {
  uint64_t sum = 0;
  for (const SpecSource* source : impl_->sources) {
    sum += source->revision();
  }
  return sum;
}

void ExactSource::LookAgain(const std::string& pod_uid) {
  for (SpecSource* source : impl_->sources) {
    source->Prefetch(pod_uid);
  }
}

std::optional<ContainerDemand> ExactSource::Impl::Refined(const ContainerDemand& estimated,
                                                          const PodSpecPtr& spec,
                                                          const SpecSource& source) const {
  return spec == nullptr || !IsOf(*spec, estimated.pod)
             ? std::nullopt
             : Refine(estimated, *spec, estimate.MainContainerOf(estimated.pod), source.name());
}

std::optional<ContainerDemand> ExactSource::Impl::Known(const ContainerDemand& estimated) const {
  for (const SpecSource* source : sources) {
    const PodSpecPtr spec = SpecOf(*source, estimated.pod);
    if (auto exact = Refined(estimated, spec, *source)) {
      return exact;
    }
    if (spec != nullptr && !IsOf(*spec, estimated.pod)) {
      WarnOfOtherPod(*spec, estimated.pod, *source);
    }
  }
  return std::nullopt;
}

void ExactSource::Impl::Begin(const std::string& uid, const WaitPtr& wait, Deadline end) {
  wait->timer.expires_at(end);
  wait->timer.async_wait([weak = weak_from_this(), uid,
                          waiting = std::weak_ptr(wait)](const boost::system::error_code& error) {
    const std::shared_ptr<Impl> self = weak.lock();
    const WaitPtr late = waiting.lock();
    if (!error && self != nullptr && late != nullptr) {
      self->End(uid, late);
    }
  });
  wait->looking.assign(sources.size(), true);
  for (SpecSource* source : sources) {
    source->Prefetch(uid);
  }
  for (std::size_t index = 0; index < sources.size() && !wait->over; ++index) {
    LookWith(index, uid, wait, end);
  }
}

void ExactSource::Impl::LookWith(std::size_t index, const std::string& uid, const WaitPtr& wait,
                                 Deadline end) {
  const auto looked = [weak = weak_from_this(), index, uid, waiting = std::weak_ptr(wait)] {
    const std::shared_ptr<Impl> self = weak.lock();
    const WaitPtr current = waiting.lock();
    if (self == nullptr || current == nullptr) {
      return;
    }
    current->looking[index] = false;
    if (!current->over && self->IsEnough(*current)) {
      self->End(uid, current);
    }
  };
  sources[index]->AfterLooking(uid, end, [weak = weak_from_this(), looked] {
    if (const std::shared_ptr<Impl> self = weak.lock(); self != nullptr) {
      boost::asio::dispatch(self->io, looked);
    }
  });
}

// True once a source has the spec and all sources before it have ended looking, or all have ended.
bool ExactSource::Impl::IsEnough(const Wait& wait) {
  ContainerDemand first;
  {
    const MutexLock lock(mutex);
    first = wait.questions.front().estimate;
  }
  for (std::size_t index = 0; index < sources.size(); ++index) {
    if (wait.looking[index]) {
      return false;
    }
    const SpecSource& source = *sources[index];
    if (Refined(first, SpecOf(source, first.pod), source).has_value()) {
      return true;
    }
  }
  return true;
}

void ExactSource::Impl::End(const std::string& uid, const WaitPtr& wait) {
  if (std::exchange(wait->over, true)) {
    return;
  }
  wait->timer.cancel();
  for (;;) {
    std::vector<Question> questions;
    {
      const MutexLock lock(mutex);
      questions.swap(wait->questions);
      if (questions.empty()) {
        waits.erase(uid);
        return;
      }
    }
    for (const Question& question : questions) {
      question.found(Known(question.estimate).value_or(question.estimate));
    }
  }
}

}  // namespace qrm::manager
