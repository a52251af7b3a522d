// Reads what a container asks for, chooses, and tells it the result.
#include "plugins/cci/cci_driver.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plugins/cci/chooser.h"

namespace qrm::cci {
namespace {

constexpr int64_t kMilli = 1000;

/// What the program is told, in variables of its environment.
StringMap Told(const sdk::ComputeGrant& grant) {
  std::vector<std::string> parts;
  for (const sdk::ComputePart& part : grant.parts) {
    parts.push_back(fmt::format("{} {}", ToString(part.cpus), part.name));
  }
  StringMap told = {{"CCI_CPUS", ToString(grant.Cpus())},
                    {"CCI_PARTS", fmt::format("{}", fmt::join(parts, "; "))}};
  std::vector<std::string> unmet;
  for (const sdk::UnmetWish& wish : grant.unmet) {
    unmet.push_back(wish.token);
  }
  if (!unmet.empty()) {
    told["CCI_UNMET"] = fmt::format("{}", fmt::join(unmet, ", "));
  }
  return told;
}

}  // namespace

StatusOr<sdk::ComputeGrant> CciDriver::Admit(const sdk::ComputeRequest& request) {
  if (request.milli_cpus < kMilli || request.milli_cpus % kMilli != 0) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it gives whole CPUs, and the container requests {}m; request 1, 2 or more",
                  request.milli_cpus);
  }
  const int cpus = static_cast<int>(request.milli_cpus / kMilli);
  QRM_ASSIGN_OR_RETURN(const ComputeSpec spec, ReadPodSpec(request.spec, policies_, cpus));
  QRM_ASSIGN_OR_RETURN(
      sdk::ComputeGrant grant,
      Choose(spec, {.available = request.available, .near = request.hint.nodes, .cpus = cpus},
             layout_));
  grant.envs = Told(grant);
  return grant;
}

}  // namespace qrm::cci
