// Texts that many places keep at once, such as the UID of a pod: copies share one.
#pragma once

#include <compare>
#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>

#include "api/base/shared.h"

namespace qrm {

/// A std::string as a pointer; see Shared. It is replaced, never changed.
class SharedText {
 public:
  SharedText() = default;
  // It stands where a std::string stood.
  SharedText(std::string text) : text_(std::move(text)) {}         // NOLINT
  SharedText(std::string_view text) : text_(std::string(text)) {}  // NOLINT
  SharedText(const char* text) : text_(std::string(text)) {}       // NOLINT

  const std::string& str() const { return text_.get(); }
  operator const std::string&() const { return str(); }  // NOLINT(google-explicit-constructor)
  operator std::string_view() const { return str(); }    // NOLINT(google-explicit-constructor)
  const std::string* operator->() const { return &str(); }

  bool empty() const { return text_.empty(); }
  std::size_t size() const { return str().size(); }
  std::size_t use_count() const { return text_.use_count(); }
  void OnInterned() const { text_.OnInterned(); }
  void OnForgotten() const { text_.OnForgotten(); }
  bool IsUnused() const { return text_.IsUnused(); }

  friend bool operator==(const SharedText& a, const SharedText& b) { return a.text_ == b.text_; }
  friend bool operator==(const SharedText& a, const std::string& b) { return a.str() == b; }
  friend bool operator==(const SharedText& a, std::string_view b) { return a.str() == b; }
  friend bool operator==(const SharedText& a, const char* b) { return a.str() == b; }
  friend std::strong_ordering operator<=>(const SharedText& a, const SharedText& b) {
    return a.text_.SharesWith(b.text_) ? std::strong_ordering::equal : a.str() <=> b.str();
  }
  friend std::strong_ordering operator<=>(const SharedText& a, const std::string& b) {
    return a.str() <=> b;
  }
  friend std::strong_ordering operator<=>(const SharedText& a, std::string_view b) {
    return std::string_view(a.str()) <=> b;
  }
  friend std::strong_ordering operator<=>(const SharedText& a, const char* b) {
    return a <=> std::string_view(b);
  }
  friend std::string operator+(const SharedText& a, std::string_view b) {
    return std::string(a.str()).append(b);
  }
  friend std::string operator+(std::string_view a, const SharedText& b) {
    return std::string(a).append(b.str());
  }
  /// For boost::hash.
  friend std::size_t hash_value(const SharedText& text) {
    return std::hash<std::string_view>()(text.str());
  }
  friend std::ostream& operator<<(std::ostream& out, const SharedText& text) {
    return out << text.str();
  }

 private:
  Shared<std::string> text_;
};

}  // namespace qrm
