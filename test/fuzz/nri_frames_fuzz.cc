// The framing of NRI connections: the messages do not depend on how the bytes are cut.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "api/base/check.h"
#include "manager/runtime/nri/frames.h"

namespace {

using Message = std::tuple<uint32_t, uint32_t, std::string>;  // connection, stream, data

/// Everything that `trunk` carries when it arrives in pieces of `piece` bytes.
std::vector<Message> Decode(std::string_view trunk, std::size_t piece) {
  std::vector<Message> messages;
  qrm::manager::MuxDecoder mux;
  std::map<uint32_t, qrm::manager::TtrpcDecoder> connections;
  while (!trunk.empty()) {
    const qrm::Status read =
        mux.Feed(trunk.substr(0, piece), [&](uint32_t connection, std::string_view bytes) {
          connections[connection].Feed(bytes, [&](const qrm::manager::TtrpcFrame& frame) {
            messages.emplace_back(connection, frame.stream, frame.data);
          });
        });
    if (!read.ok()) {
      break;
    }
    trunk.remove_prefix(std::min(piece, trunk.size()));
  }
  return messages;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::size_t piece = 1 + data[0] % 16;
  const std::string_view trunk(reinterpret_cast<const char*>(data) + 1, size - 1);
  QRM_CHECK(Decode(trunk, piece) == Decode(trunk, trunk.size() + 1));
  return 0;
}
