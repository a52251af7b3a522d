// Encodes and decodes the two framings of an NRI connection, without I/O: the mux of the socket,
// and ttrpc in each of its logical connections.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "api/base/status.h"

namespace qrm::manager {

/// Logical connections on the mux. The plugin serves the first and calls on the second.
inline constexpr uint32_t kPluginConnection = 1;
inline constexpr uint32_t kRuntimeConnection = 2;

/// Peers reject longer ttrpc messages.
inline constexpr std::size_t kMaxSendBytes = std::size_t{4} << 20;
/// Old runtimes send longer messages for nodes with many containers.
inline constexpr std::size_t kMaxReceiveBytes = std::size_t{64} << 20;

/// Decodes the mux's frames: connection number and length, big-endian u32 each, then the payload.
/// Source: NRI, package multiplex.
class MuxDecoder {
 public:
  /// Receives a piece of a logical connection's byte stream; pieces end anywhere.
  using Sink = std::function<void(uint32_t connection, std::string_view piece)>;

  /// Errors: kDataLoss for an impossible length; the rest of the stream cannot be read then.
  Status Feed(std::string_view bytes, const Sink& sink);

 private:
  std::array<char, 8> header_{};
  std::size_t header_size_ = 0;
  uint32_t connection_ = 0;
  std::size_t payload_left_ = 0;
};

enum class TtrpcType : uint8_t { kRequest = 1, kResponse = 2, kData = 3 };

/// One ttrpc message. Source: containerd/ttrpc, PROTOCOL.md.
struct TtrpcFrame {
  uint32_t stream = 0;
  TtrpcType type = TtrpcType::kRequest;
  uint8_t flags = 0;
  std::string data;
  /// The length of a message beyond kMaxReceiveBytes, whose data was dropped; else 0.
  uint32_t oversized = 0;
};

/// Decodes one logical connection's byte stream into ttrpc messages, and skips those of unknown
/// types.
class TtrpcDecoder {
 public:
  using Sink = std::function<void(TtrpcFrame frame)>;

  void Feed(std::string_view bytes, const Sink& sink);

 private:
  void ReadHeader();

  std::array<char, 10> header_{};
  std::size_t header_size_ = 0;
  std::size_t data_left_ = 0;
  TtrpcFrame frame_;
};

std::string EncodeMuxHeader(uint32_t connection, std::size_t payload_size);
std::string EncodeTtrpcHeader(uint32_t stream, TtrpcType type, std::size_t data_size);

}  // namespace qrm::manager
