// Reports changes of network interfaces to the nic plugin.
#pragma once

#include <functional>

#include "plugins/nic/facts.h"

namespace qrm::nic {

/// Reports changes from Start until its destruction.
class FactsWatch {
 public:
  virtual ~FactsWatch() = default;

  /// Calls `on_change` with all facts whenever they changed since the last call; from one thread.
  /// Called once.
  virtual void Start(std::function<void(const NicFacts&)> on_change) = 0;
};

}  // namespace qrm::nic
