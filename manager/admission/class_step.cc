// Asks manager/classes on behalf of one draft.
#include "manager/admission/class_step.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/log.h"
#include "manager/classes/class_book.h"
#include "plugins/config/class_request.h"

namespace qrm::manager {

namespace {

/// Whether the pod of `demand` may ask for a class; both arguments outlive the result.
ClassPermission ClassPermissionOf(const placement::ContainerDemand& demand,
                                  const placement::AdmissionOptions& options) {
  return [&](const std::string& name) {
    return options.permissions.Allows(demand.pod.pod_namespace,
                                      {.feature = placement::Feature::kClass, .name = name});
  };
}

}  // namespace

Status ClassStep::Choose(Draft& draft) const {
  if (book_ == nullptr || book_->empty()) {
    return OkStatus();
  }
  if (draft.known != nullptr) {
    for (const auto& [type, name] : draft.known->classes) {
      draft.explanation.classes[type] = {name, "its record"};
    }
    draft.class_options = Resolve(draft.known->classes);
    return OkStatus();
  }
  return ChooseFor({}, "", draft);
}

Status ClassStep::ChooseByPlace(Draft& draft) const {
  if (book_ == nullptr || book_->empty() || draft.known != nullptr) {
    return OkStatus();
  }
  StringMap defaults;
  std::vector<std::string> by;
  for (const auto& [resource, allocation] : draft.explanation.allocations) {
    if (!allocation->class_defaults.empty()) {
      defaults.insert(allocation->class_defaults.begin(), allocation->class_defaults.end());
      by.push_back(fmt::format("{}'s default of {}", resource, allocation->decided_by));
    }
  }
  return defaults.empty() ? OkStatus()
                          : ChooseFor(defaults, fmt::format("{}", fmt::join(by, ", ")), draft);
}

Status ClassStep::CheckContainers(const placement::ContainerDemand& demand,
                                  const std::vector<placement::ContainerDemand>& others) const {
  if (book_ == nullptr || book_->empty() || demand.source == kEstimate || !demand.has_all_others) {
    return OkStatus();
  }
  std::vector<std::string> names = {demand.container};
  for (const placement::ContainerDemand& other : others) {
    names.push_back(other.container);
  }
  return config::CheckClassContainers(demand.pod.annotations, names);
}

Status ClassStep::ChooseFor(const StringMap& defaults, const std::string& by, Draft& draft) const {
  Explanation& explanation = draft.explanation;
  const placement::ContainerDemand& demand = draft.demand;
  const ClassAsker asker{.pod = demand.pod,
                         .container = demand.container,
                         .type = demand.type,
                         .restartable_init = demand.restartable_init,
                         .runs = explanation.after_the_fact,
                         .is_skipped = draft.is_skipped,
                         .defaults = defaults,
                         .defaults_by = by};
  QRM_ASSIGN_OR_RETURN(explanation.classes, ChooseClasses(*book_->Types(), asker, *draft.state,
                                                          ClassPermissionOf(demand, options_)));
  QRM_ASSIGN_OR_RETURN(draft.class_options, book_->Resolve(ToRecord(explanation.classes)));
  return OkStatus();
}

sdk::ClassOptions ClassStep::Resolve(const StringMap& classes) const {
  if (book_ == nullptr || classes.empty()) {
    return {};
  }
  StatusOr<sdk::ClassOptions> resolved = book_->Resolve(classes);
  if (!resolved.ok()) {
    log::Warning("QoS classes not set at creation", {{"error", MessageOf(resolved.status())}});
  }
  return std::move(resolved).value_or(sdk::ClassOptions());
}

}  // namespace qrm::manager
