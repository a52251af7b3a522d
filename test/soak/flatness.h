// Whether a number that was read every minute has stopped growing.
#pragma once

#include <string>
#include <vector>

namespace qrm::test {

/// How much more than at first still counts as flat: `factor` times as much, and `extra` on top.
struct Tolerance {
  double factor = 1.1;
  double extra = 0;
};

/// What Judge compared.
struct Flatness {
  double early = 0;  ///< the median of the first third
  double late = 0;   ///< the median of the last third
  double limit = 0;  ///< the highest `late` that is flat
  bool flat = false;
};

/// Compares the first third of `values` with their last third. Medians, so that a minute with other
/// work of the machine does not count. `values` are three at least.
Flatness Judge(const std::vector<double>& values, const Tolerance& tolerance);

/// The value below which `fraction` of `values` lie, by nearest rank; 0 for none.
double Percentile(std::vector<double> values, double fraction);

}  // namespace qrm::test
