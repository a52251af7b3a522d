// The step of an admission for compute drivers: chooses the driver, makes the offer, asks the
// driver, and has the cpu plugin withhold the CPUs.
#pragma once

#include "api/base/clock.h"
#include "api/base/status.h"
#include "manager/admission/draft.h"
#include "manager/drivers/driver_grant.h"
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

  /// Sets `draft.driver`, with the offer to it, if a driver is to place the container, or to change
  /// the CPUs that it has. Errors: kPermissionDenied for a namespace that may not ask; kUnavailable
  /// for a driver or cpu plugin that is not running; kResourceExhausted for too few CPUs.
  Status Choose(Draft& draft, Deadline deadline) const;

  /// Asks the driver within the merged hint, checks its answer, and has the cpu plugin withhold the
  /// CPUs. Errors: the driver's; what is wrong with its answer. Release what the plugins in
  /// `draft.allocated` may hold then.
  Status Admit(Draft& draft, Deadline deadline) const;

  /// Checks the driver's memory nodes against the memory plugin's answer. Errors: as Admit's.
  static Status CheckMemory(Draft& draft);

 private:
  Status ChooseAgain(Draft& draft, Deadline deadline) const;
  StatusOr<bool> IsThere(Draft& draft, const DriverChoice& choice) const;
  Status MakeOfferTo(Draft& draft, DriverPart& part, Deadline deadline) const;
  StatusOr<CpuAccount> AskCpuPlugin(Deadline deadline) const;
  /// Has the memory plugin bind the container to `mems`, if there are any.
  Status AskForMems(const NumaMask& mems, Draft& draft) const;
  Status Withhold(Draft& draft, const DriverPart& part, Deadline deadline) const;

  Plugins& plugins_;
  const Machine& machine_;
  const placement::AdmissionOptions& options_;
};

/// The resource of the plugin that places all other containers.
inline constexpr char kCpuResource[] = "cpu";

/// Whether a driver chose the CPUs of `record`: no plugin is asked for them again.
bool IsDriversRecord(const checkpoint::ContainerRecord& record);

}  // namespace qrm::manager
