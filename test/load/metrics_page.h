// qrmd's own measurements, read from its metrics page.
#pragma once

#include <map>
#include <string>

#include "api/base/status.h"

namespace qrm::test {

/// A histogram as it is served: how many observations were at most so many seconds.
struct Histogram {
  double count = 0;
  double sum_seconds = 0;
  std::map<double, double> at_most;  ///< bound in seconds -> observations

  /// The share of observations that were at most `seconds`, which is one of the bounds.
  double ShareWithin(double seconds) const;
  /// The least bound that holds for `share` of the observations; the true value is below.
  double Quantile(double share) const;
};

/// The histogram `name` whose series have `label`, such as `call="CreateContainer"`. Errors:
/// kUnavailable when no server has metrics on `port` of this machine, kNotFound for a histogram
/// without observations.
StatusOr<Histogram> ReadHistogram(int port, const std::string& name, const std::string& label);

}  // namespace qrm::test
