// Calls kubelet's List and GetAllocatableResources in parallel, and gives the result to all waiting
// callers.
#include "manager/podresources/kubelet_client.h"

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
  std::string allocatable;
  std::atomic<int> left = 2;
};

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
        // Older kubelets do not have it: then no allocatable devices are added.
        rpc::StartRaw(calls, channel, {.method = kGetAllocatable, .deadline = deadline},
                      [round, end](const StatusOr<Pieces>& answer) {
                        if (answer.ok()) {
                          round->allocatable = Joined(*answer);
                        }
                        end();
                      });
    QRM_CHECK(sent);  // `calls` is never stopped: each call ends by its deadline
  }

  void Finish(Round& round) {
    std::vector<std::unique_ptr<Asker>> ready;
    ViewPtr result;
    {
      const MutexLock lock(mutex);
      if (const Status accepted = round.list.ok() ? Accept(round) : round.list.status();
          !accepted.ok()) {
        Miss(MessageOf(accepted));
      }
      asked_at = std::chrono::steady_clock::now();
      asking = false;
      ready.swap(waiting);
      result = view;
    }
    for (const auto& asker : ready) {
      asker->Take(result);
    }
  }

  Status Accept(Round& round) QRM_REQUIRES(mutex) {
    if (!view->IsOf(*round.list, round.allocatable)) {
      QRM_ASSIGN_OR_RETURN(view,
                           KubeletView::Make(*std::move(round.list), std::move(round.allocatable)));
    }
    good_at = std::chrono::steady_clock::now();
    failing = false;
    return OkStatus();
  }

  void Miss(const std::string& reason) QRM_REQUIRES(mutex) {
    errors.Increment();
    if (!failing) {
      log::Warning("cannot get kubelet's devices",
                   {{"socket", options.socket_path}, {"error", reason}});
    }
    failing = true;
    if (std::chrono::steady_clock::now() - good_at > options.max_stale) {
      Forget();
    }
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
  SteadyTime good_at QRM_GUARDED_BY(mutex);
  bool failing QRM_GUARDED_BY(mutex) = false;
  bool asking QRM_GUARDED_BY(mutex) = false;
  std::vector<std::unique_ptr<Asker>> waiting QRM_GUARDED_BY(mutex);
};

KubeletClient::KubeletClient(KubeletClientOptions options, prometheus::Counter& errors)
    : state_(std::make_shared<State>(std::move(options), errors)) {}

void KubeletClient::Get(std::unique_ptr<Asker> asker) {
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
      state_->waiting.push_back(std::move(asker));
      ask = !std::exchange(state_->asking, true);
    }
  }
  if (known != nullptr) {
    asker->Take(known);
  } else if (ask) {
    state_->Ask();
  }
}

}  // namespace qrm::manager
