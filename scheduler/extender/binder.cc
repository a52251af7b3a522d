// Each binding is a flight on the I/O loop, which several callers may wait for.
#include "scheduler/extender/binder.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_json.h"
#include "api/base/log.h"
#include "cluster/requests.h"
#include "scheduler/cache/read_objects.h"

namespace qrm::scheduler {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kRequestTimeout{5};

/// A caller that waits for the outcome, or has stopped waiting.
struct Waiter {
  Binder::Done done;
  std::unique_ptr<asio::steady_timer> timer;
};

struct Flight {
  BindQuestion question;
  StringMap decision;
  std::vector<std::shared_ptr<Waiter>> waiters;
  milliseconds wait{0};
  bool lost = false;  ///< one of its requests got no answer: it may be carried out yet
};
using FlightPtr = std::shared_ptr<Flight>;

void Tell(Waiter& waiter, const Status& outcome) {
  waiter.timer->cancel();
  if (const Binder::Done done = std::exchange(waiter.done, nullptr)) {
    done(outcome);
  }
}

/// The server will say the same to the same binding, whenever it is asked.
bool IsRefusal(const Status& status, bool lost) {
  switch (status.code()) {
    case StatusCode::kNotFound:
      return true;
    case StatusCode::kInvalidArgument:
    case StatusCode::kPermissionDenied:
    case StatusCode::kUnauthenticated:
    case StatusCode::kFailedPrecondition:
      return !lost;
    default:
      return false;
  }
}

}  // namespace

struct Binder::Impl final : std::enable_shared_from_this<Impl> {
  Impl(const Peers& peers, MayBind may, const Options& binder_options)
      : io(peers.io),
        client(peers.client),
        cache(peers.cache),
        may_bind(std::move(may)),
        options(binder_options) {}

  void Begin(const BindQuestion& question, const StringMap& decision, Done done) {
    FlightPtr& flight = flights[question.uid];
    const bool first = flight == nullptr;
    if (first) {
      ++in_flight;
      flight = std::make_shared<Flight>(Flight{.question = question, .decision = decision});
    }
    const auto waiter = std::make_shared<Waiter>(
        Waiter{std::move(done), std::make_unique<asio::steady_timer>(io, options.answer_within)});
    flight->waiters.push_back(waiter);
    waiter->timer->async_wait([waiter, question](const boost::system::error_code& error) {
      if (!error) {
        Tell(*waiter, Errorf(StatusCode::kDeadlineExceeded,
                             "binding pod {}/{} to node {}: the API server has not answered yet; "
                             "it is asked again until it does",
                             question.pod_namespace, question.pod, question.node));
      }
    });
    if (first) {
      Post(FlightPtr(flight));  // the map's own may go meanwhile
    }
  }

  template <typename Next>
  void Call(cluster::ApiRequest request, const Next& next) {
    request.timeout = kRequestTimeout;
    client.Call(std::move(request), cluster::WhileItRuns(weak_from_this(), next));
  }

  void Post(const FlightPtr& flight) {
    if (const Status may = may_bind(); !may.ok()) {
      Hold(flight, may);
      return;
    }
    const BindQuestion& question = flight->question;
    Call(cluster::BindRequest({.pod_namespace = question.pod_namespace,
                               .pod = question.pod,
                               .uid = question.uid,
                               .node = question.node,
                               .annotations = flight->decision}),
         [flight](Impl& self, const StatusOr<std::string>& body) {
           self.Take(flight, body.status());
         });
  }

  void Take(const FlightPtr& flight, const Status& status) {
    if (status.ok()) {
      Accept(flight);
    } else if (status.code() == StatusCode::kAborted) {
      Look(flight, status);
    } else if (IsRefusal(status, flight->lost)) {
      Release(flight, status);
    } else {
      flight->lost = true;
      Repeat(flight);
    }
  }

  /// 409: the pod is bound, perhaps by a request of ours whose answer was lost; or it never will
  /// be.
  void Look(const FlightPtr& flight, const Status& refusal) {
    const BindQuestion& question = flight->question;
    Call({.path = cluster::PodPath(question.pod_namespace, question.pod)},
         [flight, refusal](Impl& self, const StatusOr<std::string>& body) {
           if (!body.ok() && body.status().code() != StatusCode::kNotFound) {
             self.Repeat(flight);
             return;
           }
           const auto pod = ParseJson(body.value_or("")).value_or(nlohmann::json());
           const bool ours = pod.is_object() &&
                             TextAt(pod, "/metadata/uid") == flight->question.uid &&
                             TextAt(pod, "/spec/nodeName") == flight->question.node;
           if (ours) {
             self.Accept(flight);
           } else {
             self.Release(flight, refusal);
           }
         });
  }

  /// A binding that was not sent cannot arrive. A binding that was sent can: the pod stays counted,
  /// its waiters get an answer, and when we may bind again, the server is asked for the outcome.
  void Hold(const FlightPtr& flight, const Status& why) {
    if (!flight->lost) {
      Release(flight, why);
      return;
    }
    for (const std::shared_ptr<Waiter>& waiter : std::exchange(flight->waiters, {})) {
      Tell(*waiter, why);
    }
    Repeat(flight);
  }

  void Accept(const FlightPtr& flight) {
    cache.Post([uid = flight->question.uid](ClusterCache& now) { now.Accept(uid); });
    accepted.emplace_back(steady_clock::now(), flight->question.uid);
    End(flight, OkStatus());
  }

  void Release(const FlightPtr& flight, const Status& why) {
    const BindQuestion& question = flight->question;
    cache.Post(
        [uid = question.uid, node = question.node](ClusterCache& now) { now.Release(uid, node); });
    log::Warning("binding rejected", {{"pod", question.pod_namespace + "/" + question.pod},
                                      {"node", question.node},
                                      {"error", MessageOf(why)}});
    End(flight, why);
  }

  void Repeat(const FlightPtr& flight) {
    flight->wait = flight->wait == milliseconds(0)
                       ? options.first_repeat
                       : std::min(2 * flight->wait, options.most_repeat);
    const auto timer = std::make_shared<asio::steady_timer>(io, flight->wait);
    timer->async_wait(cluster::WhileItRuns(
        weak_from_this(),
        [flight, timer](Impl& self, const boost::system::error_code&) { self.Post(flight); }));
  }

  void End(const FlightPtr& flight, const Status& outcome) {
    flights.erase(flight->question.uid);
    --in_flight;
    for (const std::shared_ptr<Waiter>& waiter : flight->waiters) {
      Tell(*waiter, outcome);
    }
  }

  asio::io_context& io;
  cluster::ApiClient& client;
  SchedulerCache& cache;
  const MayBind may_bind;
  const Options options;
  std::map<std::string, FlightPtr> flights;  // by UID
  /// When, and the UID, until TakeUnconfirmed has asked about it.
  std::deque<std::pair<steady_clock::time_point, std::string>> accepted;
  std::atomic<int> in_flight{0};
  bool stopped = false;
};

Binder::Binder(const Peers& peers, MayBind may_bind, const Options& options)
    : impl_(std::make_shared<Impl>(peers, std::move(may_bind), options)) {}

Binder::~Binder() {
  impl_->stopped = true;
}

bool Binder::TakeUnconfirmed(std::chrono::milliseconds age) {
  std::vector<std::string> uids;
  auto& accepted = impl_->accepted;
  for (const auto before = steady_clock::now() - age;
       !accepted.empty() && accepted.front().first < before; accepted.pop_front()) {
    uids.push_back(std::move(accepted.front().second));
  }
  bool unconfirmed = false;
  if (!uids.empty()) {
    impl_->cache.Run([&](const ClusterCache& now) {
      unconfirmed = std::any_of(uids.begin(), uids.end(), [&](const std::string& uid) {
        return !now.AssumedOn(uid).empty();
      });
    });
  }
  return unconfirmed;
}

int Binder::in_flight() const {
  return impl_->in_flight;
}

void Binder::Bind(const BindQuestion& question, Done done) {
  const StatusOr<StringMap> decision = impl_->cache.Assume(question.uid, question.node);
  if (!decision.ok()) {
    done(decision.status());
    return;
  }
  asio::post(impl_->io,
             [impl = impl_, question, decision = *decision, done = std::move(done)]() mutable {
               impl->Begin(question, decision, std::move(done));
             });
}

}  // namespace qrm::scheduler
