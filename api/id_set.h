// Sets of small non-negative numbers (CPUs, NUMA nodes) of any size, read from and written in the
// kernel's list form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"

namespace qrm {

/// The untyped set behind CpuSet and NumaMask: a bit per id, as many words as the largest id needs.
/// Invariant: the last word is not zero, so that equal sets have equal words.
class IdSet {
 public:
  /// Ids stay below this bound; far above any machine, far below what would exhaust memory.
  static constexpr int kMaxIds = 1 << 16;

  IdSet() = default;

  bool Has(int id) const;
  bool Empty() const { return words_.empty(); }
  /// Cost: one instruction per 64 ids.
  int Count() const;
  /// The smallest id, or -1 for the empty set.
  int First() const { return Next(-1); }
  /// The largest id, or -1 for the empty set.
  int Last() const;
  /// The smallest id greater than `id`, or -1.
  int Next(int id) const;

  /// `id` must be within [0, kMaxIds).
  void Add(int id);
  void Remove(int id);

  bool IsSubsetOf(const IdSet& other) const;
  bool Intersects(const IdSet& other) const;

  /// As numbers, bit i = id i: negative when *this is smaller than `other`, 0 when equal.
  int CompareAsNumber(const IdSet& other) const;

  /// The words, 64 ids each, least significant first; no zero word at the end.
  const std::vector<uint64_t>& words() const { return words_; }

  bool operator==(const IdSet& other) const = default;

  /// Walks the ids in ascending order.
  class Iterator {
   public:
    using value_type = int;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const IdSet* set, int id) : set_(set), id_(id) {}
    int operator*() const { return id_; }
    Iterator& operator++() {
      id_ = set_->Next(id_);
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return id_ == other.id_; }

   private:
    const IdSet* set_ = nullptr;
    int id_ = -1;
  };
  Iterator begin() const { return {this, First()}; }
  Iterator end() const { return {this, -1}; }

 protected:
  void AddRange(int first, int last);
  void Intersect(const IdSet& other);
  void Unite(const IdSet& other);
  void Subtract(const IdSet& other);
  Status ParseInto(std::string_view text, std::string_view what);
  std::string ListForm() const;

 private:
  void Trim();

  std::vector<uint64_t> words_;
};

/// An IdSet of one kind; sets of different kinds do not mix.
template <typename Kind>
class TypedIdSet : public IdSet {
 public:
  TypedIdSet() = default;
  TypedIdSet(std::initializer_list<int> ids) {
    for (const int id : ids) {
      Add(id);
    }
  }

  /// All ids from `first` to `last`, both included; empty when last < first.
  static TypedIdSet Range(int first, int last) {
    TypedIdSet set;
    set.AddRange(first, last);
    return set;
  }

  /// Reads the kernel's list form, `0-3,8,10-11`; white space around it is ignored, "" is the empty
  /// set. Errors: kInvalidArgument naming the text and the accepted form. Source: cpuset(7), "List
  /// format".
  static StatusOr<TypedIdSet> Parse(std::string_view text) {
    TypedIdSet set;
    if (Status read = set.ParseInto(text, Kind::kName); !read.ok()) {
      return read;
    }
    return set;
  }

  friend TypedIdSet operator&(TypedIdSet a, const TypedIdSet& b) { return a &= b; }
  friend TypedIdSet operator|(TypedIdSet a, const TypedIdSet& b) { return a |= b; }
  friend TypedIdSet operator-(TypedIdSet a, const TypedIdSet& b) { return a -= b; }
  TypedIdSet& operator&=(const TypedIdSet& other) {
    Intersect(other);
    return *this;
  }
  TypedIdSet& operator|=(const TypedIdSet& other) {
    Unite(other);
    return *this;
  }
  TypedIdSet& operator-=(const TypedIdSet& other) {
    Subtract(other);
    return *this;
  }
  bool operator==(const TypedIdSet& other) const = default;

  /// The kernel's list form, ascending: "0-3,8".
  friend std::string ToString(const TypedIdSet& set) { return set.ListForm(); }
};

struct CpuKind {
  static constexpr std::string_view kName = "CPU list";
};
struct NumaKind {
  static constexpr std::string_view kName = "NUMA node list";
};

/// Logical CPUs by the kernel's numbers.
using CpuSet = TypedIdSet<CpuKind>;
/// NUMA nodes by the kernel's numbers.
using NumaMask = TypedIdSet<NumaKind>;

}  // namespace qrm
