// Values that many places keep at once: copies share one until somebody edits his.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <utility>

#include <boost/container_hash/hash_fwd.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

namespace qrm {

/// A `T` as a pointer that is never null: a copy costs a count, and an empty one no memory. It
/// reads like the `T` that it holds.
///
/// Threads: as an int; what copies share is not seen to change.
template <typename T>
class Shared {
 public:
  Shared() = default;
  Shared(T value) {  // NOLINT(google-explicit-constructor): stands where a T stood
    if (!IsEmpty(value)) {
      box_ = new Box(std::move(value));
    }
  }
  /// For containers: `{{"a", "b"}}` is one entry.
  template <typename U = T>
  Shared(std::initializer_list<typename U::value_type> values) : Shared(T(values)) {}

  const T& get() const { return box_ == nullptr ? Empty() : box_->value; }
  const T& operator*() const { return get(); }
  const T* operator->() const { return &get(); }
  operator const T&() const { return get(); }  // NOLINT(google-explicit-constructor)

  /// This one's alone from now on. Cost: a copy, where others share it.
  T& Edit() {
    if (box_ == nullptr || box_->use_count() > 1) {
      box_ = new Box(get());
    }
    return box_->value;
  }

  // Of containers.
  auto begin() const
    requires requires(const T& value) { value.begin(); }
  {
    return get().begin();
  }
  auto end() const
    requires requires(const T& value) { value.end(); }
  {
    return get().end();
  }
  bool empty() const { return IsEmpty(get()); }
  std::size_t size() const { return get().size(); }
  template <typename Key>
  auto find(const Key& key) const {
    return get().find(key);
  }
  template <typename Key>
  bool contains(const Key& key) const {
    return get().contains(key);
  }
  template <typename Key>
  const auto& at(const Key& key) const {
    return get().at(key);
  }

  /// How many share it; of an empty one nobody counts.
  std::size_t use_count() const { return box_ == nullptr ? 0 : box_->use_count(); }
  bool SharesWith(const Shared& other) const { return box_ == other.box_; }

  friend bool operator==(const Shared& a, const Shared& b) {
    return a.box_ == b.box_ || a.get() == b.get();
  }
  friend bool operator==(const Shared& a, const T& b) { return a.get() == b; }
  /// For boost::hash.
  friend std::size_t hash_value(const Shared& shared) { return boost::hash<T>()(shared.get()); }

 private:
  struct Box : boost::intrusive_ref_counter<Box> {
    explicit Box(T given) : value(std::move(given)) {}
    T value;
  };

  static bool IsEmpty(const T& value) {
    if constexpr (requires { value.empty(); }) {
      return value.empty();
    } else {
      return false;
    }
  }
  static const T& Empty() {
    static const T empty{};
    return empty;
  }

  boost::intrusive_ptr<Box> box_;
};

}  // namespace qrm
