// Cuts a stream of bytes into lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace qrm::cluster {

/// Keeps the beginning of a line until its end has come.
class LineBuffer {
 public:
  /// More than any object that etcd takes, many times.
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20;

  /// Calls `on_line` for each line that ends in `part`. False when a line is longer than
  /// kMostBytes.
  template <typename OnLine>
  bool Append(std::string_view part, const OnLine& on_line) {
    for (auto end = part.find('\n'); end != std::string_view::npos; end = part.find('\n')) {
      if (rest_.empty()) {
        on_line(part.substr(0, end));
      } else {
        rest_.append(part.substr(0, end));
        on_line(std::string_view(rest_));
        rest_.clear();
      }
      part.remove_prefix(end + 1);
    }
    rest_.append(part);
    return rest_.size() <= kMostBytes;
  }

 private:
  std::string rest_;
};

}  // namespace qrm::cluster
