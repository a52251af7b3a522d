// Tuning profiles, which configurations call classes of CPUs: the machine's values for the CPUs'
// owners.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "api/base/status.h"
#include "api/id_set.h"

namespace qrm::config {
class Section;
}  // namespace qrm::config

namespace qrm::kernel {

/// A frequency in a configuration.
struct Frequency {
  enum class Meaning : uint8_t {
    kUntouched,
    kLeast,  ///< the hardware's lowest
    kBase,   ///< the hardware's highest without turbo
    kMost,   ///< the hardware's highest
    kNumber,
  };
  Meaning meaning = Meaning::kUntouched;
  int64_t khz = 0;  ///< for kNumber

  bool operator==(const Frequency&) const = default;
};

/// Bounds of a frequency.
struct FrequencyRange {
  Frequency least;
  Frequency most;

  bool operator==(const FrequencyRange&) const = default;
};

/// Whether CPUs handle interrupts; in the order of the words in configurations.
enum class IrqRule : uint8_t {
  kAny,
  kNone,  ///< only interrupts that the kernel does not allow to be moved
  kSink,  ///< only CPUs with this rule handle interrupts
};

/// The values for CPUs of a profile; unset values are not changed.
struct TuningProfile {
  FrequencyRange frequency;
  std::string governor;               ///< cpufreq governor; empty: not changed
  std::string preference;             ///< energy performance preference; empty: not changed
  std::optional<int64_t> wake_up_us;  ///< the longest wake-up time; 0: the CPU never sleeps
  FrequencyRange uncore;              ///< the die's frequency
  IrqRule irq = IrqRule::kAny;
  /// Default classes of QoS-class resources for containers on these CPUs: type -> class. They do
  /// not change the CPUs.
  std::map<std::string, std::string> qos;

  bool operator==(const TuningProfile&) const = default;
};
using TuningProfiles = std::map<std::string, TuningProfile>;

/// Reads `classes: {NAME: {freq: {min: base, max: turbo}, governor: performance, epp: performance,
/// idle-latency-us: 10, uncore: {min: max}, irq: none, qos: {cpu-scheduling: batch}}}`. Errors:
/// kInvalidArgument with file, line, key, value and what is allowed.
StatusOr<TuningProfiles> ParseTuningProfiles(const config::Section& section);

/// The CPUs of each profile.
struct TuningPlan {
  TuningProfiles profiles;
  std::map<std::string, CpuSet> cpus;  ///< by profile, disjoint
  CpuSet foreign;  ///< CPUs that a compute driver tunes: values that they share are not changed

  bool operator==(const TuningPlan&) const = default;
};

}  // namespace qrm::kernel
