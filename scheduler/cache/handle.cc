// Keeps one handle for each type.
#include "scheduler/cache/handle.h"

namespace qrm::scheduler {

Handle& HandleRegistry::Register(const std::string& type, const Factory& factory) {
  auto& handle = handles_[type];
  if (handle == nullptr) {
    handle = factory();
  }
  return *handle;
}

}  // namespace qrm::scheduler
