// Tries parts from the end of a run first, then leaves out ever smaller parts.
#include "test/model/shrink.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <sstream>
#include <utility>

namespace qrm::test {
namespace {

/// The words of only letters, which belong to the sentence and not to its objects.
std::vector<std::string> Skeleton(const std::string& message) {
  std::istringstream text(message);
  std::vector<std::string> words;
  constexpr std::size_t kEnough = 12;
  for (std::string word; text >> word && words.size() < kEnough;) {
    if (std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isalpha(c); })) {
      words.push_back(word);
    }
  }
  return words;
}

std::vector<Step> Without(const std::vector<Step>& steps, std::size_t begin, std::size_t count) {
  std::vector<Step> fewer = steps;
  const auto first = fewer.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = first + static_cast<std::ptrdiff_t>(std::min(count, steps.size() - begin));
  fewer.erase(first, last);
  return fewer;
}

}  // namespace

bool IsLike(const std::string& a, const std::string& b) {
  return Skeleton(a) == Skeleton(b);
}

std::vector<Step> ShrinkSteps(std::vector<Step> steps,
                              const std::function<bool(const std::vector<Step>&)>& fails,
                              std::chrono::steady_clock::time_point until) {
  const auto has_time = [&] { return std::chrono::steady_clock::now() < until; };
  for (std::size_t length = 10; length < steps.size() && has_time(); length *= 3) {
    std::vector<Step> end = Without(steps, 0, steps.size() - length);
    if (fails(end)) {
      steps = std::move(end);
      break;
    }
  }
  for (std::size_t part = steps.size() / 2; part > 0 && has_time(); part /= 2) {
    for (std::size_t begin = 0; begin < steps.size() && has_time();) {
      std::vector<Step> fewer = Without(steps, begin, part);
      if (fails(fewer)) {
        steps = std::move(fewer);
      } else {
        begin += part;
      }
    }
  }
  return steps;
}

}  // namespace qrm::test
