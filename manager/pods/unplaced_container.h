// A running container without an allocation, as operators see it.
#pragma once

#include <cstdint>
#include <string>

#include "api/resource.h"

namespace qrm::manager {

/// What became of the latest try to place it: none yet, a rule left it alone, or a rejection.
enum class UnplacedState : uint8_t { kWaiting, kSkipped, kRejected };

struct UnplacedContainer {
  ContainerKey key;
  SharedText pod_namespace;
  SharedText pod_name;
  SharedText runtime_id;
  UnplacedState state = UnplacedState::kWaiting;
  std::string why;  ///< one sentence
};

}  // namespace qrm::manager
