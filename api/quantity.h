// Amounts as Kubernetes writes them: "100m", "1.5Gi", "1e3".
#pragma once

#include <string_view>

#include "api/base/status.h"

namespace qrm {

/// The amount as the double nearest to what is written. As in Kubernetes, less than a billionth
/// counts as a billionth, and more than 2^63-1 as 2^63-1.
/// Errors: kInvalidArgument for text that is not a quantity, and for a quantity below zero.
/// Source: Kubernetes API reference, "Quantity".
StatusOr<double> ParseQuantity(std::string_view text);

}  // namespace qrm
