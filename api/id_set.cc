// Implements IdSet's bit operations, and reads and writes the kernel's list form.
#include "api/id_set.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "api/base/check.h"
#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/number.h"
#include "api/base/text.h"

namespace qrm {
namespace {

constexpr int kWordBits = 64;

std::size_t WordOf(int id) {
  return static_cast<std::size_t>(id) / kWordBits;
}
uint64_t BitOf(int id) {
  return uint64_t{1} << (static_cast<unsigned>(id) % kWordBits);
}

/// A whole non-negative number below IdSet::kMaxIds, or -1.
int ParseId(std::string_view text) {
  const std::optional<int> id = ParseNumber<int>(text);
  return !id.has_value() || text.front() == '-' || *id >= IdSet::kMaxIds ? -1 : *id;
}

}  // namespace

bool IdSet::Has(int id) const {
  return id >= 0 && WordOf(id) < words_.size() && (words_[WordOf(id)] & BitOf(id)) != 0;
}

int IdSet::Count() const {
  int count = 0;
  for (const uint64_t word : words_) {
    count += std::popcount(word);
  }
  return count;
}

int IdSet::Last() const {
  if (words_.empty()) {
    return -1;
  }
  return static_cast<int>(words_.size()) * kWordBits - 1 - std::countl_zero(words_.back());
}

int IdSet::Next(int id) const {
  const int from = id + 1;
  for (std::size_t i = WordOf(from); i < words_.size(); ++i) {
    uint64_t word = words_[i];
    if (i == WordOf(from)) {
      word &= ~(BitOf(from) - 1);
    }
    if (word != 0) {
      return static_cast<int>(i) * kWordBits + std::countr_zero(word);
    }
  }
  return -1;
}

void IdSet::Add(int id) {
  QRM_CHECK(id >= 0 && id < kMaxIds);
  if (WordOf(id) >= words_.size()) {
    words_.resize(WordOf(id) + 1, 0);
  }
  words_[WordOf(id)] |= BitOf(id);
}

void IdSet::Remove(int id) {
  if (Has(id)) {
    words_[WordOf(id)] &= ~BitOf(id);
    Trim();
  }
}

bool IdSet::IsSubsetOf(const IdSet& other) const {
  if (words_.size() > other.words_.size()) {
    return false;
  }
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if ((words_[i] & ~other.words_[i]) != 0) {
      return false;
    }
  }
  return true;
}

bool IdSet::Intersects(const IdSet& other) const {
  const std::size_t common = std::min(words_.size(), other.words_.size());
  for (std::size_t i = 0; i < common; ++i) {
    if ((words_[i] & other.words_[i]) != 0) {
      return true;
    }
  }
  return false;
}

int IdSet::CompareAsNumber(const IdSet& other) const {
  if (words_.size() != other.words_.size()) {
    return words_.size() < other.words_.size() ? -1 : 1;
  }
  for (std::size_t i = words_.size(); i-- > 0;) {
    if (words_[i] != other.words_[i]) {
      return words_[i] < other.words_[i] ? -1 : 1;
    }
  }
  return 0;
}

void IdSet::AddRange(int first, int last) {
  for (int id = first; id <= last; ++id) {
    Add(id);
  }
}

void IdSet::Intersect(const IdSet& other) {
  words_.resize(std::min(words_.size(), other.words_.size()));
  for (std::size_t i = 0; i < words_.size(); ++i) {
    words_[i] &= other.words_[i];
  }
  Trim();
}

void IdSet::Unite(const IdSet& other) {
  words_.resize(std::max(words_.size(), other.words_.size()), 0);
  for (std::size_t i = 0; i < other.words_.size(); ++i) {
    words_[i] |= other.words_[i];
  }
}

void IdSet::Subtract(const IdSet& other) {
  const std::size_t common = std::min(words_.size(), other.words_.size());
  for (std::size_t i = 0; i < common; ++i) {
    words_[i] &= ~other.words_[i];
  }
  Trim();
}

Status IdSet::ParseInto(std::string_view text, std::string_view what) {
  std::string_view rest = Trimmed(text);
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const auto dash = item.find('-');
    const int first = item.empty() ? -1 : ParseId(item.substr(0, dash));
    int last = first;
    if (dash != std::string_view::npos) {
      last = dash + 1 < item.size() ? ParseId(item.substr(dash + 1)) : -1;
    }
    const bool ends_in_comma = comma != std::string_view::npos && comma + 1 == rest.size();
    if (first < 0 || last < first || ends_in_comma) {
      return Errorf(
          StatusCode::kInvalidArgument,
          "cannot read {} \"{}\": \"{}\" is not a number or ascending range below {}; write "
          "it like 0-3,8",
          what, Quoted(text), Quoted(item), kMaxIds);
    }
    AddRange(first, last);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return OkStatus();
}

std::string IdSet::ListForm() const {
  std::string text;
  for (int first = First(); first >= 0;) {
    int last = first;
    while (Has(last + 1)) {
      ++last;
    }
    if (!text.empty()) {
      text += ',';
    }
    text += std::to_string(first);
    if (last > first) {
      text += '-';
      text += std::to_string(last);
    }
    first = Next(last);
  }
  return text;
}

void IdSet::Trim() {
  while (!words_.empty() && words_.back() == 0) {
    words_.pop_back();
  }
}

}  // namespace qrm
