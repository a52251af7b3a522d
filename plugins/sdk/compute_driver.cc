// The defaults of a compute driver, and drivers' names.
#include "plugins/sdk/compute_driver.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"

namespace qrm::sdk {
namespace {

constexpr std::string_view kPrefix = "cci.qrm.io/";
constexpr std::size_t kMostNameBytes = 63;

bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

}  // namespace

CpuSet ComputeGrant::Cpus() const {
  CpuSet cpus;
  for (const ComputePart& part : parts) {
    cpus |= part.shared ? CpuSet() : part.cpus;
  }
  return cpus;
}

bool ComputeGrant::shares() const {
  return std::ranges::any_of(parts, [](const ComputePart& part) { return part.shared; });
}

CpuSet ComputeGrant::SharedOf(const CpuSet& pool) const {
  CpuSet shared;
  for (const ComputePart& part : parts) {
    if (part.shared) {
      shared |= part.cpus.Empty() ? pool : pool & part.cpus;
    }
  }
  return shared - Cpus() - Idle();
}

CpuSet ComputeGrant::Idle() const {
  CpuSet idle;
  for (const ComputePart& part : parts) {
    idle |= part.idle;
  }
  return idle;
}

StatusOr<ComputeGrant> ComputeDriver::Resize(const ComputeRequest& /*request*/,
                                             const ComputeGrant& /*now*/) {
  return Errorf(StatusCode::kUnimplemented, "it does not change the CPUs of running containers");
}

void ComputeDriver::RequestChanges() const {
  if (request_changes_) {
    request_changes_();
  }
}

std::string DriverResource(std::string_view name) {
  return fmt::format("{}{}", kPrefix, name);
}

bool IsDriverResource(std::string_view resource) {
  return resource.starts_with(kPrefix);
}

std::string_view DriverNameOf(std::string_view resource) {
  return IsDriverResource(resource) ? resource.substr(kPrefix.size()) : std::string_view();
}

Status CheckDriverName(std::string_view name) {
  const bool good =
      !name.empty() && name.size() <= kMostNameBytes && IsLetterOrDigit(name.front()) &&
      IsLetterOrDigit(name.back()) &&
      std::ranges::all_of(name, [](char c) { return IsLetterOrDigit(c) || c == '-'; });
  if (good) {
    return OkStatus();
  }
  return Errorf(StatusCode::kInvalidArgument,
                "\"{}\" is not the name of a compute driver; write up to 63 lower-case letters, "
                "digits and '-', beginning and ending with a letter or digit",
                Quoted(name));
}

}  // namespace qrm::sdk
