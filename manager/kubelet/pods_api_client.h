// Follows the node's pods over kubelet's Pods API.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "api/base/io_context.h"
#include "manager/kubelet/cached_specs.h"
#include "manager/kubelet/kubelet_options.h"

namespace qrm::manager {

struct PodsApiOptions {
  std::string socket;
  std::chrono::milliseconds lookup_timeout =
      KubeletOptions().pod_spec_wait;            ///< of a call for one pod
  std::chrono::milliseconds first_backoff{100};  ///< doubles with each failure
  std::chrono::milliseconds most_backoff{5000};
  SpecCache::Gone on_gone = [](const std::string&) {};
};

/// A watch that is restarted whenever it ends. The specs stay while kubelet does not respond; the
/// next initial sync drops those of pods that are gone. Pods that the watch has not reported are
/// looked up by their UID. Messages that are not pods are skipped and logged once per watch; a
/// message of more than 16 MiB ends it.
///
/// Threads: any.
/// Source: v1alpha1.Pods of Kubernetes 1.36 and 1.37.
class PodsApiClient final : public CachedSpecs {
 public:
  /// `io` outlives the client.
  PodsApiClient(boost::asio::io_context& io, PodsApiOptions options);
  ~PodsApiClient() override;
  PodsApiClient(const PodsApiClient&) = delete;
  PodsApiClient& operator=(const PodsApiClient&) = delete;

  void Start();
  /// Ends the watch and waits for calls under way. Threads: the I/O loop, or when it has ended.
  void Stop();

  /// True from the end of an initial sync to the end of its watch.
  bool synced() const;
  /// Why kubelet does not answer, which it did before; empty: it answers, or never did.
  std::string lost() const;

  std::string name() const override { return "pods-api"; }
  void Prefetch(const std::string& uid) override;

 private:
  SpecCache& cache() const override;

  struct Impl;
  class Watch;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
