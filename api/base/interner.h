// Finds equal values, so that all who keep one share it.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <utility>

namespace qrm {

/// Of `Handle`, a Shared or a SharedText, whose values boost::hash can hash. Values that only
/// interners keep are forgotten now and then: two interners often keep the same value, and neither
/// counts as a use.
///
/// Threads: one.
template <typename Handle>
class Interner {
 public:
  Interner() = default;
  Interner(const Interner&) = delete;
  Interner& operator=(const Interner&) = delete;
  ~Interner() {
    for (const auto& [value, nothing] : values_) {
      value.OnForgotten();
    }
  }

  /// `value`, or the one that equals it and came before.
  Handle Intern(Handle value) {
    if (value.use_count() == 0) {
      return value;
    }
    const auto [place, is_new] = values_.try_emplace(std::move(value));
    Handle known = place->first;
    if (is_new) {
      known.OnInterned();
    }
    if (values_.size() >= limit_) {
      ForgetUnused();
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

  void ForgetUnused() {
    std::erase_if(values_, [](const auto& kept) {
      const bool unused = kept.first.IsUnused();
      if (unused) {
        kept.first.OnForgotten();
      }
      return unused;
    });
    limit_ = values_.size() < kLeast / 2 ? kLeast : 2 * values_.size();
  }

  std::unordered_map<Handle, Nothing, HashOf> values_;  // weighs less in a header than a set
  std::size_t limit_ = kLeast;
};

}  // namespace qrm
