// Combines claims according to their form.
#include "plugins/kernel/claim.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/number.h"

namespace qrm::kernel {
namespace {

constexpr char kNoLatency[] = "n/a";
constexpr int kBitsOfWord = 32;
constexpr int kBase = 16;

/// Reads a number, or a CPU's longest wake-up time.
std::optional<int64_t> NumberOf(ClaimForm form, const std::string& value) {
  return form == ClaimForm::kLatency && value == kNoLatency ? std::optional<int64_t>(0)
                                                            : ParseNumber<int64_t>(value);
}

StatusOr<std::string> CombineNumbers(ClaimForm form, const std::vector<std::string>& values) {
  std::string chosen;
  std::optional<int64_t> best;
  for (const std::string& value : values) {
    const std::optional<int64_t> number = NumberOf(form, value);
    if (!number.has_value()) {
      return Errorf(StatusCode::kInvalidArgument, "'{}' is not a number", value);
    }
    if (!best.has_value() || (form == ClaimForm::kFloor ? *number > *best : *number < *best)) {
      chosen = value;
      best = number;
    }
  }
  return chosen;
}

StatusOr<CpuSet> ParseCpus(ClaimForm form, const std::string& text) {
  return form == ClaimForm::kCpuMask ? ParseCpuMask(text) : CpuSet::Parse(text);
}

StatusOr<std::string> WithCpus(const std::string& original,
                               const std::vector<std::string>& values) {
  QRM_ASSIGN_OR_RETURN(CpuSet all, CpuSet::Parse(original));
  for (const std::string& value : values) {
    QRM_ASSIGN_OR_RETURN(const CpuSet cpus, CpuSet::Parse(value));
    all |= cpus;
  }
  return ToString(all);
}

StatusOr<std::string> WithoutCpus(ClaimForm form, const std::string& original,
                                  const std::vector<std::string>& values, const CpuSet& online) {
  QRM_ASSIGN_OR_RETURN(const CpuSet before, ParseCpus(form, original));
  CpuSet left;
  for (const std::string& value : values) {
    QRM_ASSIGN_OR_RETURN(const CpuSet cpus, CpuSet::Parse(value));
    left |= cpus;
  }
  // The kernel rejects a set without an online CPU.
  const CpuSet kept = ((before - left) & online).Empty() ? online - left : before - left;
  if (kept.Empty()) {
    return Errorf(
        StatusCode::kFailedPrecondition,
        "no CPU would handle interrupts: all of {} must be quiet; leave one CPU to the system",
        ToString(online));
  }
  return form == ClaimForm::kCpuMask ? CpuMaskText(kept, original) : ToString(kept);
}

}  // namespace

bool HoldsCpus(ClaimForm form) {
  return form == ClaimForm::kCpuList || form == ClaimForm::kCpuMask || form == ClaimForm::kCpuUnion;
}

StatusOr<CpuSet> ParseCpuMask(const std::string& text) {
  CpuSet cpus;
  int bit = 0;
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit) {
    if (*digit == ',') {
      continue;
    }
    const auto value = ParseNumber<int>(std::string_view(&*digit, 1), kBase);
    if (!value.has_value() || bit + 4 > CpuSet::kMaxIds) {
      return Errorf(StatusCode::kInvalidArgument, "'{}' is not a mask of CPUs", text);
    }
    for (int i = 0; i < 4; ++i, ++bit) {
      if ((static_cast<unsigned>(*value) >> static_cast<unsigned>(i) & 1U) != 0) {
        cpus.Add(bit);
      }
    }
  }
  return cpus;
}

std::string CpuMaskText(const CpuSet& cpus, const std::string& like) {
  const auto words = static_cast<int>(std::ranges::count(like, ',')) + 1;
  const std::size_t digits = like.size() - (like.rfind(',') + 1);  // of the last word of `like`
  std::string text;
  for (int word = words - 1; word >= 0; --word) {
    uint32_t bits = 0;
    for (int bit = 0; bit < kBitsOfWord; ++bit) {
      bits |= cpus.Has(word * kBitsOfWord + bit) ? uint32_t{1} << static_cast<unsigned>(bit) : 0;
    }
    text += words == 1 ? fmt::format("{:0{}x}", bits, digits)
                       : fmt::format("{}{:08x}", text.empty() ? "" : ",", bits);
  }
  return text;
}

StatusOr<std::string> Combine(ClaimForm form, const std::string& original,
                              const std::vector<std::string>& values, const CpuSet& online) {
  switch (form) {
    case ClaimForm::kWord:
    case ClaimForm::kPartition:
      for (const std::string& value : values) {
        if (value != values.front()) {
          return Errorf(StatusCode::kFailedPrecondition,
                        "'{}' and '{}' are requested at once; request the same value, or neither",
                        values.front(), value);
        }
      }
      return values.front();
    case ClaimForm::kFloor:
    case ClaimForm::kCeiling:
    case ClaimForm::kLatency:
      return CombineNumbers(form, values);
    case ClaimForm::kCpuList:
    case ClaimForm::kCpuMask:
      return WithoutCpus(form, original, values, online);
    case ClaimForm::kCpuUnion:
      return WithCpus(original, values);
    case ClaimForm::kKept:
      return original;
  }
  return Errorf(StatusCode::kInternal, "unknown form of a claim");
}

bool ComesFrom(ClaimForm form, const std::string& shown, const std::string& ours) {
  return IsSameValue(form, shown, ours) ||
         (form == ClaimForm::kPartition && shown.starts_with(ours + " invalid"));
}

bool IsSameValue(ClaimForm form, const std::string& a, const std::string& b) {
  if (!HoldsCpus(form)) {
    return a == b;
  }
  const StatusOr<CpuSet> first = ParseCpus(form, a);
  const StatusOr<CpuSet> second = ParseCpus(form, b);
  return first.ok() && second.ok() ? *first == *second : a == b;
}

}  // namespace qrm::kernel
