// What is kept of a draft when it is decided, in the record and for its explanation, and what is
// not.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "manager/admission/draft.h"
#include "manager/demand/demand_source.h"

namespace qrm::manager {

/// The amounts that the container was served with: of what could not change, the former ones.
std::map<std::string, double> ServedRequests(const Draft& draft);

/// Takes out of its allocations what the running container of `draft` was not made with and cannot
/// get any more: nobody would find it there, and others may have it. What a compute driver gave
/// stays, for its CPUs can be had, and its variables by the next instance; the explanation tells.
void LeaveOutWhatCameTooLate(Draft& draft);

/// By container the plugins that gave what it cannot take any more; the log tells of each.
std::map<std::string, std::vector<std::string>> GivenTooLate(const std::vector<Draft>& drafts);

/// What a decision's document says of the container.
placement::ContainerDemand SubjectOf(const placement::ContainerDemand& demand);

}  // namespace qrm::manager
