// Finds a short run that fails like a long one.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "test/model/step.h"

namespace qrm::test {

/// Whether two failures are of one kind: they differ in names and numbers only.
bool IsLike(const std::string& a, const std::string& b);

/// The fewest of `steps`, in their order, with which `fails` is still true, as far as it finds them
/// by the moment `until`. All of them if `fails` does not become true again.
std::vector<Step> ShrinkSteps(std::vector<Step> steps,
                              const std::function<bool(const std::vector<Step>&)>& fails,
                              std::chrono::steady_clock::time_point until);

}  // namespace qrm::test
