// Counts in whole numbers, so that sums do not depend on their order.
#include "scheduler/cache/node_fit.h"

#include <algorithm>
#include <cmath>

namespace qrm::scheduler {
namespace {

/// Thousandths of CPUs, and whole bytes or devices, rounded up.
double Units(const std::string& resource, double amount) {
  constexpr double kNoise = 1e-6;
  return std::ceil(amount * (resource == "cpu" ? 1000 : 1) - kNoise);
}

}  // namespace

Amounts WholeRequest(const Pod& pod) {
  Amounts running = pod.overhead;
  Amounts highest;
  for (const PodContainer& container : pod.containers) {
    for (const auto& [name, amount] : container.requests) {
      if (container.kind == PodContainer::Kind::kInit) {
        highest[name] = std::max(highest[name], running[name] + amount);
      } else {
        running[name] += amount;
      }
    }
  }
  for (const auto& [name, amount] : highest) {
    running[name] = std::max(running[name], amount);
  }
  running["pods"] += 1;
  return running;
}

std::string ShortOf(const Node& node, const Pod& pod, const std::vector<Pod>& others) {
  Amounts left = node.allocatable;
  for (auto& [resource, amount] : left) {
    amount = Units(resource, amount);
  }
  for (const Pod& other : others) {
    for (const auto& [resource, amount] : WholeRequest(other)) {
      if (const auto found = left.find(resource); found != left.end()) {
        found->second -= Units(resource, amount);
      }
    }
  }
  for (const auto& [resource, amount] : WholeRequest(pod)) {
    const auto found = left.find(resource);
    if (found != left.end() && amount > 0 && Units(resource, amount) > found->second) {
      return resource;
    }
  }
  return {};
}

}  // namespace qrm::scheduler
