// The reference compute driver: CPUs by attributes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/base/status.h"
#include "plugins/cci/cpu_knobs.h"
#include "plugins/cci/spec.h"
#include "plugins/host/host_files.h"
#include "plugins/host/host_knobs.h"
#include "plugins/knobs/knob_machine.h"
#include "plugins/sdk/compute_driver.h"
#include "topology/cpu_layout.h"
#include "topology/machine.h"

namespace qrm::cci {

/// Its name, unless --resource says otherwise.
inline constexpr char kDriverName[] = "attributes";

/// Threads: as ComputeDriver.
class CciDriver final : public sdk::ComputeDriver {
 public:
  /// Sets what attributes ask for on the machine of `files`, which outlives it, by `knobs`, and of
  /// containers' threads where `scheduling` has them.
  CciDriver(Machine machine, Policies policies, host::HostFiles& files,
            std::unique_ptr<host::HostKnobs> knobs, knobs::KnobMachine scheduling)
      : machine_(std::move(machine)),
        layout_(machine_),
        policies_(std::move(policies)),
        files_(files),
        knobs_(std::move(knobs)),
        scheduling_(std::move(scheduling)) {}
  ~CciDriver() override = default;
  CciDriver(const CciDriver&) = delete;
  CciDriver& operator=(const CciDriver&) = delete;

  /// What containers that are gone left on the machine is put back, what others need is set again.
  Status Restore(const sdk::ComputeGrants& grants) override;

  /// The program finds in its environment what it has: CCI_CPUS, CCI_PARTS ("2-3 exclusive; 6
  /// exclusive, numa=0"), CCI_CONTAINER where it has attributes as a whole, and CCI_UNMET where
  /// something is missing.
  StatusOr<sdk::ComputeGrant> Admit(const sdk::ComputeRequest& request) override;

  /// Sets on the machine what the container was admitted with. Errors: what cannot be set.
  Status Add(const sdk::ComputeInstance& instance) override;

  /// Puts back what only this container needed. Errors: what could not be.
  Status Remove(const ContainerKey& key) override;

 private:
  /// Has those that move interrupts on their own leave quiet CPUs alone, also if they were started
  /// just now.
  void TellBalancers();
  void ForgetGoneBalancers(const std::vector<std::string>& running);
  Status TellBalancer(const std::string& process);
  /// What the machine can set, as far as `lines` ask for any of it.
  CpuKnobs KnobsFor(const SpecLines& lines) const;
  Status HoldKnobs(const sdk::ComputeInstance& instance, const sdk::ComputeGrant& grant);
  /// What a container with `grant` sets on the machine when it runs in `cgroup`.
  std::vector<host::Claim> ClaimsOfInstance(const sdk::ComputeGrant& grant,
                                            const std::string& cgroup) const;

  const Machine machine_;
  const CpuLayout layout_;
  const Policies policies_;
  host::HostFiles& files_;
  const std::unique_ptr<host::HostKnobs> knobs_;
  const knobs::KnobMachine scheduling_;
  sdk::ComputeGrants grants_;
};

}  // namespace qrm::cci
