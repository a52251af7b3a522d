// The control API's answer about classes.
#pragma once

#include <vector>

#include "manager/classes/class_status.h"

namespace qrm::v1 {
class ListClassesResponse;
}  // namespace qrm::v1

namespace qrm::manager {

/// The types in their order, each with its classes in the order of their names.
v1::ListClassesResponse ClassesAnswer(const std::vector<ClassTypeStatus>& types);

}  // namespace qrm::manager
