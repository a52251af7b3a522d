// Splits XML into tags, as far as machine descriptions use it.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "api/base/status.h"

namespace qrm {

/// One tag and the text before it. Source: XML 1.0, "Start-Tags, End-Tags, and Empty-Element Tags".
struct XmlTag {
  enum class Kind { kOpen, kClose, kEmpty, kEnd };

  Kind kind = Kind::kEnd;
  std::string name;
  std::map<std::string, std::string, std::less<>> attributes;  ///< entities resolved
  std::string_view text_before;                                ///< as written

  /// The value of attribute `key`, or "". Cost: O(log attributes).
  std::string_view Get(std::string_view key) const;
};

/// Reads tags one by one; comments, processing instructions and DOCTYPEs are skipped.
///
/// Threads: one. Units: positions in bytes. Cost: O(length) for the whole text.
/// Source:  XML 1.0, without internal DTD subsets and CDATA.
class XmlTags {
 public:
  /// `xml` must outlive this.
  explicit XmlTags(std::string_view xml) : xml_(xml) {}

  /// The next tag; kEnd after the last.
  /// Errors: kInvalidArgument with the position, in bytes. Cost: O(length of the tag and its text).
  StatusOr<XmlTag> Next();

  /// Bytes read so far. Cost: O(1).
  std::size_t position() const { return at_; }

 private:
  Status Broken(std::string_view what) const;
  Status SkipTo(std::string_view end);
  Status ReadAttributes(XmlTag& tag);
  void SkipSpace();
  std::string_view ReadName();

  std::string_view xml_;
  std::size_t at_ = 0;
};

}  // namespace qrm
