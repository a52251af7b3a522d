// Binds pods: decides, counts and asks the API server, until it says yes or no.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "cluster/api_client.h"
#include "scheduler/cache/scheduler_cache.h"
#include "scheduler/extender/messages.h"

namespace qrm::scheduler {

/// A pod that is being bound counts on its node, from a last check against the newest state on,
/// until the API server has rejected the binding for good. A lost answer is neither yes nor no: the
/// same binding is sent again, also after its caller has gone, and after a time in which we might
/// not bind.
///
/// Threads: Bind any; destroyed on that of `io`.
class Binder {
 public:
  struct Options {
    std::chrono::milliseconds answer_within{4'000};  ///< its caller then gets kDeadlineExceeded
    std::chrono::milliseconds first_repeat{200};
    std::chrono::milliseconds most_repeat{5'000};
  };
  using Done = std::function<void(const Status&)>;
  /// Whether we may bind at all. Asked on the loop, before each request.
  using MayBind = std::function<Status()>;

  /// All outlive it.
  struct Peers {
    boost::asio::io_context& io;
    cluster::ApiClient& client;
    SchedulerCache& cache;
  };
  Binder(const Peers& peers, MayBind may_bind, const Options& options);
  /// No callback runs afterwards; pods that are being bound stay counted.
  ~Binder();
  Binder(const Binder&) = delete;
  Binder& operator=(const Binder&) = delete;

  /// `done` runs once: OK when the pod is bound to the node, with what was decided written on it.
  /// Errors: those of ClusterCache::Assume, and what the API server says. Waits for the cache's
  /// writer.
  void Bind(const BindQuestion& question, Done done);

  /// Whether a pod whose binding was accepted longer than `age` ago is not shown as bound yet: the
  /// server may have been restored from before it. Reports each binding once. Threads: that of
  /// `io`; waits for the cache's writer.
  bool TakeUnconfirmed(std::chrono::milliseconds age);

  /// Pods that are being bound. Threads: any.
  int in_flight() const;

 private:
  struct Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::scheduler
