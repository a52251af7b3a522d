// Computes sizes from CPU use.
#include "plugins/cpu/sizing/use.h"

#include <algorithm>
#include <cmath>

#include "api/id_set.h"

namespace qrm::cpu {

int WishByUse(const UseRule& rule, const Use& use, int size, int requested) {
  const double busy = std::ceil(use.cpus * 100 / rule.target_percent);
  int wish = static_cast<int>(std::clamp(busy, 0.0, double{CpuSet::kMaxIds}));
  if (use.stalled * 100 >= rule.pressure_percent) {
    wish = std::max(wish, size + std::max(size / 10, 1));
  }
  return wish > size ? std::max(wish, requested) : wish;
}

}  // namespace qrm::cpu
