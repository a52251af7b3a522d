// The table of kernel values that the classes of a type set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace qrm::knobs {

/// Where the kernel has a knob.
enum class KnobPlace : uint8_t {
  kFileV1,  ///< a cgroup file in v1 only
  kFileV2,  ///< in v2 only
  kFile,    ///< in both, with the same name
  kThreads  ///< an attribute of each thread or process
};

/// The form of a knob's values.
enum class ValueForm : uint8_t {
  kNumber,   ///< a whole number
  kBytes,    ///< a quantity such as 512Mi; the kernel keeps whole pages
  kPercent,  ///< with two decimals; the kernel shows 100 as "max"
  kPolicy,   ///< a scheduling policy: other, batch, idle, "fifo 10", "rr 10"
};

/// The thread attribute of a knob.
enum class ThreadAttribute : uint8_t {
  kNone,
  kNice,
  kPolicy,
  kOomScoreAdj,  ///< of the thread's process
};

/// One value that a class may set. Only `name`, `place` and `form` are required.
struct Knob {
  std::string name;  ///< the kernel's name, also used in the type's file
  KnobPlace place = KnobPlace::kFile;
  ValueForm form = ValueForm::kNumber;
  int64_t least = 0;
  int64_t most = 0;
  /// The kernel's default; empty: the value of the hierarchy's root. A thread attribute without it
  /// is not reset: its former value is not known.
  std::string neutral;
  std::string reset;  ///< what to write to reset it; empty: `neutral`
  ThreadAttribute attribute = ThreadAttribute::kNone;
  /// Files whose value the kernel drops while this one is not neutral: they are restored
  /// afterwards.
  std::vector<std::string> spoils;
};

/// One type of classes.
struct KnobType {
  std::string name;
  bool is_mutable = true;
  std::string controller;  ///< the controller of its files, the same in v1 and v2
  std::vector<Knob> knobs;
};

/// memory, cpu-scheduling and oom. A new type is one more entry.
const std::vector<KnobType>& KnobTypes();

}  // namespace qrm::knobs
