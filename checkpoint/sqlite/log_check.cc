// Follows the chain of frames: each checksum continues the previous one, so that the chain can be
// resumed behind a bad frame from the checksums as they are stored.
#include "checkpoint/sqlite/log_check.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string_view>

#include <sys/stat.h>

#include "checkpoint/sqlite/sqlite_error.h"

namespace qrm::checkpoint {
namespace {

constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kFrameHeaderBytes = 24;
constexpr uint32_t kLogMagic = 0x377f0682;  // the lowest bit is the checksums' byte order
constexpr uint32_t kMaxPageBytes = 65536;

using Sum = std::array<uint32_t, 2>;

uint32_t BigEndian(std::string_view bytes, std::size_t at) {
  uint32_t word = 0;
  for (std::size_t i = 0; i < sizeof word; ++i) {
    word = word << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return word;
}

class Log {
 public:
  explicit Log(std::string_view bytes) : bytes_(bytes) {
    big_endian_sums_ = (BigEndian(bytes_, 0) & 1) != 0;
    page_bytes_ = BigEndian(bytes_, 8);
  }

  bool HasSoundHeader() const {
    return (BigEndian(bytes_, 0) & ~1U) == kLogMagic && page_bytes_ >= 512 &&
           page_bytes_ <= kMaxPageBytes && (page_bytes_ & (page_bytes_ - 1)) == 0 &&
           Extend({0, 0}, bytes_.substr(0, 24)) == SumAt(24);
  }

  std::size_t FrameCount() const {
    return (bytes_.size() - kHeaderBytes) / (kFrameHeaderBytes + page_bytes_);
  }

  /// Whether frame `index` is of this log and continues `before`.
  bool Continues(std::size_t index, const Sum& before) const {
    const std::size_t at = At(index);
    return bytes_.substr(at + 8, 8) == bytes_.substr(16, 8) &&
           Extend(Extend(before, bytes_.substr(at, 8)),
                  bytes_.substr(at + kFrameHeaderBytes, page_bytes_)) == StoredSum(index);
  }
  Sum HeaderSum() const { return SumAt(24); }
  Sum StoredSum(std::size_t index) const { return SumAt(At(index) + 16); }
  bool Commits(std::size_t index) const { return BigEndian(bytes_, At(index) + 4) != 0; }

 private:
  std::size_t At(std::size_t index) const {
    return kHeaderBytes + index * (kFrameHeaderBytes + page_bytes_);
  }
  Sum SumAt(std::size_t at) const { return {BigEndian(bytes_, at), BigEndian(bytes_, at + 4)}; }

  Sum Extend(Sum sum, std::string_view data) const {
    for (std::size_t at = 0; at + 8 <= data.size(); at += 8) {
      sum[0] += Word(data, at) + sum[1];
      sum[1] += Word(data, at + 4) + sum[0];
    }
    return sum;
  }
  uint32_t Word(std::string_view data, std::size_t at) const {
    const uint32_t word = BigEndian(data, at);
    return big_endian_sums_ ? word : __builtin_bswap32(word);
  }

  std::string_view bytes_;
  bool big_endian_sums_ = false;
  uint32_t page_bytes_ = 0;
};

LogCondition Check(const Log& log) {
  const std::size_t frames = log.FrameCount();
  std::size_t index = 0;
  Sum sum = log.HeaderSum();
  while (index < frames && log.Continues(index, sum)) {
    sum = log.StoredSum(index++);
  }
  int commits = 0;  // in the chain that begins behind the last bad frame
  for (; index < frames; ++index) {
    commits = log.Continues(index, sum) ? commits + (log.Commits(index) ? 1 : 0) : 0;
    if (commits == 2) {
      return LogCondition::kInterrupted;
    }
    sum = log.StoredSum(index);
  }
  return LogCondition::kSound;
}

}  // namespace

StatusOr<LogCondition> CheckLog(const std::string& path) {
  const std::string log_path = path + "-wal";
  struct stat status = {};
  if (::stat(log_path.c_str(), &status) != 0) {
    return errno == ENOENT ? StatusOr<LogCondition>(LogCondition::kSound)
                           : SystemError(errno, "read", log_path);
  }
  if (!S_ISREG(status.st_mode)) {
    return LogCondition::kHeadless;
  }
  std::ifstream file(log_path, std::ios::binary);
  if (!file) {
    return SystemError(errno, "read", log_path);
  }
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (bytes.size() <= kHeaderBytes + kFrameHeaderBytes) {
    return LogCondition::kSound;
  }
  const Log log(bytes);
  return log.HasSoundHeader() ? Check(log) : LogCondition::kHeadless;
}

}  // namespace qrm::checkpoint
