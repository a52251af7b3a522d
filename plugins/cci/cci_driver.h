// The reference compute driver: CPUs by attributes.
#pragma once

#include "api/base/status.h"
#include "plugins/cci/spec.h"
#include "plugins/sdk/compute_driver.h"
#include "topology/cpu_layout.h"
#include "topology/machine.h"

namespace qrm::cci {

/// Its name, unless --resource says otherwise.
inline constexpr char kDriverName[] = "attributes";

/// Threads: as ComputeDriver.
class CciDriver final : public sdk::ComputeDriver {
 public:
  CciDriver(Machine machine, Policies policies)
      : machine_(std::move(machine)), layout_(machine_), policies_(std::move(policies)) {}
  CciDriver(const CciDriver&) = delete;
  CciDriver& operator=(const CciDriver&) = delete;

  bool NeedsAdd() const override { return false; }

  /// The program finds in its environment what it has: CCI_CPUS, CCI_PARTS ("2-3 exclusive; 6
  /// exclusive, numa=0") and, where something is missing, CCI_UNMET.
  StatusOr<sdk::ComputeGrant> Admit(const sdk::ComputeRequest& request) override;

 private:
  const Machine machine_;
  const CpuLayout layout_;
  const Policies policies_;
};

}  // namespace qrm::cci
