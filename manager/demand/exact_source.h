// Finds a container's demand in its pod's spec, if a source knows the spec.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "api/base/io_context.h"
#include "manager/demand/demand_source.h"
#include "manager/demand/spec_source.h"

namespace qrm::manager {

/// Asks the sources in order; a container that none of them knows is estimated. If a source knows
/// the pod, the answer comes at once. Otherwise all sources that can look get up to `max_wait`
/// together, and the answer comes on the I/O loop.
///
/// A spec whose namespace or name differs from the sandbox's is not used.
///
/// Threads: any.
class ExactSource final : public DemandSource {
 public:
  /// `io` and `sources` outlive the source.
  ExactSource(boost::asio::io_context& io, std::vector<SpecSource*> sources,
              CgroupEstimate estimate, std::chrono::milliseconds max_wait);
  ~ExactSource() override;
  ExactSource(const ExactSource&) = delete;
  ExactSource& operator=(const ExactSource&) = delete;

  /// Waiting calls get no answer. Threads: the I/O loop, or any after it has ended.
  void Stop();

  void Find(const RuntimePod& pod, const RuntimeContainer& container, Deadline deadline,
            Found found) override;
  void Prefetch(const RuntimePod& pod) override;
  std::optional<ContainerDemand> FindNow(const ContainerDemand& recorded) const override;
  uint64_t revision() const override;
  void LookAgain(const std::string& pod_uid) override;

 private:
  struct Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
