// What those who look at classes see, and what they may ask to change.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "manager/classes/class_choice.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::manager {

/// Another class for a container, or for a pod as a whole.
struct ClassChange {
  std::string pod;        ///< "name", "namespace/name" or a UID
  std::string container;  ///< empty for a pod-level type
  std::string type;
  std::string name;  ///< empty: none
};

/// What one type's provider has done and could not do.
struct ClassWork {
  uint64_t repairs = 0;                     ///< what others had changed and was put back
  std::vector<std::string> problems;        ///< who has not what the class promises, and why
  std::vector<sdk::ClassReading> readings;  ///< of the latest round
};

/// One type.
struct ClassTypeStatus {
  OfferedType offered;
  ClassWork work;
  std::map<std::string, uint64_t> users;  ///< class -> how many have it, as capacity counts
};

}  // namespace qrm::manager
