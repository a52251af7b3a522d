// What is kept of a draft when it is decided: in the record, and for its explanation.
#pragma once

#include <map>
#include <string>

#include "manager/admission/draft.h"
#include "manager/demand/demand_source.h"

namespace qrm::manager {

/// The amounts that the container was served with: of what could not change, the former ones.
std::map<std::string, double> ServedRequests(const Draft& draft);

/// What a decision's document says of the container.
ContainerDemand SubjectOf(const ContainerDemand& demand);

}  // namespace qrm::manager
