// Keeps one handle for each type.
#include "scheduler/cache/handle.h"

#include "api/base/section.h"

namespace qrm::scheduler {

Status Handle::Configure(const config::Section& options) {
  return options.AllowKeys({});
}

std::unique_ptr<const PodData> Handle::PreFilter(const Pod& /*pod*/,
                                                 const Snapshot& /*snapshot*/) const {
  return nullptr;
}

Admission Handle::Filter(const Pod& /*pod*/, const Candidate& /*candidate*/) const {
  return {};
}

std::optional<int> Handle::Score(const Pod& /*pod*/, const Candidate& /*candidate*/) const {
  return std::nullopt;
}

Status Handle::Reserve(const Pod& /*pod*/, const std::string& /*node*/) {
  return OkStatus();
}

void Handle::Unreserve(const Pod& /*pod*/, const std::string& /*node*/) {}

Handle& HandleRegistry::Register(const std::string& type, const Factory& factory) {
  auto& handle = handles_[type];
  if (handle == nullptr) {
    handle = factory();
    guard_->Know(type);
  }
  return *handle;
}

}  // namespace qrm::scheduler
