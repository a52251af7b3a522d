// Hides what a class is made of. std::unique_ptr does the same, at 50,000 lines of <memory> for
// each source behind the header.
#pragma once

namespace qrm {

/// Owns a T, which is complete where the owner is made and ends.
template <typename T>
class Hidden {
 public:
  explicit Hidden(T* value) : value_(value) {}
  ~Hidden() { delete value_; }
  Hidden(const Hidden&) = delete;
  Hidden& operator=(const Hidden&) = delete;

  T* operator->() { return value_; }
  const T* operator->() const { return value_; }

 private:
  T* value_;
};

}  // namespace qrm
