// A log of decisions that ends with its test.
#pragma once

#include "checkpoint/decision_log.h"
#include "test/support/temp_dir.h"

namespace qrm::test {

struct TempDecisions {
  const TempDir dir = TempDir::InMemory();
  checkpoint::DecisionLog log{dir.path()};
};

}  // namespace qrm::test
