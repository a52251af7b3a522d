// Reads frames as the runtime's Go code does.
#include "test/support/go_reader.h"

#include <algorithm>

#include <fmt/format.h>

namespace qrm::test {
namespace {

constexpr std::size_t kBuffer = 4096;
constexpr std::size_t kHeader = 10;
constexpr std::size_t kLargestMessage = std::size_t{4} << 20;
constexpr int kQueuedFrames = 256;

}  // namespace

uint32_t Read32(const char* bytes) {
  const auto* octets = reinterpret_cast<const unsigned char*>(bytes);
  return uint32_t{octets[0]} << 24 | uint32_t{octets[1]} << 16 | uint32_t{octets[2]} << 8 |
         octets[3];
}

std::string Pack32(std::size_t value) {
  return {static_cast<char>(value >> 24 & 0xff), static_cast<char>(value >> 16 & 0xff),
          static_cast<char>(value >> 8 & 0xff), static_cast<char>(value & 0xff)};
}

std::string GoReader::Take(std::string_view frame) {
  if (frame.size() > LargestFrame()) {
    return fmt::format("a frame of {} bytes where {} were asked for", frame.size(), LargestFrame());
  }
  buffered_ += frame;
  if (++frames_ > kQueuedFrames) {
    return fmt::format("more than {} frames for one message", kQueuedFrames);
  }
  if (buffered_.size() >= kHeader && Read32(buffered_.data()) > kLargestMessage) {
    return fmt::format("a message of {} bytes", Read32(buffered_.data()));
  }
  return {};
}

// Go reads a message's header through a buffer of 4096 bytes, and the rest of a large message
// straight into its target: a frame must fit what is asked for at that moment.
std::size_t GoReader::LargestFrame() const {
  if (buffered_.size() < kHeader) {
    return kBuffer;
  }
  return std::max(kBuffer, Read32(buffered_.data()) - (buffered_.size() - kHeader));
}

std::optional<GoMessage> GoReader::Next() {
  if (buffered_.size() < kHeader) {
    return std::nullopt;
  }
  const std::size_t length = Read32(buffered_.data());
  if (buffered_.size() < kHeader + length) {
    return std::nullopt;
  }
  GoMessage message{.stream = Read32(buffered_.data() + 4),
                    .type = static_cast<uint8_t>(buffered_[8]),
                    .data = buffered_.substr(kHeader, length)};
  buffered_.erase(0, kHeader + length);
  frames_ = 0;
  return message;
}

}  // namespace qrm::test
