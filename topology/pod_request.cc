// Keeps a running sum and its maximum.
#include "topology/pod_request.h"

#include <algorithm>

namespace qrm {

std::map<std::string, double> PodRequest(const std::vector<ContainerAmounts>& containers) {
  std::map<std::string, double> staying;  // of started containers that do not end by themselves
  std::map<std::string, double> most;
  for (const ContainerAmounts& container : containers) {
    for (const auto& [name, amount] : container.amounts) {
      const double now = staying[name] + amount;
      if (container.type != ContainerType::kInit) {
        staying[name] = now;
      }
      most[name] = std::max(most[name], now);
    }
  }
  return most;
}

}  // namespace qrm
