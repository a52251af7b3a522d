// The demand of a container by the spec of its pod, where anybody knows it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "manager/demand/demand_source.h"
#include "manager/demand/spec_source.h"

namespace qrm::manager {

/// Asks the sources in their order; a container that none of them knows is estimated. What is
/// known is answered at once; for what is not, all sources that can be asked are waited for,
/// together at most `max_wait`.
///
/// A spec of another pod than the sandbox says (by namespace and name) is not used.
///
/// Threads: Find on the state loop, Prefetch any.
class ExactSource final : public DemandSource {
 public:
  /// `sources` outlive the source.
  ExactSource(std::vector<SpecSource*> sources, CgroupEstimate estimate, PodKeys keys,
              std::chrono::milliseconds max_wait);

  StatusOr<ContainerDemand> Find(const RuntimePod& pod, const RuntimeContainer& container,
                                 Deadline deadline) override;
  void Prefetch(const RuntimePod& pod) override;

 private:
  std::optional<ContainerDemand> BySpec(const ContainerDemand& estimate, const PodSpecPtr& spec,
                                        const SpecSource& source) const;

  const std::vector<SpecSource*> sources_;
  CgroupEstimate estimate_;
  const std::string main_container_annotation_;
  const std::chrono::milliseconds max_wait_;
};

}  // namespace qrm::manager
