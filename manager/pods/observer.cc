// A look at the runtime: two lists, the status of each new container, and one observation.
#include "manager/pods/observer.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <boost/asio/steady_timer.hpp>

#include "api/base/log.h"
#include "api/base/mutex.h"
#include "manager/demand/demand_source.h"
#include "manager/pods/applied_values.h"

namespace qrm::manager {

GonePods::GonePods(CpusetSource read_cpuset, std::chrono::milliseconds gone_after)
    : read_cpuset_(std::move(read_cpuset)), gone_after_(gone_after) {}

void GonePods::Reset() {
  missing_since_.clear();
  cgroups_.clear();
}

void GonePods::NoteCgroup(const std::string& pod_uid, const std::string& cgroups_path) {
  if (!cgroups_path.empty()) {
    cgroups_[pod_uid].insert(cgroups_path);
  }
}

std::set<std::string> GonePods::Doubtful(const std::set<std::string>& known,
                                         const std::set<std::string>& listed, Time now,
                                         ListTrust trust) {
  std::erase_if(missing_since_, [&](const auto& entry) {
    return listed.contains(entry.first) || !known.contains(entry.first);
  });
  const bool list_proves = !listed.empty() && trust == ListTrust::kOurs;
  std::set<std::string> doubtful;
  for (const std::string& uid : known) {
    if (!listed.contains(uid) && MayBeThere(uid, list_proves, now)) {
      doubtful.insert(uid);
    }
  }
  std::erase_if(cgroups_, [&](const auto& entry) {
    return !listed.contains(entry.first) && !doubtful.contains(entry.first);
  });
  return doubtful;
}

bool GonePods::MayBeThere(const std::string& pod_uid, bool list_proves, Time now) {
  const Time since = missing_since_.try_emplace(pod_uid, now).first->second;
  const Evidence evidence = EvidenceOf(pod_uid);
  return now - since < gone_after_ || evidence == Evidence::kThere ||
         (!list_proves && evidence == Evidence::kNone);
}

GonePods::Evidence GonePods::EvidenceOf(const std::string& pod_uid) const {
  const auto found = cgroups_.find(pod_uid);
  if (read_cpuset_ == nullptr || found == cgroups_.end()) {
    return Evidence::kNone;
  }
  for (const std::string& path : found->second) {
    if (read_cpuset_(path).status().code() != StatusCode::kNotFound) {
      return Evidence::kThere;
    }
  }
  return Evidence::kGone;
}

namespace {

using std::chrono::steady_clock;

/// The cgroup of the pod, from that of one of its containers.
/// Source: OCI cgroupsPath, "/kubepods/podX/c" or systemd's "kubepods-podX.slice:cri-o:c".
std::string ParentOf(const std::string& cgroups_path) {
  return cgroups_path.substr(0, cgroups_path.find_last_of("/:"));
}

}  // namespace

/// One look under way.
struct Look {
  Observation seen;
  std::vector<RuntimeContainer> to_ask;  // whose status is needed
  std::size_t next = 0;
  std::size_t in_flight = 0;
};

struct Observer::Impl : std::enable_shared_from_this<Observer::Impl> {
  Impl(Parts given, ObserverOptions given_options)
      : parts(std::move(given)),
        options(given_options),
        timer(parts.io),
        watch_timer(parts.io),
        gone(parts.read_cpuset, options.gone_after) {}

  void Begin();
  void End();
  void StartWatch();
  void OnEvent();
  void OnWatchEnd(const Status& why);
  void LookAfter(std::chrono::milliseconds delay);
  void StartLook();
  void OnPods(StatusOr<std::vector<RuntimePod>> pods);
  void OnContainers(std::vector<RuntimePod> pods,
                    StatusOr<std::vector<RuntimeContainer>> containers);
  void AskMore(const std::shared_ptr<Look>& look);
  void OnStatus(const std::shared_ptr<Look>& look, const RuntimeContainer& listed,
                StatusOr<RuntimeContainer> container);
  bool IsKnown(const RuntimePod& pod, const RuntimeContainer& container) const;
  void AskAgain(std::vector<RuntimeContainer> known, Look& look);
  void Finish(Look& look);
  void EndLook(const Status& result);
  std::set<std::string> KnownPods() const;

  /// Calls `work` with the object, unless NRI has come or gone meanwhile.
  template <typename... Args, typename Work>
  std::function<void(Args...)> While(Work work) {
    // NOLINTNEXTLINE(performance-unnecessary-value-param): work may take its arguments by value
    return [weak = weak_from_this(), begun = era, work = std::move(work)](Args... args) {
      const std::shared_ptr<Impl> self = weak.lock();
      if (self != nullptr && self->era == begun) {
        work(*self, std::move(args)...);
      }
    };
  }

  const Parts parts;
  const ObserverOptions options;
  boost::asio::steady_timer timer;
  boost::asio::steady_timer watch_timer;
  std::unique_ptr<EventWatch> watch;
  GonePods gone;
  uint64_t era = 0;  // incremented whenever NRI comes or goes
  bool stopped = false;
  bool looking = false;
  bool look_again = false;
  steady_clock::time_point next_values;  // when known containers are next asked for their values
  std::size_t asked_again = 0;           // how many of them were asked so far

  mutable Mutex mutex;
  ObserverStatus status QRM_GUARDED_BY(mutex);
};

void Observer::Impl::Begin() {
  log::Warning("following the runtime over CRI: containers are pinned after their creation");
  for (const auto& [key, container] : parts.live.All()) {
    gone.NoteCgroup(key.pod_uid, container.cgroups_path);
  }
  {
    const MutexLock lock(mutex);
    status.active = true;
    status.problem = "the runtime was not queried over CRI yet";
  }
  StartWatch();
  StartLook();
}

void Observer::Impl::End() {
  ++era;
  timer.cancel();
  watch_timer.cancel();
  watch.reset();
  gone.Reset();
  looking = false;
  look_again = false;
  const MutexLock lock(mutex);
  if (std::exchange(status.active, false)) {
    log::Info("no longer following the runtime over CRI", {{"looks", status.looks}});
  }
  status.working = false;
  status.has_events = false;
  status.problem.clear();
}

void Observer::Impl::StartWatch() {
  watch = parts.runtime.WatchEvents(
      While<>([](Impl& self) { self.OnEvent(); }),
      While<Status>([](Impl& self, const Status& why) { self.OnWatchEnd(why); }));
}

void Observer::Impl::OnEvent() {
  {
    const MutexLock lock(mutex);
    status.has_events = true;
  }
  LookAfter(options.min_gap);
}

void Observer::Impl::OnWatchEnd(const Status& why) {
  bool had_events = false;
  {
    const MutexLock lock(mutex);
    had_events = std::exchange(status.has_events, false);
  }
  if (why.code() == StatusCode::kUnimplemented) {
    log::Info("the runtime has no container events: it is polled every period",
              {{"period_ms", options.period.count()}});
    return;  // the ended watch stays until NRI is back
  }
  if (had_events) {
    LookAfter(options.min_gap);  // events may have been lost with the stream
  }
  watch_timer.expires_after(options.watch_retry);
  watch_timer.async_wait(
      While<boost::system::error_code>([](Impl& self, const boost::system::error_code& error) {
        if (!error) {
          self.StartWatch();
        }
      }));
}

// A look that is due earlier replaces the one that waits.
void Observer::Impl::LookAfter(std::chrono::milliseconds delay) {
  if (looking) {
    look_again = true;
    return;
  }
  const auto when = steady_clock::now() + delay;
  if (timer.expiry() > steady_clock::now() && timer.expiry() <= when) {
    return;
  }
  timer.expires_at(when);
  timer.async_wait(
      While<boost::system::error_code>([](Impl& self, const boost::system::error_code& error) {
        if (!error && !self.looking) {
          self.StartLook();
        }
      }));
}

void Observer::Impl::StartLook() {
  looking = true;
  look_again = false;
  parts.runtime.ListPods(While<StatusOr<std::vector<RuntimePod>>>(
      [](Impl& self, StatusOr<std::vector<RuntimePod>> pods) { self.OnPods(std::move(pods)); }));
}

void Observer::Impl::OnPods(StatusOr<std::vector<RuntimePod>> pods) {
  if (!pods.ok()) {
    EndLook(pods.status());
    return;
  }
  parts.runtime.ListContainers(While<StatusOr<std::vector<RuntimeContainer>>>(
      [pods = *std::move(pods)](Impl& self, StatusOr<std::vector<RuntimeContainer>> containers) {
        self.OnContainers(pods, std::move(containers));
      }));
}

void Observer::Impl::OnContainers(std::vector<RuntimePod> pods,
                                  StatusOr<std::vector<RuntimeContainer>> containers) {
  if (!containers.ok()) {
    EndLook(containers.status());
    return;
  }
  const auto look = std::make_shared<Look>();
  std::map<std::string, const RuntimePod*> pod_by_id;
  for (const RuntimePod& pod : pods) {
    pod_by_id[pod.id] = &pod;
  }
  std::vector<RuntimeContainer> known;
  for (RuntimeContainer& container : *containers) {
    const auto pod = pod_by_id.find(container.pod_id);
    if (pod == pod_by_id.end() || !IsLive(container)) {
      continue;  // the next look finds a pod that is newer than the list of pods
    }
    const bool is_known = IsKnown(*pod->second, container);
    (is_known ? known : look->to_ask).push_back(std::move(container));
  }
  AskAgain(std::move(known), *look);
  look->seen.pods = std::move(pods);
  AskMore(look);
}

bool Observer::Impl::IsKnown(const RuntimePod& pod, const RuntimeContainer& container) const {
  const auto known = parts.live.Find(KeyOf(pod, container));
  return known.has_value() && known->id == container.id;
}

// A list does not show resizes: each period, some of the known containers are asked in turn, so
// that a period costs the same on every node.
void Observer::Impl::AskAgain(std::vector<RuntimeContainer> known, Look& look) {
  std::size_t count = 0;
  if (const auto now = steady_clock::now(); now >= next_values && !known.empty()) {
    next_values = now + options.period;
    count = std::min(options.values_per_period, known.size());
    std::rotate(known.begin(),
                known.begin() + static_cast<std::ptrdiff_t>(asked_again % known.size()),
                known.end());
    asked_again += count;
  }
  const auto rest = known.begin() + static_cast<std::ptrdiff_t>(count);
  std::move(known.begin(), rest, std::back_inserter(look.to_ask));
  std::move(rest, known.end(), std::back_inserter(look.seen.containers));
}

// Answers may come within the call.
void Observer::Impl::AskMore(const std::shared_ptr<Look>& look) {
  while (look->next < look->to_ask.size() && look->in_flight < options.concurrent_statuses) {
    ++look->in_flight;
    const RuntimeContainer& listed = look->to_ask[look->next++];
    parts.runtime.GetContainer(
        listed, While<StatusOr<RuntimeContainer>>(
                    [look, &listed](Impl& self, StatusOr<RuntimeContainer> container) {
                      self.OnStatus(look, listed, std::move(container));
                    }));
  }
  if (look->next == look->to_ask.size() && look->in_flight == 0 && looking) {
    Finish(*look);
  }
}

// If the status of a new container fails, the next look asks again.
void Observer::Impl::OnStatus(const std::shared_ptr<Look>& look, const RuntimeContainer& listed,
                              StatusOr<RuntimeContainer> container) {
  --look->in_flight;
  if (container.ok()) {
    UseKernelsCpuset(parts.read_cpuset, *container);
    look->seen.containers.push_back(*std::move(container));
  } else if (container.status().code() != StatusCode::kNotFound) {
    log::Warning("cannot read the status of a container",
                 {{"error", MessageOf(container.status())}});
    const auto& pods = look->seen.pods;
    const auto pod = std::find_if(pods.begin(), pods.end(),
                                  [&](const RuntimePod& one) { return one.id == listed.pod_id; });
    if (pod != pods.end() && IsKnown(*pod, listed)) {
      look->seen.containers.push_back(listed);
    }
  }
  AskMore(look);
}

std::set<std::string> Observer::Impl::KnownPods() const {
  std::set<std::string> uids;
  parts.state.Load()->ForEachPod(
      [&](const checkpoint::PodRecord& pod) { uids.insert(pod.meta.uid); });
  for (const auto& [key, container] : parts.live.All()) {
    uids.insert(key.pod_uid);
  }
  return uids;
}

void Observer::Impl::Finish(Look& look) {
  std::map<std::string, RuntimePod*> pod_by_id;
  std::set<std::string> listed;
  std::set<std::string> ids;
  for (RuntimePod& pod : look.seen.pods) {
    pod_by_id[pod.id] = &pod;
    listed.insert(pod.uid);
    ids.insert(pod.id);
  }
  for (const RuntimeContainer& container : look.seen.containers) {
    RuntimePod& pod = *pod_by_id.at(container.pod_id);
    gone.NoteCgroup(pod.uid, container.cgroups_path);
    if (pod.cgroup_parent.empty()) {
      pod.cgroup_parent = ParentOf(container.cgroups_path);
    }
  }
  look.seen.unknown_to_cri = parts.live.UnknownToCri(ids);
  look.seen.doubtful = gone.Doubtful(
      KnownPods(), listed, steady_clock::now(),
      look.seen.unknown_to_cri.empty() ? ListTrust::kOurs : ListTrust::kMaybeAnothers);
  parts.listener.OnObserved(std::move(look.seen));
  EndLook(OkStatus());
}

void Observer::Impl::EndLook(const Status& result) {
  looking = false;
  bool news = false;
  {
    const MutexLock lock(mutex);
    news = !result.ok() && status.problem != MessageOf(result);
    status.working = result.ok();
    status.looks += result.ok() ? 1 : 0;
    status.problem = MessageOf(result);
  }
  if (news) {  // log each problem once
    log::Warning("cannot follow the runtime", {{"error", MessageOf(result)}});
  }
  LookAfter(look_again ? options.min_gap : options.period);
}

Observer::Observer(Parts parts, ObserverOptions options)
    : impl_(std::make_shared<Impl>(std::move(parts), options)) {}

// NOLINTNEXTLINE(bugprone-exception-escape): cancelling a timer throws nothing on Linux.
Observer::~Observer() {
  Stop();
}

void Observer::OnNriAway() {
  if (impl_->stopped || GetStatus().active) {
    return;
  }
  impl_->timer.expires_after(impl_->options.grace);
  impl_->timer.async_wait(impl_->While<boost::system::error_code>(
      [](Impl& self, const boost::system::error_code& error) {
        if (!error) {
          self.Begin();
        }
      }));
}

void Observer::OnNriBack() {
  impl_->End();
}

void Observer::Stop() {
  impl_->stopped = true;
  impl_->End();
}

ObserverStatus Observer::GetStatus() const {
  const MutexLock lock(impl_->mutex);
  return impl_->status;
}

}  // namespace qrm::manager
