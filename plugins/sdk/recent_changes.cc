// Numbers changes, and recognises numbers from other objects.
#include "plugins/sdk/recent_changes.h"

#include <charconv>
#include <random>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace qrm::sdk {
namespace {

std::string NewName() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}.", device(), device());
}

std::optional<uint64_t> NumberIn(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

}  // namespace

RecentChanges::RecentChanges(std::size_t most) : most_(most), self_(NewName()) {}

void RecentChanges::Note(const ContainerKey& key) {
  ++count_;
  latest_.push_back(key);
  if (latest_.size() > most_) {
    latest_.erase(latest_.begin());
  }
}

std::string RecentChanges::now() const {
  return self_ + std::to_string(count_);
}

std::optional<std::set<ContainerKey>> RecentChanges::Since(const std::string& now) const {
  if (!now.starts_with(self_)) {
    return std::nullopt;
  }
  const std::optional<uint64_t> number = NumberIn(std::string_view(now).substr(self_.size()));
  if (!number.has_value() || *number > count_ || count_ - *number > latest_.size()) {
    return std::nullopt;
  }
  return std::set<ContainerKey>(latest_.end() - static_cast<std::ptrdiff_t>(count_ - *number),
                                latest_.end());
}

}  // namespace qrm::sdk
