// Known specs first, then a short wait for the unknown, then the estimate.
#include "manager/demand/exact_source.h"

#include <algorithm>
#include <utility>

#include "api/base/log.h"

namespace qrm::manager {

ExactSource::ExactSource(std::vector<SpecSource*> sources, CgroupEstimate estimate, PodKeys keys,
                         std::chrono::milliseconds max_wait)
    : sources_(std::move(sources)),
      estimate_(std::move(estimate)),
      main_container_annotation_(std::move(keys.main_container_annotation)),
      max_wait_(max_wait) {}

StatusOr<ContainerDemand> ExactSource::Find(const RuntimePod& pod,
                                            const RuntimeContainer& container, Deadline deadline) {
  QRM_ASSIGN_OR_RETURN(ContainerDemand estimate, estimate_.Find(pod, container, deadline));
  for (const SpecSource* source : sources_) {
    if (auto exact = BySpec(estimate, source->Find(pod.uid), *source)) {
      return *std::move(exact);
    }
  }
  for (SpecSource* source : sources_) {
    source->Prefetch(pod.uid);
  }
  const Deadline end = std::min(deadline, DeadlineAfter(max_wait_));
  for (const SpecSource* source : sources_) {
    if (auto exact = BySpec(estimate, source->Await(pod.uid, end), *source)) {
      return *std::move(exact);
    }
  }
  return estimate;
}

void ExactSource::Prefetch(const RuntimePod& pod) {
  const bool known = std::any_of(sources_.begin(), sources_.end(), [&](const SpecSource* source) {
    return source->Find(pod.uid) != nullptr;
  });
  if (known || pod.uid.empty()) {
    return;
  }
  for (SpecSource* source : sources_) {
    source->Prefetch(pod.uid);
  }
}

std::optional<ContainerDemand> ExactSource::BySpec(const ContainerDemand& estimate,
                                                   const PodSpecPtr& spec,
                                                   const SpecSource& source) const {
  if (spec == nullptr) {
    return std::nullopt;
  }
  if (spec->pod_namespace != estimate.pod.pod_namespace || spec->name != estimate.pod.name) {
    log::Warning("spec of another pod not used",
                 {{"uid", estimate.pod.uid},
                  {"pod", estimate.pod.pod_namespace + "/" + estimate.pod.name},
                  {"spec", spec->pod_namespace + "/" + spec->name},
                  {"from", source.name()}});
    return std::nullopt;
  }
  const auto main = estimate.pod.annotations.find(main_container_annotation_);
  return Refine(estimate, *spec, main == estimate.pod.annotations.end() ? "" : main->second,
                source.name());
}

}  // namespace qrm::manager
