// Keeps one handle for each type.
#include "scheduler/cache/handle.h"

#include "api/base/section.h"

namespace qrm::scheduler {

Status Handle::Configure(const config::Section& options) {
  return options.AllowKeys({});
}

Handle& HandleRegistry::Register(const std::string& type, const Factory& factory) {
  auto& handle = handles_[type];
  if (handle == nullptr) {
    handle = factory();
    guard_->Know(type);
  }
  return *handle;
}

}  // namespace qrm::scheduler
