// One attribute of a compute specification: "exclusive", "freq=2.1GHz", "no-irq?", "nice=5".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"

namespace qrm::cci {

/// What an attribute requires of the CPUs of its line.
enum class AttributeKind : uint8_t {
  kExclusive,     ///< for no other container
  kShared,        ///< they stay in the shared pool
  kSmtRequired,   ///< with every thread of each core
  kSmtPreferred,  ///< with as many whole cores as possible
  kSmtDenied,     ///< one thread of each core; the other threads stay idle
  kCoreType,      ///< cores of one type: `word` is "performance" or "efficiency"
  kNuma,          ///< on `nodes`
  kNumaSingle,    ///< on any single node
  kMemory,        ///< the memory policy: `word` is "bind", "preferred" or "interleave"
  // From here to kNoBalance: values of the machine.
  kFrequency,         ///< runs at `least` kHz or more, and at most `most` kHz unless 0
  kMostFrequency,     ///< runs at `most` kHz or less
  kGovernor,          ///< the cpufreq governor `word`
  kEnergyPreference,  ///< the energy performance preference `word`
  kPriority,          ///< `least` thousandths: fast cores first
  kNoIrq,             ///< handles no movable interrupt
  kIdleLatency,       ///< wakes up within `least` microseconds; 0: never sleeps
  kNoBalance,         ///< the kernel does not move threads between these CPUs
  kSchedule,          ///< the scheduling policy of all threads: `word` is "fifo 10"
  kNice,              ///< the nice value of all threads: `word`
  kOther,             ///< any other attribute; not supported here
};

/// One parsed attribute.
struct Attribute {
  AttributeKind kind = AttributeKind::kOther;
  bool is_wish = false;  ///< may stay unmet
  std::string text;      ///< without the '?', in a canonical form: "freq=2100000kHz"
  std::string word;
  NumaMask nodes;
  int64_t least = 0;
  int64_t most = 0;

  bool operator==(const Attribute&) const = default;
};

/// What the attributes of a line apply to.
enum class AttributeScope : uint8_t {
  kCpus,       ///< the CPUs of a line of cores
  kContainer,  ///< the threads of the whole container
};

/// Reads a line of attributes, separated by commas:
///
///   attr   = name [ "=" value ] [ "?" ]
///   legacy = number ("GHz" | "MHz" | "kHz") | number "priority"
///
/// Case and blanks are ignored, and '_' equals '-'. Errors: kInvalidArgument as `column 5: 'x' ...;
/// ...` for an unknown name, another scope, an impossible value, a repeated attribute, and
/// attributes that exclude each other.
StatusOr<std::vector<Attribute>> ParseAttributes(std::string_view line,
                                                 AttributeScope scope = AttributeScope::kCpus);

/// The attributes as a line; optional attributes end in '?'.
std::string ToString(const std::vector<Attribute>& attributes);

}  // namespace qrm::cci
