// Implements ResourcePlugin's defaults, the two allocations that most plugins give, and the signal
// of a change.
#include "plugins/sdk/plugin.h"

#include <fstream>
#include <functional>
#include <memory>
#include <utility>

#include "api/base/cond_var.h"
#include "api/base/errorf.h"
#include "api/base/mutex.h"
#include "plugins/sdk/change_signal.h"

namespace qrm::sdk {

bool Grant::operator==(const Grant& other) const {
  const bool same_admitted = admitted == nullptr || other.admitted == nullptr
                                 ? admitted == other.admitted
                                 : *admitted == *other.admitted;
  return same_admitted && request == other.request && allocation == other.allocation;
}

ResourcePlugin::ResourcePlugin() : changes_(std::make_shared<ChangeSignal>()) {}

HintList ResourcePlugin::HeldHints(const Grant& grant, const ContainerRequest& /*request*/) {
  if (grant.allocation->hints.has_value()) {
    return *grant.allocation->hints;
  }
  if (grant.request.hint.has_value() && !grant.request.hint->nodes.Empty()) {
    return std::vector<TopologyHint>{*grant.request.hint};
  }
  return HintList::NoPreference();
}

std::vector<PlacedQuantity> ResourcePlugin::PlacesOf(const ContainerKey& /*container*/,
                                                     const ResourceAllocation& allocation) const {
  std::vector<PlacedQuantity> places;
  places.reserve(allocation.amount_by_node.size());
  for (const auto& [node, amount] : allocation.amount_by_node) {
    places.push_back({.amount = static_cast<double>(amount), .node = node});
  }
  return places;
}

Status ResourcePlugin::SetPools(const std::map<std::string, CpuSet>& /*cpus_by_pool*/) {
  return Errorf(
      StatusCode::kUnimplemented,
      "cannot set pools: this plugin has no pools; name the resource of a plugin that has pools");
}

void ResourcePlugin::NotifyChanged() {
  changes_->Raise();
}

ResourceAllocation PinCpus(const CpuSet& cpus) {
  const int count = cpus.Count();
  return {.oci_property = std::string(kCpusetCpus),
          .value = ToString(cpus),
          .is_scalar_resource = true,
          .quantity = static_cast<double>(count)};
}

NumaMask OnlineNumaNodes(const std::string& sysfs_root) {
  std::ifstream file(sysfs_root + "/devices/system/node/online");
  std::string list;
  std::getline(file, list);
  const auto nodes = NumaMask::Parse(list);
  return nodes.ok() && !nodes->Empty() ? *nodes : NumaMask{0};
}

ResourceAllocation PinMemory(const NumaMask& nodes, uint64_t bytes) {
  return {.oci_property = std::string(kCpusetMems),
          .value = ToString(nodes),
          .is_scalar_resource = true,
          .quantity = static_cast<double>(bytes)};
}

struct ChangeSignal::Impl {
  Mutex mutex;
  CondVar idle;
  int calls QRM_GUARDED_BY(mutex) = 0;  ///< of the listener, in progress
  std::shared_ptr<const std::function<void()>> listener QRM_GUARDED_BY(mutex);
};

ChangeSignal::ChangeSignal() : impl_(new Impl) {}

ChangeSignal::~ChangeSignal() = default;

void ChangeSignal::Connect(std::function<void()> listener) {
  const MutexLock lock(impl_->mutex);
  impl_->listener = listener == nullptr
                        ? nullptr
                        : std::make_shared<const std::function<void()>>(std::move(listener));
  impl_->idle.Wait(impl_->mutex, [this]() QRM_REQUIRES(impl_->mutex) { return impl_->calls == 0; });
}

void ChangeSignal::Raise() {
  std::shared_ptr<const std::function<void()>> listener;
  {
    const MutexLock lock(impl_->mutex);
    if (impl_->listener == nullptr) {
      return;
    }
    listener = impl_->listener;
    ++impl_->calls;
  }
  (*listener)();
  {
    const MutexLock lock(impl_->mutex);
    --impl_->calls;
  }
  impl_->idle.NotifyAll();
}

}  // namespace qrm::sdk
