// Compares the medians of the first and the last third.
#include "test/soak/flatness.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "api/base/check.h"

namespace qrm::test {

double Percentile(std::vector<double> values, double fraction) {
  if (values.empty()) {
    return 0;
  }
  const double rank = std::ceil(fraction * static_cast<double>(values.size()));
  const auto place = static_cast<std::ptrdiff_t>(std::max(rank, 1.0)) - 1;
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

Flatness Judge(const std::vector<double>& values, const Tolerance& tolerance) {
  QRM_CHECK(values.size() >= 3);
  const auto third = static_cast<std::ptrdiff_t>(values.size() / 3);
  Flatness flatness;
  flatness.early = Percentile({values.begin(), values.begin() + third}, 0.5);
  flatness.late = Percentile({values.end() - third, values.end()}, 0.5);
  flatness.limit = flatness.early * tolerance.factor + tolerance.extra;
  flatness.flat = flatness.late <= flatness.limit;
  return flatness;
}

}  // namespace qrm::test
