// Chooses one of several processes by a Lease of the API server.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "api/base/io_context.h"
#include "cluster/api_client.h"

namespace qrm::cluster {

/// Holds or waits for a Lease. Whether another's has run out is judged by our own clock since the
/// record was seen to change, never by the times in it; so also for one that was deleted meanwhile.
/// A lease is not a fence: the leader stops when it could not renew in time or sees another holder,
/// but requests that it sent before may still arrive.
///
/// Threads: that of `io`; Leads() any.
/// Source: Kubernetes, coordination/v1 Lease; the rules of client-go's leader election.
class LeaseElection {
 public:
  struct Options {
    std::string lease_namespace;
    std::string name;
    std::string identity;  ///< of this process and no other, ever
    std::chrono::milliseconds duration{15'000};
    std::chrono::milliseconds renew_deadline{10'000};  ///< less than duration
    std::chrono::milliseconds retry{2'000};
  };
  /// Runs when we begin to lead, before Leads() returns true.
  using OnLeading = std::function<void()>;

  /// The references outlive it.
  LeaseElection(boost::asio::io_context& io, ApiClient& client, Options options,
                OnLeading on_leading);
  /// Leaves the lease as it is: the next one waits until it has run out.
  ~LeaseElection();
  LeaseElection(const LeaseElection&) = delete;
  LeaseElection& operator=(const LeaseElection&) = delete;

  void Start();
  /// True until `renew_deadline` after the last renewal was sent that was taken.
  bool Leads() const;
  /// Gives the lease up, so that others need not wait; `done` runs when that was tried.
  void Release(const std::function<void()>& done);

 private:
  struct Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::cluster
