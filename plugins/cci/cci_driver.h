// The reference compute driver: CPUs by attributes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/base/status.h"
#include "plugins/cci/cpu_knobs.h"
#include "plugins/cci/spec.h"
#include "plugins/kernel/kernel_files.h"
#include "plugins/kernel/kernel_values.h"
#include "plugins/kernel/knob.h"
#include "plugins/sdk/compute_driver.h"
#include "topology/cpu_layout.h"
#include "topology/machine.h"

namespace qrm::cci {

/// Its name, unless --resource is set.
inline constexpr char kDriverName[] = "attributes";

/// The driver. Threads: see ComputeDriver.
class CciDriver final : public sdk::ComputeDriver {
 public:
  /// Sets attributes on the machine of `files`, which must outlive it, through `knobs`, and on
  /// containers' threads in the cgroups of `scheduling`.
  CciDriver(Machine machine, Policies policies, kernel::KernelFiles& files,
            std::unique_ptr<kernel::KernelValues> knobs, kernel::KnobMachine scheduling)
      : machine_(std::move(machine)),
        layout_(machine_),
        policies_(std::move(policies)),
        files_(files),
        knobs_(std::move(knobs)),
        scheduling_(std::move(scheduling)) {}
  ~CciDriver() override = default;
  CciDriver(const CciDriver&) = delete;
  CciDriver& operator=(const CciDriver&) = delete;

  /// Restores the machine's values of ended containers, and sets the values of the others again.
  Status Restore(const sdk::ComputeGrants& grants) override;

  /// Sets environment variables for the program: CCI_CPUS, CCI_PARTS ("2-3 exclusive; 6 exclusive,
  /// numa=0"), CCI_CONTAINER for attributes of the whole container, and CCI_UNMET for unmet
  /// optional attributes.
  StatusOr<sdk::ComputeGrant> Admit(const sdk::ComputeRequest& request) override;

  /// The same for a running container, which keeps the CPUs of each line where it can. What its
  /// attributes set follows with Add.
  bool Resizes() const override { return true; }
  StatusOr<sdk::ComputeGrant> Resize(const sdk::ComputeRequest& request,
                                     const sdk::ComputeGrant& now) override;

  /// Sets the container's attributes on the machine. Errors: what cannot be set.
  Status Add(const sdk::ComputeInstance& instance) override;

  /// Restores values that only this container needed. Errors: what could not be restored.
  Status Remove(const ContainerKey& key) override;

 private:
  StatusOr<sdk::ComputeGrant> Decide(const sdk::ComputeRequest& request,
                                     std::vector<CpuSet> kept) const;
  /// Bans quiet CPUs in all interrupt balancers, also in recently started ones.
  void TellBalancers();
  void ForgetGoneBalancers(const std::vector<std::string>& running);
  Status TellBalancer(const std::string& process);
  /// The machine's knobs, read only if `lines` need them.
  kernel::TunableMachine KnobsFor(const SpecLines& lines) const;
  Status HoldKnobs(const sdk::ComputeInstance& instance, const sdk::ComputeGrant& grant);
  /// The machine's values for a container with `grant` that runs in `cgroup`.
  std::vector<kernel::Claim> ClaimsOfInstance(const sdk::ComputeGrant& grant,
                                              const std::string& cgroup) const;

  const Machine machine_;
  const CpuLayout layout_;
  const Policies policies_;
  kernel::KernelFiles& files_;
  const std::unique_ptr<kernel::KernelValues> knobs_;
  const kernel::KnobMachine scheduling_;
  sdk::ComputeGrants grants_;
};

}  // namespace qrm::cci
