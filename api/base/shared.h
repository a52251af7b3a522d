// Values with many copies: the copies share one object until a copy is edited.
#pragma once

#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include <boost/container_hash/hash_fwd.hpp>

namespace qrm {

/// A `T` as a pointer that is never null: a copy costs a count, and an empty one no memory. It
/// reads like the `T` that it holds.
///
/// Threads: as an int; what copies share is not seen to change.
template <typename T>
class Shared {  // NOLINT(cppcoreguidelines-special-member-functions): one assignment, by value
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
  Shared(const Shared& other) : box_(other.box_) {
    if (box_ != nullptr) {
      box_->uses.fetch_add(1, std::memory_order_relaxed);
    }
  }
  Shared(Shared&& other) noexcept : box_(std::exchange(other.box_, nullptr)) {}
  Shared& operator=(Shared other) noexcept {
    std::swap(box_, other.box_);
    return *this;
  }
  ~Shared() {
    if (box_ != nullptr && box_->uses.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete box_;
    }
  }

  const T& get() const { return box_ == nullptr ? Empty() : box_->value; }
  const T& operator*() const { return get(); }
  const T* operator->() const { return &get(); }
  operator const T&() const { return get(); }  // NOLINT(google-explicit-constructor)

  /// This one's alone from now on. Cost: a copy, where others share it.
  T& Edit() {
    if (use_count() != 1) {
      Shared alone;
      alone.box_ = new Box(get());
      std::swap(box_, alone.box_);
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

  /// How many copies share it; 0 for an empty one.
  std::size_t use_count() const {
    return box_ == nullptr ? 0 : box_->uses.load(std::memory_order_acquire);
  }
  bool SharesWith(const Shared& other) const { return box_ == other.box_; }

  /// An Interner that keeps this one says so, and says when it lets go: what only interners keep
  /// has no use.
  void OnInterned() const { box_->interners.fetch_add(1, std::memory_order_relaxed); }
  void OnForgotten() const { box_->interners.fetch_sub(1, std::memory_order_relaxed); }
  bool IsUnused() const { return use_count() == box_->interners.load(std::memory_order_relaxed); }

  friend bool operator==(const Shared& a, const Shared& b) {
    return a.box_ == b.box_ || a.get() == b.get();
  }
  friend bool operator==(const Shared& a, const T& b) { return a.get() == b; }
  /// For boost::hash.
  friend std::size_t hash_value(const Shared& shared) { return boost::hash<T>()(shared.get()); }

 private:
  struct Box {
    explicit Box(T given) : value(std::move(given)) {}
    T value;
    std::atomic<unsigned> uses = 1;
    std::atomic<unsigned> interners = 0;  // of the uses
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

  Box* box_ = nullptr;
};

}  // namespace qrm
