// Formats numbers for people.
#pragma once

#include <cstdint>
#include <string>

namespace qrm::manager::cli {

/// "3s", "5m12s", "4h7m", "12d3h": two units at most; "never" when negative.
std::string AgeText(double seconds);

/// "512Mi", "1.5Gi", "0": powers of 1024, at most one digit after the point.
std::string BytesText(uint64_t bytes);

/// "20", "0.5", "1e+10" never: up to three digits after the point, no trailing zeros.
std::string AmountText(double amount);

/// An amount of `resource`: bytes for memory and hugepages, else a plain number.
std::string AmountOf(const std::string& resource, double amount);

/// "2026-11-21T02:00:00Z", of milliseconds since 1970.
std::string TimeText(int64_t unix_millis);

/// "1 pod", "2 pods".
std::string CountText(uint64_t count, const std::string& noun);

}  // namespace qrm::manager::cli
