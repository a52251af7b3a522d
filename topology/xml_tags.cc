// A scanner over the text; nothing is kept but the position.
#include "topology/xml_tags.h"

#include <array>
#include <cstring>
#include <utility>

namespace qrm {
namespace {

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool EndsName(char c) {
  return IsSpace(c) || std::strchr("=/><\"'", c) != nullptr;
}

/// Resolves the predefined entities; others stay as written, nothing here depends on them.
std::string Resolved(std::string_view raw) {
  constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {
      {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}}};
  std::string value;
  while (!raw.empty()) {
    std::size_t used = 1;
    char c = raw.front();
    for (const auto& [entity, meaning] : kEntities) {
      if (raw.substr(0, entity.size()) == entity) {
        used = entity.size();
        c = meaning;
      }
    }
    value += c;
    raw.remove_prefix(used);
  }
  return value;
}

}  // namespace

std::string_view XmlTag::Get(std::string_view key) const {
  const auto found = attributes.find(key);
  return found == attributes.end() ? std::string_view() : std::string_view(found->second);
}

Status XmlTags::Broken(std::string_view what) const {
  return Errorf(StatusCode::kInvalidArgument, "{} at byte {}", what, at_);
}

Status XmlTags::SkipTo(std::string_view end) {
  const std::size_t found = xml_.find(end, at_);
  if (found == std::string_view::npos) {
    return Broken("a tag does not end");
  }
  at_ = found + end.size();
  return OkStatus();
}

void XmlTags::SkipSpace() {
  while (at_ < xml_.size() && IsSpace(xml_[at_])) {
    ++at_;
  }
}

std::string_view XmlTags::ReadName() {
  const std::size_t start = at_;
  while (at_ < xml_.size() && !EndsName(xml_[at_])) {
    ++at_;
  }
  return xml_.substr(start, at_ - start);
}

Status XmlTags::ReadAttributes(XmlTag& tag) {
  while (true) {
    SkipSpace();
    if (at_ >= xml_.size()) {
      return Broken("a tag does not end");
    }
    if (xml_[at_] == '>') {
      ++at_;
      return OkStatus();
    }
    if (xml_.substr(at_, 2) == "/>" && tag.kind == XmlTag::Kind::kOpen) {
      at_ += 2;
      tag.kind = XmlTag::Kind::kEmpty;
      return OkStatus();
    }
    const std::string_view key = ReadName();
    if (key.empty() || xml_.substr(at_, 2) != "=\"") {
      return Broken("an attribute has no value in double quotes");
    }
    at_ += 2;
    const std::size_t end = xml_.find('"', at_);
    if (end == std::string_view::npos) {
      return Broken("a value does not end");
    }
    tag.attributes.insert_or_assign(std::string(key), Resolved(xml_.substr(at_, end - at_)));
    at_ = end + 1;
  }
}

StatusOr<XmlTag> XmlTags::Next() {
  while (true) {
    XmlTag tag;
    const std::size_t start = xml_.find('<', at_);
    if (start == std::string_view::npos) {
      at_ = xml_.size();
      return tag;
    }
    tag.text_before = xml_.substr(at_, start - at_);
    at_ = start + 1;
    const std::string_view rest = xml_.substr(at_);
    if (rest.substr(0, 3) == "!--") {
      QRM_RETURN_IF_ERROR(SkipTo("-->"));
      continue;
    }
    if (rest.substr(0, 1) == "!" || rest.substr(0, 1) == "?") {
      QRM_RETURN_IF_ERROR(SkipTo(">"));
      continue;
    }
    tag.kind = XmlTag::Kind::kOpen;
    if (rest.substr(0, 1) == "/") {
      tag.kind = XmlTag::Kind::kClose;
      ++at_;
    }
    tag.name = std::string(ReadName());
    if (tag.name.empty()) {
      return Broken("a tag has no name");
    }
    QRM_RETURN_IF_ERROR(ReadAttributes(tag));
    return tag;
  }
}

}  // namespace qrm
