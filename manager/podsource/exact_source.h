// The demand of a container by the spec of its pod, where anybody knows it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "manager/admission/pod_source.h"
#include "manager/podsource/spec_supplier.h"

namespace qrm::manager {

/// Asks the suppliers in their order; a container that none of them knows is estimated. What is
/// known is answered at once; for what is not, all suppliers that can be asked are waited for,
/// together at most `max_wait`.
///
/// A spec of another pod than the sandbox says (by namespace and name) is not used.
///
/// Threads: Find on the state loop, Prefetch any.
class ExactSource final : public PodSource {
 public:
  /// `suppliers` outlive the source.
  ExactSource(std::vector<SpecSupplier*> suppliers, CgroupEstimate estimate, PodKeys keys,
              std::chrono::milliseconds max_wait);

  StatusOr<ContainerDemand> Find(const RuntimePod& pod, const RuntimeContainer& container,
                                 Deadline deadline) override;
  void Prefetch(const RuntimePod& pod) override;

 private:
  std::optional<ContainerDemand> BySpec(const ContainerDemand& estimate, const PodSpecPtr& spec,
                                        const SpecSupplier& supplier) const;

  const std::vector<SpecSupplier*> suppliers_;
  CgroupEstimate estimate_;
  const std::string main_container_annotation_;
  const std::chrono::milliseconds max_wait_;
};

}  // namespace qrm::manager
