// Where the nic plugin learns of changes.
#pragma once

#include <functional>

#include "plugins/nic/facts.h"

namespace qrm::nic {

/// Tells of changes from Start until its destruction.
class FactsWatch {
 public:
  virtual ~FactsWatch() = default;

  /// From now on `on_change` gets all facts, whenever some are not what they were when they were
  /// told before; from one thread. Called once.
  virtual void Start(std::function<void(const NicFacts&)> on_change) = 0;
};

}  // namespace qrm::nic
