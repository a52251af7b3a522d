// Classes of CPUs: what is set of the machine for those who own them.
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

namespace qrm::tuning {

/// A frequency as configurations write it.
struct Frequency {
  enum class Meaning : uint8_t {
    kUntouched,
    kLeast,  ///< the lowest of the hardware
    kBase,   ///< the highest without turbo
    kMost,   ///< the highest of the hardware
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

/// Whether CPUs handle interrupts; in the order of their words in configurations.
enum class IrqRule : uint8_t {
  kAny,
  kNone,  ///< they do not, but for those that the kernel lets nobody move
  kSink,  ///< no others do
};

/// What is set for CPUs of a class; what it leaves out stays as the machine has it.
struct CpuClass {
  FrequencyRange frequency;
  std::string governor;               ///< of cpufreq; empty: untouched
  std::string preference;             ///< energy performance preference; empty: untouched
  std::optional<int64_t> wake_up_us;  ///< a CPU wakes up within so long; 0: it never sleeps
  FrequencyRange uncore;              ///< of the die
  IrqRule irq = IrqRule::kAny;
  /// Of the containers that run there: type -> class of QoS-class resources, where they ask for
  /// none. It sets nothing of the CPUs.
  std::map<std::string, std::string> qos;

  bool operator==(const CpuClass&) const = default;
};
using CpuClasses = std::map<std::string, CpuClass>;

/// Reads `classes: {NAME: {freq: {min: base, max: turbo}, governor: performance, epp: performance,
/// idle-latency-us: 10, uncore: {min: max}, irq: none, qos: {cpu-scheduling: batch}}}`. Errors:
/// kInvalidArgument with file, line, key, value and what is allowed.
StatusOr<CpuClasses> ParseCpuClasses(const config::Section& section);

/// Which CPUs are of which class.
struct TuningPlan {
  CpuClasses classes;
  std::map<std::string, CpuSet> cpus;  ///< by class, apart from each other
  CpuSet foreign;  ///< CPUs that somebody else tunes: what they share with others is not touched

  bool operator==(const TuningPlan&) const = default;
};

}  // namespace qrm::tuning
