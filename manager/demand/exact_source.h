// Takes a container's demand from its pod's spec, where a source knows it.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "api/base/io_context.h"
#include "manager/demand/demand_source.h"
#include "manager/demand/spec_source.h"

namespace qrm::manager {

/// Asks the sources in their order; a container that none of them knows is estimated. What is
/// known is answered at once; for what is not, all sources that can be asked are given time,
/// together at most `max_wait`, and the answer comes on the I/O loop.
///
/// A spec of another pod than the sandbox says (by namespace and name) is not used.
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

  /// Whoever still waits gets no answer. Threads: the I/O loop, or when it has ended.
  void Stop();

  void Find(const RuntimePod& pod, const RuntimeContainer& container, Deadline deadline,
            Found found) override;
  void Prefetch(const RuntimePod& pod) override;
  std::optional<placement::ContainerDemand> FindNow(
      const placement::ContainerDemand& recorded) const override;
  uint64_t revision() const override;
  void LookAgain(const std::string& pod_uid) override;

 private:
  struct Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
