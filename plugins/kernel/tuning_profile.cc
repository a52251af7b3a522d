// Reads tuning profiles.
#include "plugins/kernel/tuning_profile.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include <fmt/format.h>

#include "api/base/section.h"
#include "plugins/kernel/tunable_machine.h"

namespace qrm::kernel {
namespace {

using config::Section;
using Meaning = Frequency::Meaning;

std::optional<Frequency> FrequencyOf(const std::string& text) {
  if (text == "min") {
    return Frequency{Meaning::kLeast};
  }
  if (text == "base") {
    return Frequency{Meaning::kBase};
  }
  if (text == "max" || text == "turbo") {
    return Frequency{Meaning::kMost};
  }
  const auto khz = ParseFrequency(text);
  return khz.has_value() ? std::optional(Frequency{Meaning::kNumber, *khz}) : std::nullopt;
}

StatusOr<Frequency> ReadFrequency(const Section& section, std::string_view key) {
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, ""));
  if (!section.Has(key)) {
    return Frequency();
  }
  const auto frequency = FrequencyOf(text);
  return frequency.has_value()
             ? StatusOr<Frequency>(*frequency)
             : section.Error(key, fmt::format("is '{}', which is not a frequency", text),
                             "write one such as 2.1GHz, or min, base, max or turbo");
}

/// Whether `least` is above `most` on any hardware.
bool IsReversed(const FrequencyRange& range) {
  const auto rank = [](Meaning meaning) { return static_cast<int>(meaning); };
  const auto& [least, most] = range;
  if (least.meaning == Meaning::kUntouched || most.meaning == Meaning::kUntouched) {
    return false;
  }
  if (least.meaning == Meaning::kNumber || most.meaning == Meaning::kNumber) {
    return least.meaning == most.meaning && least.khz > most.khz;
  }
  return rank(least.meaning) > rank(most.meaning);
}

StatusOr<FrequencyRange> ReadRange(const Section& parent, std::string_view key) {
  QRM_ASSIGN_OR_RETURN(const Section section, parent.Child(key));
  QRM_RETURN_IF_ERROR(section.AllowKeys({"min", "max"}));
  FrequencyRange range;
  QRM_ASSIGN_OR_RETURN(range.least, ReadFrequency(section, "min"));
  QRM_ASSIGN_OR_RETURN(range.most, ReadFrequency(section, "max"));
  if (IsReversed(range)) {
    return section.Error("max", "is below min", "write at least min");
  }
  return range;
}

/// Reads a name that the kernel uses.
StatusOr<std::string> ReadWord(const Section& section, std::string_view key) {
  QRM_ASSIGN_OR_RETURN(std::string word, section.Text(key, ""));
  const bool good = std::ranges::all_of(
      word, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
  if (!good || (section.Has(key) && word.empty())) {
    return section.Error(key,
                         fmt::format("is '{}', which is not a name that the kernel uses", word),
                         "write one such as performance");
  }
  return word;
}

StatusOr<std::optional<int64_t>> ReadWakeUp(const Section& section) {
  constexpr uint64_t kMost = 1000000;
  constexpr char kKey[] = "idle-latency-us";
  if (!section.Has(kKey)) {
    return std::optional<int64_t>();
  }
  QRM_ASSIGN_OR_RETURN(const uint64_t microseconds, section.Number(kKey, 0));
  if (microseconds > kMost) {
    return section.Error(kKey, fmt::format("is {}, which is more than a second", microseconds),
                         "write microseconds; 0 keeps the CPUs awake");
  }
  return std::optional(static_cast<int64_t>(microseconds));
}

StatusOr<std::map<std::string, std::string>> ReadQos(const Section& parent) {
  QRM_ASSIGN_OR_RETURN(const Section section, parent.Child("qos"));
  std::map<std::string, std::string> classes;
  for (const std::string& type : section.Keys()) {
    QRM_ASSIGN_OR_RETURN(classes[type], section.Text(type, ""));
    if (classes[type].empty()) {
      return section.Error(type, "has no class", "write a class from `qrmctl classes`");
    }
  }
  return classes;
}

StatusOr<TuningProfile> ReadProfile(const Section& section) {
  QRM_RETURN_IF_ERROR(
      section.AllowKeys({"freq", "governor", "epp", "idle-latency-us", "uncore", "irq", "qos"}));
  TuningProfile read;
  QRM_ASSIGN_OR_RETURN(read.frequency, ReadRange(section, "freq"));
  QRM_ASSIGN_OR_RETURN(read.governor, ReadWord(section, "governor"));
  QRM_ASSIGN_OR_RETURN(read.preference, ReadWord(section, "epp"));
  QRM_ASSIGN_OR_RETURN(read.wake_up_us, ReadWakeUp(section));
  QRM_ASSIGN_OR_RETURN(read.uncore, ReadRange(section, "uncore"));
  QRM_ASSIGN_OR_RETURN(const std::size_t irq, section.Choice("irq", 0, {"any", "none", "sink"}));
  read.irq = static_cast<IrqRule>(irq);
  QRM_ASSIGN_OR_RETURN(read.qos, ReadQos(section));
  for (const Frequency& bound : {read.uncore.least, read.uncore.most}) {
    if (bound.meaning == Meaning::kBase) {
      return section.Error("uncore", "has 'base', which an uncore does not have",
                           "write a frequency, min or max");
    }
  }
  return read;
}

}  // namespace

StatusOr<TuningProfiles> ParseTuningProfiles(const Section& section) {
  TuningProfiles profiles;
  QRM_ASSIGN_OR_RETURN(const Section parent, section.Child("classes"));
  QRM_ASSIGN_OR_RETURN(const auto children, section.Children("classes"));
  for (const auto& [name, child] : children) {
    QRM_ASSIGN_OR_RETURN(profiles[name], ReadProfile(child));
    if (profiles[name] == TuningProfile()) {
      return parent.Error(
          name, "sets nothing",
          "write freq, governor, epp, idle-latency-us, uncore, irq or qos, or remove the class");
    }
  }
  return profiles;
}

}  // namespace qrm::kernel
