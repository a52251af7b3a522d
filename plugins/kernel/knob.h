// Types of classes that are tables of kernel values, or change quotas of CPUs: the tables, their
// files, and what a machine has of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/base/section.h"
#include "api/base/status.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::kernel {

/// Where the kernel has a knob.
enum class KnobPlace : uint8_t {
  kFileV1,  ///< a cgroup file in v1 only
  kFileV2,  ///< in v2 only
  kFile,    ///< in both, with the same name
  kThreads  ///< an attribute of each thread or process
};

/// The form of a knob's values.
enum class ValueForm : uint8_t {
  kNumber,       ///< a whole number
  kBytes,        ///< a quantity such as 512Mi; the kernel keeps whole pages
  kPercent,      ///< with two decimals; the kernel shows 100 as "max"
  kPolicy,       ///< a scheduling policy: other, batch, idle, "fifo 10", "rr 10"
  kClassId,      ///< a class of tc, "10:1" in hexadecimal; the kernel shows one decimal number
  kByInterface,  ///< lines of an interface and a number, from a mapping
  kByDevice,     ///< lines of a block device and "target=" with a number, from a mapping
};

/// The knobs that are attributes of threads; the last one is of the thread's process.
inline constexpr char kNice[] = "nice";
inline constexpr char kPolicy[] = "policy";
inline constexpr char kOomScoreAdj[] = "oom_score_adj";

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
  /// Files whose value the kernel drops while this one is not neutral: they are restored
  /// afterwards.
  std::vector<std::string> spoils;
  /// The kernel compares it between siblings: beside other pods, the value of the pod's cgroup
  /// counts. The pod has it while all of its containers have it.
  bool is_of_pods = false;
  std::string instead;  ///< what to use where the machine does not have it; empty: nothing
};

/// One type of classes.
struct KnobType {
  std::string name;
  bool is_mutable = true;
  sdk::ClassLevel level = sdk::ClassLevel::kContainer;
  std::string controller;  ///< the controller of its files, the same in v1 and v2
  std::vector<Knob> knobs;
  std::map<std::string, std::map<std::string, std::string>> built_in;  ///< classes without a file
};

/// The type with cpu.idle, and its built-in class of idle weight.
inline constexpr char kSchedulingType[] = "cpu-scheduling";
inline constexpr char kIdleClass[] = "idle";

/// memory, memory-protection, cpu-scheduling, oom, network and io-latency. A new type is one more
/// entry.
const std::vector<KnobType>& KnobTypes();

/// Knob -> value, in the form that the kernel shows.
using KnobValues = std::map<std::string, std::string>;

/// Reads `classes: {NAME: {KNOB: VALUE, ...}}` by the table of `type`. Errors: kInvalidArgument
/// with file, line and key for anything else.
StatusOr<std::map<std::string, KnobValues>> ParseKnobClasses(const config::Section& file,
                                                             const KnobType& type);

/// The value that the kernel shows after `text` was written to `knob`; `page` is the page size.
/// Errors: kInvalidArgument with the permitted values.
StatusOr<std::string> ShownValue(const Knob& knob, const std::string& text, uint64_t page);

/// Where a type's knobs are on one machine.
struct KnobMachine {
  std::string files_root;  ///< the hierarchy with the type's controller; empty: none
  bool is_v1 = true;
  std::string threads_root;  ///< the hierarchy where containers can be frozen
  /// The journal of the values that the kernel drops while a knob is set, to restore them also
  /// after a restart; empty: they are not restored.
  std::string journal;

  /// Whether the root cgroup or one of its children has the file. Some files are not in the root,
  /// and in v2 most exist only where the controller is enabled.
  [[nodiscard]] bool HasFile(const std::string& name) const;
};

/// The files of `controller`, with cgroups mounted below `cgroup_root`.
KnobMachine FindKnobs(const std::string& controller, const std::string& cgroup_root);

/// OK if containers on `machine` can have all of `values`. Errors: kFailedPrecondition with the
/// first impossible value, and what to do.
Status CheckValues(const KnobType& type, const KnobValues& values, const KnobMachine& machine);

/// Whether the values of `form` are lines with a key each.
bool IsMapping(ValueForm form);

/// Whether `knob` fits this machine's cgroup version, if the kernel has it.
bool IsOf(const Knob& knob, const KnobMachine& machine);

/// The classes of `config_file` by the table of `type`, which must outlive the provider, on
/// `machine`. The runtime sets what it can at creation (cgroup v2's files, oom_score_adj). Apply
/// sets the rest before the first instruction, and everything on running containers. If any class
/// sets a knob, containers of other classes, or without a class, get its neutral value. Knobs that
/// no class sets are not changed. Errors: kInvalidArgument for a file that cannot be read or has an
/// error.
StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeKnobProvider(const KnobType& type,
                                                               const std::string& config_file,
                                                               KnobMachine machine);

inline constexpr char kQuotaType[] = "cpu-quota";

/// How a class changes kubelet's quota.
struct QuotaClass {
  bool is_lifted = false;  ///< no quota
  int burst_percent = 0;   ///< the part of the quota that may be saved and used later; 0 to 100

  bool operator==(const QuotaClass&) const = default;
};

/// Reads `classes: {NAME: {quota: none}, NAME: {burst: 50%}}`. Errors: kInvalidArgument with file,
/// line and key for anything else.
StatusOr<std::map<std::string, QuotaClass>> ParseQuotaClasses(const config::Section& file);

/// The classes of `config_file`. A container's class is set on its cgroup and on its pod's cgroup,
/// whose quota would otherwise limit it. This happens before the first instruction, and again after
/// the runtime or kubelet has overwritten it. The class cannot change while the container runs:
/// kubelet's original quota is no longer known. Errors: kInvalidArgument for a file that cannot be
/// read or has an error. Source: Linux Documentation/scheduler/sched-bwc.rst, cgroup-v2.rst,
/// cpu.max.
StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeQuotaProvider(const std::string& config_file,
                                                                KnobMachine machine);

}  // namespace qrm::kernel
