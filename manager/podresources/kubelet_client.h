// Queries kubelet's own pod-resources socket, within its rate limit.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/base/durations.h"
#include "manager/podresources/kubelet_view.h"

namespace prometheus {
class Counter;
}

namespace qrm::manager {

struct KubeletClientOptions {
  std::string socket_path;  ///< empty: kubelet is not queried
  std::chrono::milliseconds timeout{1000};
  /// How long an answer serves calls. Source: kubelet answers 100 calls a second, of all its
  /// clients together.
  std::chrono::milliseconds max_age{500};
  /// How long the last good answer of each call is used while kubelet fails it.
  std::chrono::milliseconds keep{300'000};
};

/// Threads: any.
class KubeletClient {
 public:
  using ViewPtr = std::shared_ptr<const KubeletView>;

  /// `errors` outlives the client and the last call of `done`.
  KubeletClient(KubeletClientOptions options, prometheus::Counter& errors);

  using Take = std::function<void(const ViewPtr& view)>;

  /// Gives `take` kubelet's view, never null: at once on this thread if it is known or there is no
  /// kubelet, else on a thread of gRPC within the timeout. Equal answers are the same view. Calls
  /// during a query share its answer.
  void Get(Take take);

  /// How old the used answer is while kubelet fails a call; 0 while it answers. Absent until it has
  /// answered. Units: seconds.
  std::optional<double> Age() const;

 private:
  struct State;  // outlives the client while kubelet is being asked
  std::shared_ptr<State> state_;
};

}  // namespace qrm::manager
