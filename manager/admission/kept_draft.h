// Selects what is kept of a decided draft, in the record and for its explanation.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "manager/admission/draft.h"
#include "manager/demand/demand_source.h"

namespace qrm::manager {

/// The requests that the allocations are for: the former amount where it could not change.
std::map<std::string, double> ServedRequests(const Draft& draft);

/// Removes from its allocations what the running container of `draft` was created without and can
/// no longer get, so that other containers can have it. A compute driver's allocation stays: its
/// CPUs can be applied now, and its variables to the next instance, as the explanation says.
void LeaveOutWhatCameTooLate(Draft& draft);

/// Container -> plugins that gave what it can no longer take; each is logged.
std::map<std::string, std::vector<std::string>> GivenTooLate(const std::vector<Draft>& drafts);

/// The parts of `demand` that a decision's document contains.
ContainerDemand SubjectOf(const ContainerDemand& demand);

}  // namespace qrm::manager
