// Asks kubelet's own pod-resources socket, rarely enough for its rate limit.
#pragma once

#include <memory>
#include <string>

#include "api/base/durations.h"
#include "manager/podresources/kubelet_view.h"

namespace prometheus {
class Counter;
}

namespace qrm::manager {

struct KubeletClientOptions {
  std::string socket_path;  ///< empty: there is no kubelet to ask
  std::chrono::milliseconds timeout{1000};
  /// An answer serves calls for that long. Source: kubelet answers 100 calls a second, of all its
  /// clients together.
  std::chrono::milliseconds max_age{500};
  /// The last good answer stands in for a kubelet that fails, for that long.
  std::chrono::seconds max_stale{60};
};

/// Threads: any.
class KubeletClient {
 public:
  using ViewPtr = std::shared_ptr<const KubeletView>;

  /// `errors` outlives the client and the last call of `done`.
  KubeletClient(KubeletClientOptions options, prometheus::Counter& errors);

  /// Who asks.
  struct Asker {
    virtual ~Asker() = default;
    virtual void Take(const ViewPtr& view) = 0;
  };

  /// Gives `asker` what kubelet says, never null: at once on this thread when it is known or there
  /// is no kubelet, else on a thread of gRPC within the timeout. Equal answers are the same view.
  /// Calls that come while kubelet is being asked share its answer.
  void Get(std::unique_ptr<Asker> asker);

 private:
  struct State;  // outlives the client while kubelet is being asked
  std::shared_ptr<State> state_;
};

}  // namespace qrm::manager
