// How the runtime's Go code reads a plugin's bytes: which mux frames it can take, and the resulting
// messages. Written separately from the code under test.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace qrm::test {

/// "AB\0\1" is 0x41420001 and back.
uint32_t Read32(const char* bytes);
std::string Pack32(std::size_t value);

/// One ttrpc message.
struct GoMessage {
  uint32_t stream = 0;
  uint8_t type = 0;
  std::string data;
};

/// The bytes of one logical connection.
class GoReader {
 public:
  /// Takes one mux frame; returns the error of Go's reader, empty when there is none.
  std::string Take(std::string_view frame);
  /// The next whole message.
  std::optional<GoMessage> Next();

 private:
  std::size_t LargestFrame() const;

  std::string buffered_;
  int frames_ = 0;  // since the last whole message
};

}  // namespace qrm::test
