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

/// Sidecars run beside later init containers and the app containers.
double RequestedOf(const Pod& pod, const std::string& resource) {
  const auto in = [&](const Amounts& amounts) {
    const auto found = amounts.find(resource);
    return found == amounts.end() ? 0.0 : found->second;
  };
  double sidecars = 0;
  double apps = 0;
  double most_at_start = 0;
  for (const PodContainer& container : pod.containers) {
    const double amount = in(container.requests);
    if (container.kind == PodContainer::Kind::kInit) {
      most_at_start = std::max(most_at_start, sidecars + amount);
    } else {
      (container.kind == PodContainer::Kind::kSidecar ? sidecars : apps) += amount;
    }
  }
  return Units(resource, std::max(most_at_start, sidecars + apps) + in(pod.overhead));
}

}  // namespace

std::string ShortOf(const Node& node, const Pod& pod, const std::vector<Pod>& others) {
  for (const auto& [resource, allocatable] : node.allocatable) {
    const bool counts_pods = resource == "pods";
    const double wanted = counts_pods ? 1 : RequestedOf(pod, resource);
    double left = Units(resource, allocatable);
    for (const Pod& other : others) {
      left -= counts_pods ? 1 : RequestedOf(other, resource);
    }
    if (wanted > 0 && wanted > left) {
      return resource;
    }
  }
  return {};
}

}  // namespace qrm::scheduler
