// Known specs first, then a short wait for the unknown, then the estimate.
#include "manager/podsource/exact_source.h"

#include <algorithm>
#include <utility>

#include "api/base/log.h"

namespace qrm::manager {

ExactSource::ExactSource(std::vector<SpecSupplier*> suppliers, CgroupEstimate estimate,
                         PodKeys keys, std::chrono::milliseconds max_wait)
    : suppliers_(std::move(suppliers)),
      estimate_(std::move(estimate)),
      main_container_annotation_(std::move(keys.main_container_annotation)),
      max_wait_(max_wait) {}

StatusOr<ContainerDemand> ExactSource::Find(const RuntimePod& pod,
                                            const RuntimeContainer& container, Deadline deadline) {
  QRM_ASSIGN_OR_RETURN(ContainerDemand estimate, estimate_.Find(pod, container, deadline));
  for (const SpecSupplier* supplier : suppliers_) {
    if (auto exact = BySpec(estimate, supplier->Find(pod.uid), *supplier)) {
      return *std::move(exact);
    }
  }
  for (SpecSupplier* supplier : suppliers_) {
    supplier->Prefetch(pod.uid);
  }
  const Deadline end = std::min(deadline, DeadlineAfter(max_wait_));
  for (const SpecSupplier* supplier : suppliers_) {
    if (auto exact = BySpec(estimate, supplier->Await(pod.uid, end), *supplier)) {
      return *std::move(exact);
    }
  }
  return estimate;
}

void ExactSource::Prefetch(const RuntimePod& pod) {
  const bool known =
      std::any_of(suppliers_.begin(), suppliers_.end(),
                  [&](const SpecSupplier* supplier) { return supplier->Find(pod.uid) != nullptr; });
  if (known || pod.uid.empty()) {
    return;
  }
  for (SpecSupplier* supplier : suppliers_) {
    supplier->Prefetch(pod.uid);
  }
}

std::optional<ContainerDemand> ExactSource::BySpec(const ContainerDemand& estimate,
                                                   const PodSpecPtr& spec,
                                                   const SpecSupplier& supplier) const {
  if (spec == nullptr) {
    return std::nullopt;
  }
  if (spec->pod_namespace != estimate.pod.pod_namespace || spec->name != estimate.pod.name) {
    log::Warning("spec of another pod not used",
                 {{"uid", estimate.pod.uid},
                  {"pod", estimate.pod.pod_namespace + "/" + estimate.pod.name},
                  {"spec", spec->pod_namespace + "/" + spec->name},
                  {"from", supplier.name()}});
    return std::nullopt;
  }
  const auto main = estimate.pod.annotations.find(main_container_annotation_);
  return Refine(estimate, *spec, main == estimate.pod.annotations.end() ? "" : main->second,
                supplier.name());
}

}  // namespace qrm::manager
