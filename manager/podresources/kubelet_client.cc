// Calls kubelet's List and GetAllocatableResources in parallel, and gives the result to all waiting
// callers.
#include "manager/podresources/kubelet_client.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <unistd.h>

#include <grpcpp/grpcpp.h>
#include <prometheus/counter.h>

#include "api/base/check.h"
#include "api/base/clock.h"
#include "api/base/log.h"
#include "api/base/mutex.h"
#include "api/base/pieces.h"
#include "api/rpc/channel.h"
#include "api/rpc/unary_call.h"

namespace qrm::manager {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr std::chrono::milliseconds kReconnect{1000};

constexpr char kList[] = "/v1.PodResourcesLister/List";
constexpr char kGetAllocatable[] = "/v1.PodResourcesLister/GetAllocatableResources";

/// Both calls of a round, with their serialized answers; the one that ends last ends the round.
struct Round {
  StatusOr<std::string> list;
  StatusOr<std::string> allocatable;
  std::atomic<int> left = 2;
};

/// Older kubelets do not have the call, and others have it switched off: no devices then.
bool IsWithoutTheCall(const Status& status) {
  return status.code() == StatusCode::kUnimplemented ||
         MessageOf(status).find("GetAllocatableResources disabled") != std::string::npos;
}

std::shared_ptr<grpc::Channel> Connect(const std::string& path) {
  return rpc::UnixChannel(path, {.first_backoff = kReconnect, .most_backoff = kReconnect});
}

}  // namespace

struct KubeletClient::State : std::enable_shared_from_this<State> {
  State(KubeletClientOptions client_options, prometheus::Counter& error_counter)
      : options(std::move(client_options)),
        errors(error_counter),
        channel(options.socket_path.empty() ? nullptr : Connect(options.socket_path)) {}

  bool IsThere() const {
    return channel != nullptr && access(options.socket_path.c_str(), F_OK) == 0;
  }

  void Ask() {
    auto round = std::make_shared<Round>();
    const Deadline deadline = DeadlineAfter(options.timeout);
    const auto end = [self = shared_from_this(), round] {
      if (--round->left == 0) {
        self->Finish(*round);
      }
    };
    const bool sent =
        rpc::StartRaw(calls, channel, {.method = kList, .deadline = deadline},
                      [round, end](const StatusOr<Pieces>& answer) {
                        round->list =
                            answer.ok() ? Joined(*answer) : StatusOr<std::string>(answer.status());
                        end();
                      }) &&
        rpc::StartRaw(calls, channel, {.method = kGetAllocatable, .deadline = deadline},
                      [round, end](const StatusOr<Pieces>& answer) {
                        round->allocatable = answer.ok() ? Joined(*answer)
                                             : IsWithoutTheCall(answer.status())
                                                 ? StatusOr<std::string>("")
                                                 : answer.status();
                        end();
                      });
    QRM_CHECK(sent);  // `calls` is never stopped: each call ends by its deadline
  }

  void Finish(Round& round) {
    std::vector<Take> ready;
    ViewPtr result;
    {
      const MutexLock lock(mutex);
      Note(Accept(round));
      asked_at = std::chrono::steady_clock::now();
      asking = false;
      ready.swap(waiting);
      result = view;
    }
    for (const Take& take : ready) {
      take(result);
    }
  }

  /// Takes what kubelet answered, and what it answered before to a call that fails now. Returns why
  /// a call failed.
  Status Accept(Round& round) QRM_REQUIRES(mutex) {
    const auto now = std::chrono::steady_clock::now();
    if (!round.list.ok()) {
      if (!IsUsable(list_at, now)) {
        Forget();
      }
      return round.list.status();
    }
    Status failed = round.allocatable.status();
    if (!failed.ok()) {
      round.allocatable = IsUsable(allocatable_at, now) ? view->allocatable() : std::string();
    }
    if (!view->IsOf(*round.list, *round.allocatable)) {
      QRM_ASSIGN_OR_RETURN(
          view, KubeletView::Make(*std::move(round.list), *std::move(round.allocatable)));
    }
    list_at = now;
    allocatable_at = failed.ok() ? now : allocatable_at;
    return failed;
  }

  bool IsUsable(const std::optional<SteadyTime>& given_at, SteadyTime now) const {
    return given_at.has_value() && now - *given_at <= options.keep;
  }

  void Note(const Status& accepted) QRM_REQUIRES(mutex) {
    if (!accepted.ok()) {
      errors.Increment();
      if (!failing) {
        log::Warning("cannot get kubelet's devices",
                     {{"socket", options.socket_path}, {"error", MessageOf(accepted)}});
      }
    }
    failing = !accepted.ok();
  }

  void Forget() QRM_REQUIRES(mutex) {
    if (!view->IsOf("", "")) {
      view = std::make_shared<const KubeletView>();
    }
  }

  const KubeletClientOptions options;
  prometheus::Counter& errors;
  const std::shared_ptr<grpc::Channel> channel;  // null: kubelet is not queried
  const std::shared_ptr<rpc::CallsInFlight> calls = std::make_shared<rpc::CallsInFlight>();
  Mutex mutex;
  ViewPtr view QRM_GUARDED_BY(mutex) = std::make_shared<const KubeletView>();
  std::optional<SteadyTime> asked_at QRM_GUARDED_BY(mutex);
  std::optional<SteadyTime> list_at QRM_GUARDED_BY(mutex);  // of the used answers
  std::optional<SteadyTime> allocatable_at QRM_GUARDED_BY(mutex);
  bool failing QRM_GUARDED_BY(mutex) = false;
  bool asking QRM_GUARDED_BY(mutex) = false;
  std::vector<Take> waiting QRM_GUARDED_BY(mutex);
};

KubeletClient::KubeletClient(KubeletClientOptions options, prometheus::Counter& errors)
    : state_(std::make_shared<State>(std::move(options), errors)) {}

void KubeletClient::Get(Take take) {
  const bool is_there = state_->IsThere();
  ViewPtr known;
  bool ask = false;
  {
    const MutexLock lock(state_->mutex);
    if (!is_there) {
      state_->Forget();
    }
    const auto now = std::chrono::steady_clock::now();
    const auto asked_at = state_->asked_at;
    const bool fresh = asked_at.has_value() && now - *asked_at < state_->options.max_age;
    if (!is_there || fresh) {
      known = state_->view;
    } else {
      state_->waiting.push_back(std::move(take));
      ask = !std::exchange(state_->asking, true);
    }
  }
  if (known != nullptr) {
    take(known);  // NOLINT(bugprone-use-after-move): it waits only if nothing is known
  } else if (ask) {
    state_->Ask();
  }
}

std::optional<double> KubeletClient::Age() const {
  const MutexLock lock(state_->mutex);
  const auto& list_at = state_->list_at;
  const auto& allocatable_at = state_->allocatable_at;
  if (!list_at.has_value() || !allocatable_at.has_value()) {
    return std::nullopt;
  }
  const std::chrono::duration<double> age =
      std::chrono::steady_clock::now() - std::min(*list_at, *allocatable_at);
  return state_->failing ? age.count() : 0;
}

}  // namespace qrm::manager
