// Tells apart what messages say, whatever the order in which they say it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace google::protobuf {
class Descriptor;
}  // namespace google::protobuf

namespace qrm::calls {

/// An entry of a map: its field, tag included, and what tells its content from others'.
struct DigestedEntry {
  std::string_view field;
  uint64_t digest = 0;
};

struct Digested {
  /// The same for two messages that differ in nothing but the order of their fields and of the
  /// entries of their maps, which Go writes in another order each time; for others it is hardly
  /// ever the same. It holds in this process only.
  uint64_t digest = 0;
  /// Of the message's own maps, not of those in its parts; they point into its bytes.
  std::vector<DigestedEntry> entries;
};

/// Of a serialized message of `type`. Absent for bytes that are no fields. Cost: one pass over the
/// bytes; nothing is built but the entries. Source: Protocol Buffers, "Encoding".
std::optional<Digested> ContentDigest(const google::protobuf::Descriptor& type,
                                      std::string_view bytes);

}  // namespace qrm::calls
