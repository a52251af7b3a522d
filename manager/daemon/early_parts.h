// What runs before the checkpoint is read.
#pragma once

#include <memory>

#include "api/base/status.h"
#include "manager/daemon/config.h"
#include "manager/daemon/io_loop.h"
#include "manager/observability/metrics.h"
#include "manager/runtime/nri/nri_attachment.h"
#include "manager/state/state_lock.h"
#include "topology/machine.h"

namespace qrm::manager {

/// The I/O loop, and on it nothing yet but the attachment to the runtime.
struct EarlyParts {
  /// The loop runs, and the runtime begins to tell what exists. Errors: as NriAttachment::Start.
  static StatusOr<std::unique_ptr<EarlyParts>> Start(Config config, Machine machine,
                                                     StateLock lock);
  /// Ends the loop when nobody did.
  ~EarlyParts();
  EarlyParts(const EarlyParts&) = delete;
  EarlyParts& operator=(const EarlyParts&) = delete;

  const Config config;
  const Machine machine;
  const StateLock lock;
  Metrics metrics;
  IoLoop loop;
  NriAttachment nri;

 private:
  EarlyParts(Config given_config, Machine given_machine, StateLock given_lock);
};

}  // namespace qrm::manager
