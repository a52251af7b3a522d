// Computes sizes from CPU use.
#include "plugins/cpu/sizing/use.h"

#include <algorithm>
#include <cmath>

#include "api/id_set.h"

namespace qrm::cpu {

namespace {

int BusyCpus(const UseRule& rule, const Use& use) {
  const double busy = std::ceil(use.cpus * 100 / rule.target_percent);
  return static_cast<int>(std::clamp(busy, 0.0, double{CpuSet::kMaxIds}));
}

bool Waits(const UseRule& rule, const Use& use) {
  return use.stalled * 100 >= rule.pressure_percent;
}

}  // namespace

int CpusFor(const UseRule& rule, const Use& use) {
  return Waits(rule, use) ? CpuSet::kMaxIds : BusyCpus(rule, use);
}

int WishByUse(const UseRule& rule, const Use& use, int size, int requested) {
  int wish = BusyCpus(rule, use);
  if (Waits(rule, use)) {
    wish = std::max(wish, size + std::max(size / 10, 1));
  }
  return wish > size ? std::max(wish, requested) : wish;
}

}  // namespace qrm::cpu
