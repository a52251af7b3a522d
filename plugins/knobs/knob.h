// What a type of classes is where its classes only set values that the kernel has: a table of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace qrm::knobs {

/// Where a knob is.
enum class KnobPlace : uint8_t {
  kFileV1,  ///< a cgroup file of v1 only
  kFileV2,  ///< of v2 only
  kFile,    ///< of both, with the same name
  kThreads  ///< an attribute of each thread, or process
};

/// How values of a knob are written.
enum class ValueForm : uint8_t {
  kNumber,   ///< a whole number
  kBytes,    ///< a quantity, as 512Mi; the kernel keeps whole pages
  kPercent,  ///< to two decimals; the kernel calls 100 "max"
  kPolicy,   ///< a scheduling policy: other, batch, idle, "fifo 10", "rr 10"
};

/// Which attribute of a thread a knob is.
enum class ThreadAttribute : uint8_t {
  kNone,
  kNice,
  kPolicy,
  kOomScoreAdj,  ///< of its process
};

/// One value that a class may set. All but `name`, `place` and `form` may be left out.
struct Knob {
  std::string name;  ///< as the kernel and the type's file call it
  KnobPlace place = KnobPlace::kFile;
  ValueForm form = ValueForm::kNumber;
  int64_t least = 0;
  int64_t most = 0;
  /// What the kernel shows where nobody set anything; empty: what the root of the hierarchy has. A
  /// thread attribute without it is not taken back: what was there before is not known.
  std::string neutral;
  std::string reset;  ///< what is written for that; empty: `neutral`
  ThreadAttribute attribute = ThreadAttribute::kNone;
  /// Files whose value the kernel forgets while this one is not neutral: they get it back.
  std::vector<std::string> spoils;
};

/// One type.
struct KnobType {
  std::string name;
  bool is_mutable = true;
  std::string controller;  ///< of its files, the same in v1 and v2
  std::vector<Knob> knobs;
};

/// memory, cpu-scheduling and oom. A new type is one more entry.
const std::vector<KnobType>& KnobTypes();

}  // namespace qrm::knobs
