// The status of QoS classes for observers, and their requests to change a class.
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
  std::string by;    ///< who asked for it: "uid 0, pid 4711"
};

/// The results of one type's provider.
struct ClassWork {
  uint64_t repairs = 0;                     ///< corrected drifts
  std::vector<std::string> problems;        ///< containers without all values of their class, why
  std::vector<sdk::ClassReading> readings;  ///< of the latest round
};

/// One type.
struct ClassTypeStatus {
  OfferedType offered;
  ClassWork work;
  std::map<std::string, uint64_t> users;  ///< class -> users, counted as capacity does
};

}  // namespace qrm::manager
