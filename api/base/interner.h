// Finds equal values, so that all who keep one share it.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <utility>

namespace qrm {

/// Of `Handle`, a Shared or a SharedText, whose values boost::hash can hash. Values that nobody
/// else keeps any more are forgotten now and then.
///
/// Threads: one.
template <typename Handle>
class Interner {
 public:
  /// `value`, or the one that equals it and came before.
  Handle Intern(Handle value) {
    if (value.use_count() == 0) {
      return value;
    }
    Handle known = values_.try_emplace(std::move(value)).first->first;
    if (values_.size() >= limit_) {
      std::erase_if(values_, [](const auto& kept) { return kept.first.use_count() == 1; });
      limit_ = values_.size() < kLeast / 2 ? kLeast : 2 * values_.size();
    }
    return known;
  }

  /// How many different ones it knows.
  std::size_t size() const { return values_.size(); }

 private:
  static constexpr std::size_t kLeast = 64;

  struct HashOf {
    std::size_t operator()(const Handle& handle) const { return hash_value(handle); }
  };

  struct Nothing {};

  std::unordered_map<Handle, Nothing, HashOf> values_;  // weighs less in a header than a set
  std::size_t limit_ = kLeast;
};

}  // namespace qrm
