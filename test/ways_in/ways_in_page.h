// Reads the list of ways in from the documentation, so that none is listed without an attack.
#pragma once

#include <string>
#include <vector>

namespace qrm::test {

/// How much a program may grow while one of its ways in is attacked.
inline constexpr double kMostGrowthMib = 64;

/// The names in the table of `program` in docs/ways-in.md.
std::vector<std::string> WaysInto(const std::string& program);

/// For the name of a test: letters and digits of `way` only.
std::string TestNameOf(const std::string& way);

}  // namespace qrm::test
