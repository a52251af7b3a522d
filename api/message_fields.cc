// Reads tags and lengths by protobuf's own reader.
#include "api/message_fields.h"

#include <cstdint>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace qrm {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

/// The next field's bytes, after its tag. Nothing when it has no end.
std::optional<std::string_view> ReadBytes(CodedInputStream& in, std::string_view message) {
  uint32_t size = 0;
  if (!in.ReadVarint32(&size)) {
    return std::nullopt;
  }
  const auto begin = static_cast<std::size_t>(in.CurrentPosition());
  if (size > message.size() - begin || !in.Skip(static_cast<int>(size))) {
    return std::nullopt;
  }
  return message.substr(begin, size);
}

}  // namespace

std::optional<std::string> TakeFields(std::string_view message, const TakeField& take) {
  std::string rest;
  CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()),
                      static_cast<int>(message.size()));
  while (true) {
    const auto begin = static_cast<std::size_t>(in.CurrentPosition());
    const uint32_t tag = in.ReadTag();
    if (tag == 0) {
      return in.ConsumedEntireMessage() ? std::optional(std::move(rest)) : std::nullopt;
    }
    bool taken = false;
    if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      const std::optional<std::string_view> bytes = ReadBytes(in, message);
      if (!bytes.has_value()) {
        return std::nullopt;
      }
      taken = take(WireFormatLite::GetTagFieldNumber(tag), *bytes);
    } else if (!WireFormatLite::SkipField(&in, tag)) {
      return std::nullopt;
    }
    if (!taken) {
      rest += message.substr(begin, static_cast<std::size_t>(in.CurrentPosition()) - begin);
    }
  }
}

std::optional<std::vector<std::string_view>> PartsOf(std::string_view message, std::size_t bytes) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  const auto rest = TakeFields(message, [&](int, std::string_view field) {
    const auto end = static_cast<std::size_t>(field.data() + field.size() - message.data());
    if (end - begin >= bytes) {
      parts.push_back(message.substr(begin, end - begin));
      begin = end;
    }
    return true;
  });
  if (!rest.has_value()) {
    return std::nullopt;
  }
  if (begin < message.size()) {
    parts.push_back(message.substr(begin));
  }
  return parts;
}

}  // namespace qrm
