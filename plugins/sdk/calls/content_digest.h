// Tells apart what messages say, whatever the order in which they say it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <google/protobuf/descriptor.h>

namespace qrm::calls {

/// A number that is the same for two serialized messages of `type` that differ in nothing but the
/// order of their fields and of the entries of their maps, which Go writes in another order each
/// time; for others it is hardly ever the same. It holds in this process only. Absent for bytes
/// that are no fields. Cost: one pass over the bytes; nothing is built. Source: Protocol Buffers,
/// "Encoding".
std::optional<uint64_t> ContentDigest(const google::protobuf::Descriptor& type,
                                      std::string_view bytes);

}  // namespace qrm::calls
