// Compares CRI's lists with the table of live containers.
#include "manager/pods/sync_audit.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "api/base/log.h"
#include "manager/demand/demand_source.h"

namespace qrm::manager {

using std::chrono::steady_clock;

struct SyncAudit::Impl : std::enable_shared_from_this<SyncAudit::Impl> {
  Impl(Parts given, AuditOptions given_options)
      : parts(std::move(given)), options(std::move(given_options)), timer(parts.io) {}

  void LookAt(steady_clock::time_point when);
  void ListPods();
  void ListContainers(std::vector<RuntimePod> pods);
  bool Compare(const RuntimeList& list);
  void TakeByCri(const RuntimePod& pod, const RuntimeContainer& listed);
  void End(ListVerdict verdict);
  bool AnyListedIsOnRecord() const;

  const Parts parts;
  const AuditOptions options;
  boost::asio::steady_timer timer;
  std::optional<steady_clock::time_point> synchronized_at;  // absent while disconnected
  std::size_t next = 0;                                     // of the delays
  std::optional<steady_clock::time_point> due;              // when the timer ends
  bool looking = false;
  steady_clock::time_point asked_at;  // for the list under way
  bool look_again = false;
  std::set<std::string> unknown;       // ids, in the latest list
  std::set<std::string> asked_for;     // ids
  std::set<std::string> asked_before;  // the latest synchronization, which should have had them
  bool stopped = false;
};

SyncAudit::SyncAudit(Parts parts, AuditOptions options)
    : impl_(std::make_shared<Impl>(std::move(parts), std::move(options))) {}

// NOLINTNEXTLINE(bugprone-exception-escape): cancelling a timer throws nothing on Linux.
SyncAudit::~SyncAudit() {
  Stop();
}

void SyncAudit::OnSynchronized() {
  impl_->synchronized_at = steady_clock::now();
  impl_->next = 0;
  impl_->unknown.clear();
  impl_->asked_before = impl_->asked_for;
  impl_->End(ListVerdict::kCertain);
}

void SyncAudit::OnDisconnected() {
  impl_->synchronized_at.reset();
  impl_->due.reset();
  impl_->timer.cancel();
}

void SyncAudit::LookSoon() {
  if (impl_->looking) {
    impl_->look_again = true;
  } else {
    impl_->LookAt(steady_clock::now() + impl_->options.soon);
  }
}

void SyncAudit::Stop() {
  impl_->stopped = true;
  impl_->timer.cancel();
}

// A look that is due earlier replaces the one that waits.
void SyncAudit::Impl::LookAt(steady_clock::time_point when) {
  if (stopped || !synchronized_at.has_value() || (due.has_value() && *due <= when)) {
    return;
  }
  due = when;
  timer.expires_at(when);
  timer.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && !self->stopped && self->due.has_value()) {
      self->due.reset();
      self->ListPods();
    }
  });
}

void SyncAudit::Impl::ListPods() {
  looking = true;
  asked_at = steady_clock::now();
  parts.runtime.ListPods([self = shared_from_this()](StatusOr<std::vector<RuntimePod>> pods) {
    if (pods.ok() && !self->stopped) {
      self->ListContainers(*std::move(pods));
    } else {
      self->End(ListVerdict::kCertain);
    }
  });
}

void SyncAudit::Impl::ListContainers(std::vector<RuntimePod> pods) {
  parts.runtime.ListContainers([self = shared_from_this(), pods = std::move(pods)](
                                   StatusOr<std::vector<RuntimeContainer>> containers) {
    if (!containers.ok() || self->stopped || !self->synchronized_at.has_value()) {
      self->End(ListVerdict::kCertain);
      return;
    }
    const RuntimeList list{pods, *std::move(containers), self->asked_at};
    ListVerdict verdict = self->parts.listener.OnListed(list);
    if (verdict != ListVerdict::kContradicted && !self->Compare(list)) {
      verdict = ListVerdict::kUnconfirmed;
    }
    boost::asio::post(self->parts.io, self->parts.after_list);
    self->End(verdict);
  });
}

// False when a container is unknown that may only have ended since the list was made. Another list
// has to confirm it, since the runtime serves pods without qrmd while it synchronizes again.
bool SyncAudit::Impl::Compare(const RuntimeList& list) {
  std::map<std::string, const RuntimePod*> pod_by_id;
  for (const RuntimePod& pod : list.pods) {
    pod_by_id[pod.id] = &pod;
  }
  const std::set<std::string> unknown_before = std::exchange(unknown, {});
  bool left_out = false;
  for (const RuntimeContainer& container : list.containers) {
    const auto pod = pod_by_id.find(container.pod_id);
    if (pod == pod_by_id.end() || !IsLive(container)) {
      continue;
    }
    const std::optional<LiveContainer> known = parts.live.Find(KeyOf(*pod->second, container));
    const bool is_known = known.has_value() && known->id == container.id;
    if (is_known && (!known->untold || asked_for.contains(container.id))) {
      continue;
    }
    if (asked_before.contains(container.id)) {
      unknown.insert(container.id);  // until it is followed over CRI
      TakeByCri(*pod->second, container);
      continue;
    }
    if (asked_for.contains(container.id)) {
      continue;
    }
    if (!unknown_before.contains(container.id)) {
      unknown.insert(container.id);
      continue;
    }
    log::Warning("the runtime left out a container: synchronizing again",
                 {{"pod", pod->second->uid}, {"container", container.name}});
    asked_for.insert(container.id);
    left_out = true;
  }
  if (left_out) {
    parts.listener.OnLeftOut();
  }
  return unknown.empty();
}

void SyncAudit::Impl::TakeByCri(const RuntimePod& pod, const RuntimeContainer& listed) {
  parts.runtime.GetContainer(
      listed, [self = shared_from_this(), pod](StatusOr<RuntimeContainer> container) {
        if (self->stopped || !self->synchronized_at.has_value()) {
          return;
        }
        if (container.ok() && IsLive(*container)) {
          log::Warning("the runtime left out a container again: following it over CRI",
                       {{"pod", pod.uid}, {"container", container->name}});
          self->parts.listener.OnLeftOutAgain(pod, *std::move(container));
        }
      });
}

// Arms the timer for the next look, if one is needed.
void SyncAudit::Impl::End(ListVerdict verdict) {
  looking = false;
  if (!synchronized_at.has_value()) {
    return;
  }
  if (std::exchange(look_again, false) || verdict == ListVerdict::kUnconfirmed) {
    LookAt(steady_clock::now() + options.soon);
  } else if (next < options.delays.size()) {
    LookAt(*synchronized_at + options.delays[next++]);
  } else if (verdict == ListVerdict::kContradicted || AnyListedIsOnRecord()) {
    LookAt(steady_clock::now() + options.period);
  }
}

bool SyncAudit::Impl::AnyListedIsOnRecord() const {
  const std::set<std::string> listed = parts.live.Listed();
  const auto now = parts.state.Load();
  return std::any_of(listed.begin(), listed.end(),
                     [&](const std::string& uid) { return now->FindPod(uid) != nullptr; });
}

}  // namespace qrm::manager
