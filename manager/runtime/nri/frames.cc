// Encodes and decodes the frames of the mux and of ttrpc.
#include "manager/runtime/nri/frames.h"

#include <algorithm>
#include <utility>

#include "api/base/errorf.h"

namespace qrm::manager {
namespace {

/// More of a message is reserved only once so much has come.
constexpr std::size_t kReservedBytes = std::size_t{32} << 20;

uint32_t ReadBigEndian(const char* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

void AppendBigEndian(std::string& out, std::size_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(value >> shift & 0xff));
  }
}

/// Moves bytes from the front of `bytes` into `header` until it is full; true when it is.
template <std::size_t kSize>
bool FillHeader(std::string_view& bytes, std::array<char, kSize>& header, std::size_t& filled) {
  const std::size_t take = std::min(bytes.size(), kSize - filled);
  std::copy_n(bytes.begin(), take, header.begin() + static_cast<std::ptrdiff_t>(filled));
  bytes.remove_prefix(take);
  filled += take;
  return filled == kSize;
}

}  // namespace

Status MuxDecoder::Feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    if (payload_left_ == 0) {
      if (!FillHeader(bytes, header_, header_size_)) {
        return OkStatus();
      }
      header_size_ = 0;
      connection_ = ReadBigEndian(header_.data());
      payload_left_ = ReadBigEndian(header_.data() + 4);
      if (payload_left_ > kMaxReceiveBytes + header_.size()) {
        return Errorf(StatusCode::kDataLoss,
                      "cannot read the NRI connection: a frame of {} bytes exceeds {}; is this an "
                      "NRI socket?",
                      payload_left_, kMaxReceiveBytes);
      }
      continue;
    }
    const std::size_t take = std::min(bytes.size(), payload_left_);
    payload_left_ -= take;
    sink(connection_, bytes.substr(0, take));
    bytes.remove_prefix(take);
  }
  return OkStatus();
}

void TtrpcDecoder::ReadHeader() {
  const uint32_t length = ReadBigEndian(header_.data());
  frame_ = TtrpcFrame{.stream = ReadBigEndian(header_.data() + 4),
                      .type = static_cast<TtrpcType>(header_[8]),
                      .flags = static_cast<uint8_t>(header_[9]),
                      .oversized = length > kMaxReceiveBytes ? length : 0};
  data_left_ = length;
  if (frame_.oversized == 0) {
    // Else it grows by copies, which together are as large as the message.
    frame_.data.reserve(std::min<std::size_t>(length, kReservedBytes));
  }
}

void TtrpcDecoder::Feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    if (header_size_ < header_.size()) {
      if (!FillHeader(bytes, header_, header_size_)) {
        return;
      }
      ReadHeader();
    }
    const std::size_t take = std::min(bytes.size(), data_left_);
    if (frame_.oversized == 0) {
      frame_.data.append(bytes.substr(0, take));
    }
    bytes.remove_prefix(take);
    data_left_ -= take;
    if (data_left_ == 0) {
      header_size_ = 0;
      if (frame_.type >= TtrpcType::kRequest && frame_.type <= TtrpcType::kData) {
        sink(std::exchange(frame_, {}));
      }
    }
  }
}

std::string EncodeMuxHeader(uint32_t connection, std::size_t payload_size) {
  std::string header;
  AppendBigEndian(header, connection);
  AppendBigEndian(header, payload_size);
  return header;
}

std::string EncodeTtrpcHeader(uint32_t stream, TtrpcType type, std::size_t data_size) {
  std::string header;
  AppendBigEndian(header, data_size);
  AppendBigEndian(header, stream);
  header.push_back(static_cast<char>(type));
  header.push_back(0);
  return header;
}

}  // namespace qrm::manager
