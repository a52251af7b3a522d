// One attribute of a compute specification: "exclusive", "freq=2.1GHz", "no-irq?", "nice=5".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"

namespace qrm::cci {

/// What an attribute says of the CPUs of its line.
enum class AttributeKind : uint8_t {
  kExclusive,         ///< no other container's
  kShared,            ///< they stay in the shared pool
  kSmtRequired,       ///< every thread of each core is among them
  kSmtPreferred,      ///< as many whole cores as possible
  kSmtDenied,         ///< one thread of each core; the others are idle
  kCoreType,          ///< of one kind of core: `word` is "performance" or "efficiency"
  kNuma,              ///< on `nodes`
  kNumaSingle,        ///< on one node, whichever
  kMemory,            ///< where memory comes from: `word` is "bind", "preferred" or "interleave"
  kFrequency,         ///< runs at `least` kHz or more, and up to `most` kHz unless that is 0
  kMostFrequency,     ///< runs at `most` kHz or less
  kGovernor,          ///< the cpufreq governor `word`
  kEnergyPreference,  ///< the energy performance preference `word`
  kPriority,          ///< `least` thousandths: fast cores first
  kNoIrq,             ///< no interrupt that can be moved is handled there
  kIdleLatency,       ///< wakes up within `least` microseconds; 0 is no idle state at all
  kNoBalance,         ///< the kernel moves no thread from one of them to another
  kSchedule,          ///< the scheduling policy of all threads: `word` is "fifo 10"
  kNice,              ///< their nice value: `word`
  kOther,             ///< an attribute of the grammar, or somebody's own, that has no kind here
};

/// One attribute as it was read.
struct Attribute {
  AttributeKind kind = AttributeKind::kOther;
  bool is_wish = false;  ///< may stay unmet
  std::string text;      ///< without the '?', in one way of writing: "freq=2100000kHz"
  std::string word;
  NumaMask nodes;
  int64_t least = 0;
  int64_t most = 0;

  bool operator==(const Attribute&) const = default;
};

/// What the attributes of a line are of.
enum class AttributeScope : uint8_t {
  kCpus,       ///< the CPUs of a line of cores
  kContainer,  ///< the threads of the whole container
};

/// Reads a line of attributes, separated by commas:
///
///   attr   = name [ "=" value ] [ "?" ]
///   legacy = number ("GHz" | "MHz" | "kHz") | number "priority"
///
/// Case and blanks do not count, '_' is '-'. Errors: kInvalidArgument as `column 5: 'x' ...; ...`
/// for an unknown name, one of another scope, an impossible value, an attribute that stands there
/// twice, and two that exclude each other.
StatusOr<std::vector<Attribute>> ParseAttributes(std::string_view line,
                                                 AttributeScope scope = AttributeScope::kCpus);

/// The same attributes as a line; those that are wishes end in '?'.
std::string ToString(const std::vector<Attribute>& attributes);

}  // namespace qrm::cci
