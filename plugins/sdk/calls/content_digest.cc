// Adds up what the fields hash to, since a sum has no order.
#include "plugins/sdk/calls/content_digest.h"

#include <array>
#include <cstddef>
#include <functional>

#include <boost/container_hash/hash.hpp>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace qrm::calls {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

/// Messages in messages, as deep as protobuf itself reads.
constexpr int kDeepest = 100;

class Digester {
 public:
  explicit Digester(std::string_view bytes)
      : bytes_(bytes),
        in_(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size())) {}

  /// Adds the entries of the message's maps to `entries`, if any.
  // NOLINTNEXTLINE(misc-no-recursion): as deep as kDeepest
  std::optional<uint64_t> Run(const Descriptor* type, int depth,
                              std::vector<DigestedEntry>* entries = nullptr) {
    uint64_t sum = 0;
    for (std::size_t begin = 0; const uint32_t tag = in_.ReadTag(); begin = Position()) {
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      const FieldDescriptor* const field = type->FindFieldByNumber(number);
      const std::optional<uint64_t> value = ReadValue(tag, field, depth);
      if (!value.has_value()) {
        return std::nullopt;
      }
      const bool has_order = field == nullptr || !field->is_map();
      if (entries != nullptr && !has_order) {
        entries->push_back({bytes_.substr(begin, Position() - begin), *value});
      }
      std::size_t hash = tag;
      boost::hash_combine(hash, has_order ? NextPlace(number) : 0);
      boost::hash_combine(hash, *value);
      sum += hash;
    }
    return in_.ConsumedEntireMessage() ? std::optional(sum) : std::nullopt;
  }

 private:
  std::size_t Position() const { return static_cast<std::size_t>(in_.CurrentPosition()); }

  uint32_t NextPlace(int number) {
    return ++places_[static_cast<std::size_t>(number) % places_.size()];
  }

  // NOLINTNEXTLINE(misc-no-recursion): as above
  std::optional<uint64_t> ReadValue(uint32_t tag, const FieldDescriptor* field, int depth) {
    uint64_t value = 0;
    uint32_t narrow = 0;
    switch (WireFormatLite::GetTagWireType(tag)) {
      case WireFormatLite::WIRETYPE_VARINT:
        return in_.ReadVarint64(&value) ? std::optional(value) : std::nullopt;
      case WireFormatLite::WIRETYPE_FIXED64:
        return in_.ReadLittleEndian64(&value) ? std::optional(value) : std::nullopt;
      case WireFormatLite::WIRETYPE_FIXED32:
        return in_.ReadLittleEndian32(&narrow) ? std::optional<uint64_t>(narrow) : std::nullopt;
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        return ReadPart(field, depth);
      default:
        return std::nullopt;
    }
  }

  // NOLINTNEXTLINE(misc-no-recursion): as above
  std::optional<uint64_t> ReadPart(const FieldDescriptor* field, int depth) {
    uint32_t size = 0;
    if (!in_.ReadVarint32(&size)) {
      return std::nullopt;
    }
    const std::size_t begin = Position();
    if (!in_.Skip(static_cast<int>(size))) {
      return std::nullopt;
    }
    const std::string_view part = bytes_.substr(begin, size);
    const Descriptor* const type = field == nullptr ? nullptr : field->message_type();
    if (type == nullptr) {
      return std::hash<std::string_view>()(part);
    }
    return depth == kDeepest ? std::nullopt : Digester(part).Run(type, depth + 1);
  }

  const std::string_view bytes_;
  google::protobuf::io::CodedInputStream in_;
  /// Of the elements of lists, by the number of their field: they stand in their order, the entries
  /// of a map in none.
  std::array<uint32_t, 32> places_{};
};

}  // namespace

std::optional<Digested> ContentDigest(const Descriptor& type, std::string_view bytes) {
  Digested digested;
  const std::optional<uint64_t> digest = Digester(bytes).Run(&type, 0, &digested.entries);
  if (!digest.has_value()) {
    return std::nullopt;
  }
  digested.digest = *digest;
  return digested;
}

}  // namespace qrm::calls
