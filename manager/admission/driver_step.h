// The step of an admission that belongs to compute drivers: whose container it is, what is offered,
// what the driver says, and that the cpu plugin withholds it.
#pragma once

#include "api/base/clock.h"
#include "api/base/status.h"
#include "manager/admission/draft.h"
#include "manager/drivers/driver_offer.h"
#include "plugins/placement/admission_options.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

class Plugins;

/// Threads: as Planner.
class DriverStep {
 public:
  /// The references outlive the step.
  DriverStep(Plugins& plugins, const Machine& machine, const placement::AdmissionOptions& options)
      : plugins_(plugins), machine_(machine), options_(options) {}

  /// Sets `draft.driver` when a driver is to place its container, with what is offered to it. A
  /// container that has its place keeps it. Errors: who may not ask; a driver or cpu plugin that is
  /// away; a lack of CPUs.
  Status Choose(Draft& draft, Deadline deadline) const;

  /// Asks the driver within the merged hint, checks its answer, and has the cpu plugin withhold the
  /// CPUs. Errors: the driver's refusal; what is wrong with the answer. The plugins in
  /// `draft.allocated` may hold something then.
  Status Admit(Draft& draft, Deadline deadline) const;

  /// What only can be checked when the memory plugin has answered. Errors: as Admit's.
  static Status CheckMemory(Draft& draft);

 private:
  StatusOr<bool> IsThere(Draft& draft, const DriverChoice& choice) const;
  Status MakeOfferTo(Draft& draft, DriverPart& part, Deadline deadline) const;
  StatusOr<CpuAccount> AskCpuPlugin(Deadline deadline) const;
  Status Withhold(Draft& draft, const DriverPart& part, Deadline deadline) const;

  Plugins& plugins_;
  const Machine& machine_;
  const placement::AdmissionOptions& options_;
};

/// The resource of the plugin that places all other containers.
inline constexpr char kCpuResource[] = "cpu";

/// Whether a driver gave `record` its CPUs: no plugin is asked for them again.
bool IsDriversRecord(const checkpoint::ContainerRecord& record);

}  // namespace qrm::manager
