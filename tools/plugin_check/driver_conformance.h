// Checks over its socket whether a compute driver keeps the protocol: one verdict per rule.
#pragma once

#include <functional>

#include "tools/plugin_check/conformance.h"
#include "topology/machine.h"

namespace qrm::manager {

/// As CheckPlugin, of a compute driver: two containers of `settings.amount` CPUs each ask with
/// `settings.spec` for CPUs of `machine`, but its first.
Verdict CheckDriver(const CheckSettings& settings, const Machine& machine,
                    const std::function<void(const RuleResult&)>& report);

}  // namespace qrm::manager
