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
#include "api/proto/podresources/v1/api.grpc.pb.h"
#include "api/rpc/channel.h"
#include "api/rpc/unary_call.h"

namespace qrm::manager {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;
using Stub = ::v1::PodResourcesLister::Stub;

constexpr std::chrono::milliseconds kReconnect{1000};

/// Both calls of a round; the one that ends last ends the round.
struct Round {
  StatusOr<::v1::ListPodResourcesResponse> list;
  ::v1::AllocatableResourcesResponse allocatable;
  std::atomic<int> left = 2;
};

std::unique_ptr<Stub> Connect(const std::string& path) {
  return ::v1::PodResourcesLister::NewStub(
      rpc::UnixChannel(path, {.first_backoff = kReconnect, .most_backoff = kReconnect}));
}

}  // namespace

struct KubeletClient::State : std::enable_shared_from_this<State> {
  State(KubeletClientOptions client_options, prometheus::Counter& error_counter)
      : options(std::move(client_options)),
        errors(error_counter),
        stub(options.socket_path.empty() ? nullptr : Connect(options.socket_path)) {}

  bool IsThere() const { return stub != nullptr && access(options.socket_path.c_str(), F_OK) == 0; }

  void Ask() {
    using Async = ::v1::PodResourcesLister::StubInterface::async_interface;
    auto round = std::make_shared<Round>();
    const rpc::CallEnd limit{calls, DeadlineAfter(options.timeout)};
    const auto end = [self = shared_from_this(), round] {
      if (--round->left == 0) {
        self->Finish(*round);
      }
    };
    const bool sent =
        rpc::StartUnary(limit, stub->async(), &Async::List, {},
                        [round, end](StatusOr<::v1::ListPodResourcesResponse> answer) {
                          round->list = std::move(answer);
                          end();
                        }) &&
        // Older kubelets do not have it: then no allocatable devices are added.
        rpc::StartUnary(limit, stub->async(), &Async::GetAllocatableResources, {},
                        [round, end](StatusOr<::v1::AllocatableResourcesResponse> answer) {
                          if (answer.ok()) {
                            round->allocatable = *std::move(answer);
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
      if (round.list.ok()) {
        Accept(round);
      } else {
        Miss(MessageOf(round.list.status()));
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

  void Accept(Round& round) QRM_REQUIRES(mutex) {
    std::string bytes = round.list->SerializeAsString() + round.allocatable.SerializeAsString();
    if (bytes != view_bytes) {
      view_bytes = std::move(bytes);
      view =
          std::make_shared<const KubeletView>(*std::move(round.list), std::move(round.allocatable));
    }
    good_at = std::chrono::steady_clock::now();
    failing = false;
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
    if (!view_bytes.empty()) {
      view_bytes.clear();
      view = std::make_shared<const KubeletView>();
    }
  }

  const KubeletClientOptions options;
  prometheus::Counter& errors;
  const std::unique_ptr<Stub> stub;
  const std::shared_ptr<rpc::CallsInFlight> calls = std::make_shared<rpc::CallsInFlight>();
  Mutex mutex;
  ViewPtr view QRM_GUARDED_BY(mutex) = std::make_shared<const KubeletView>();
  std::string view_bytes QRM_GUARDED_BY(mutex);
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
