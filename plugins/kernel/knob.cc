// The tables of knobs, and values in the form that a knob's table gives; finds the knobs' files,
// and checks values against this process's permissions. Source: Linux Documentation/admin-
// guide/cgroup-v2.rst, cgroup-v1/memory.rst, kernel/sched/core.c (cpu_legacy_files, cpu_files),
// sched(7), proc_pid_oom_score_adj(5), cgroup-v1/net_cls.rst, cgroup-v1/net_prio.rst.
#include "plugins/kernel/knob.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include <unistd.h>

#include <fmt/format.h>

#include "api/base/cgroup.h"
#include "api/base/config_key.h"
#include "api/base/errorf.h"
#include "api/base/number.h"
#include "plugins/kernel/cgroup_table.h"
#include "plugins/kernel/file_classes.h"
#include "plugins/kernel/thread_attributes.h"

namespace qrm::kernel {
namespace {

constexpr std::string_view kMax = "max";
constexpr int kMostRealtimePriority = 99;

Status Wrong(const std::string& what) {
  return Errorf(StatusCode::kInvalidArgument, "write {}", what);
}

StatusOr<std::string> ShownNumber(const Knob& knob, const std::string& text) {
  const std::optional<int64_t> number = ParseNumber<int64_t>(text);
  if (!number.has_value() || *number < knob.least || *number > knob.most) {
    return Wrong(fmt::format("a whole number from {} to {}", knob.least, knob.most));
  }
  return std::to_string(*number);
}

StatusOr<std::string> ShownBytes(const Knob& knob, const std::string& text, uint64_t page) {
  const bool has_max = knob.neutral == kMax;
  if (has_max && text == kMax) {
    return text;
  }
  const StatusOr<uint64_t> bytes = config::ParseBytes(text);
  if (!bytes.ok() || *bytes > static_cast<uint64_t>(knob.most)) {
    return Wrong(
        fmt::format("a quantity up to {}, such as 512Mi{}", knob.most, has_max ? ", or max" : ""));
  }
  return std::to_string(*bytes / page * page);
}

StatusOr<std::string> ShownPercent(const std::string& text) {
  constexpr double kAll = 100;
  const std::optional<double> percent =
      text == kMax ? std::optional(kAll) : ParseNumber<double>(text);
  if (!percent.has_value() || !(*percent >= 0) || *percent > kAll) {
    return Wrong("a percentage from 0 to 100, such as 12.5, or max");
  }
  return *percent == kAll ? std::string(kMax) : fmt::format("{:.2f}", *percent);
}

StatusOr<std::string> ShownPolicy(const std::string& text) {
  if (text == "other" || text == "batch" || text == "idle") {
    return text;
  }
  for (const std::string_view name : {"fifo ", "rr "}) {
    const auto priority = text.starts_with(name)
                              ? ParseNumber<int>(std::string_view(text).substr(name.size()))
                              : std::nullopt;
    if (priority.has_value() && *priority >= 1 && *priority <= kMostRealtimePriority) {
      return fmt::format("{}{}", name, *priority);
    }
  }
  return Wrong("other, batch, idle, or fifo or rr with a priority from 1 to 99, such as 'fifo 10'");
}

StatusOr<std::string> ShownClassId(const Knob& knob, const std::string& text) {
  constexpr int kHex = 16;
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    return ShownNumber(knob, text);
  }
  const std::string_view view = text;
  const auto major = ParseNumber<uint16_t>(view.substr(0, colon), kHex);
  const auto minor = ParseNumber<uint16_t>(view.substr(colon + 1), kHex);
  if (!major.has_value() || !minor.has_value()) {
    return Wrong("a class of tc such as 10:1, in hexadecimal, or one decimal number");
  }
  return std::to_string(*major * (int64_t{1} << kHex) + *minor);
}

/// `{eth0: 5, eth1: 3}` or `{"8:0": 10000}` as lines. Errors: kInvalidArgument with the key.
StatusOr<std::string> ReadMapping(const config::Section& section, const Knob& knob) {
  QRM_ASSIGN_OR_RETURN(const config::Section child, section.Child(knob.name));
  const bool by_device = knob.form == ValueForm::kByDevice;
  std::string lines;
  for (const std::string& key : child.Keys()) {
    const std::size_t colon = key.find(':');
    const bool is_device = colon != std::string::npos &&
                           ParseNumber<uint32_t>(key.substr(0, colon)).has_value() &&
                           ParseNumber<uint32_t>(key.substr(colon + 1)).has_value();
    if (by_device && !is_device) {
      return child.Error(key, "is not a block device", "write its numbers, such as \"8:0\"");
    }
    QRM_ASSIGN_OR_RETURN(const uint64_t number, child.Number(key, 0));
    if (number > static_cast<uint64_t>(knob.most)) {
      return child.Error(key, fmt::format("is {}", number),
                         fmt::format("write a number up to {}", knob.most));
    }
    lines += fmt::format("{}{} {}{}", lines.empty() ? "" : "\n", key, by_device ? "target=" : "",
                         number);
  }
  return lines;
}

StatusOr<KnobValues> ReadClass(const config::Section& section, const KnobType& type) {
  static const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  KnobValues values;
  for (const std::string& key : section.Keys()) {
    const auto knob =
        std::ranges::find_if(type.knobs, [&](const Knob& one) { return one.name == key; });
    if (knob == type.knobs.end()) {
      std::vector<std::string> names;
      names.reserve(type.knobs.size());
      for (const Knob& one : type.knobs) {
        names.push_back(one.name);
      }
      return section.Error(key, "is not a known key",
                           "choose from " + config::EnumerateWords(names, "and"));
    }
    if (IsMapping(knob->form)) {
      QRM_ASSIGN_OR_RETURN(values[key], ReadMapping(section, *knob));
      continue;
    }
    QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, ""));
    StatusOr<std::string> shown = ShownValue(*knob, text, page);
    if (!shown.ok()) {
      return section.Error(key, fmt::format("is '{}'", text), MessageOf(shown.status()));
    }
    values[key] = *std::move(shown);
  }
  return values;
}

namespace fs = std::filesystem;

bool Exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

/// With CONFIG_RT_GROUP_SCHED, real-time threads need a budget of their cgroup.
Status CheckPolicy(const std::string& value, const KnobMachine& machine) {
  const bool realtime = value.starts_with("fifo") || value.starts_with("rr");
  if (realtime && machine.HasFile("cpu.rt_runtime_us")) {
    return Errorf(
        StatusCode::kFailedPrecondition,
        "policy {} needs a real-time budget, which containers lack on a kernel with "
        "CONFIG_RT_GROUP_SCHED (cpu.rt_runtime_us); use other, batch or idle, or another kernel",
        value);
  }
  return OkStatus();
}

Status NotHere(const KnobType& type, const Knob& knob, const KnobMachine& machine) {
  std::vector<std::string> others;
  for (const Knob& one : type.knobs) {
    if (IsOf(one, machine) && (one.place == KnobPlace::kThreads || machine.HasFile(one.name))) {
      others.push_back(one.name);
    }
  }
  const std::string why = !IsOf(knob, machine)
                              ? fmt::format("it exists in cgroup v{} only", machine.is_v1 ? 2 : 1)
                          : machine.files_root.empty()
                              ? fmt::format("the controller {} is not mounted", type.controller)
                              : fmt::format("no cgroup in {} has it", machine.files_root);
  return Errorf(
      StatusCode::kFailedPrecondition, "this machine has no {}: {}; remove it from the class{}{}",
      knob.name, why, knob.instead.empty() ? "" : "; instead, " + knob.instead,
      others.empty() ? "" : "; this machine has " + config::EnumerateWords(others, "and"));
}

/// The root's file lists all interfaces.
Status CheckInterfaces(const Knob& knob, const std::string& lines, const KnobMachine& machine) {
  const CgroupFile file{.name = knob.name};
  const auto known = ParseLines(file, ReadLine(machine.files_root + "/" + knob.name));
  for (const auto& [interface, number] : ParseLines(file, lines)) {
    if (!known.contains(interface)) {
      return Errorf(StatusCode::kFailedPrecondition,
                    "this machine has no interface {}; correct {} of the class", interface,
                    knob.name);
    }
  }
  return OkStatus();
}

constexpr char kMaxValue[] = "max";
constexpr int64_t kMostBytes = int64_t{1} << 53;
constexpr int64_t kMostBurst = 1'000'000'000;  // microseconds
constexpr int64_t kMostSwappiness = 200;
constexpr int64_t kLeastNice = -20;
constexpr int64_t kMostNice = 19;
constexpr int64_t kLeastOomScoreAdj = -1000;
constexpr int64_t kMostOomScoreAdj = 1000;

Knob BytesKnob(const char* name, KnobPlace place, const char* neutral, const char* reset = "") {
  return {.name = name,
          .place = place,
          .form = ValueForm::kBytes,
          .most = kMostBytes,
          .neutral = neutral,
          .reset = reset};
}

Knob NumberKnob(const char* name, KnobPlace place, int64_t most, const char* neutral) {
  return {.name = name, .place = place, .most = most, .neutral = neutral};
}

Knob PercentKnob(const char* name, const char* neutral) {
  return {.name = name, .form = ValueForm::kPercent, .most = 100, .neutral = neutral};
}

KnobType Memory() {
  return {.name = "memory",
          .controller = "memory",
          .knobs = {BytesKnob("memory.high", KnobPlace::kFileV2, kMaxValue),
                    BytesKnob("memory.low", KnobPlace::kFileV2, "0"),
                    BytesKnob("memory.min", KnobPlace::kFileV2, "0"),
                    BytesKnob("memory.swap.high", KnobPlace::kFileV2, kMaxValue),
                    BytesKnob("memory.swap.max", KnobPlace::kFileV2, kMaxValue),
                    BytesKnob("memory.zswap.max", KnobPlace::kFileV2, kMaxValue),
                    BytesKnob("memory.soft_limit_in_bytes", KnobPlace::kFileV1, "", "-1"),
                    NumberKnob("memory.swappiness", KnobPlace::kFileV1, kMostSwappiness, "")}};
}

// Of the pod's cgroup: a container's protection counts only within its pod's.
KnobType MemoryProtection() {
  return {.name = "memory-protection",
          .level = sdk::ClassLevel::kPod,
          .controller = "memory",
          .knobs = {BytesKnob("memory.low", KnobPlace::kFileV2, "0"),
                    BytesKnob("memory.min", KnobPlace::kFileV2, "0")}};
}

KnobType CpuScheduling() {
  Knob idle = NumberKnob("cpu.idle", KnobPlace::kFile, 1, "0");
  idle.spoils = {"cpu.shares", "cpu.weight"};
  idle.is_of_pods = true;
  return {.name = kSchedulingType,
          .controller = "cpu",
          .knobs = {idle,
                    PercentKnob("cpu.uclamp.min", "0.00"),
                    PercentKnob("cpu.uclamp.max", kMaxValue),
                    NumberKnob("cpu.cfs_burst_us", KnobPlace::kFileV1, kMostBurst, "0"),
                    NumberKnob("cpu.max.burst", KnobPlace::kFileV2, kMostBurst, "0"),
                    {.name = kNice,
                     .place = KnobPlace::kThreads,
                     .least = kLeastNice,
                     .most = kMostNice,
                     .neutral = "0"},
                    {.name = kPolicy,
                     .place = KnobPlace::kThreads,
                     .form = ValueForm::kPolicy,
                     .neutral = "other"}},
          .built_in = {{kIdleClass, {{"cpu.idle", "1"}}}}};
}

// Immutable: kubelet computed the former values of a container's processes, and they cannot be
// queried.
KnobType Oom() {
  return {.name = "oom",
          .is_mutable = false,
          .controller = "memory",
          .knobs = {NumberKnob("memory.oom.group", KnobPlace::kFileV2, 1, "0"),
                    {.name = kOomScoreAdj,
                     .place = KnobPlace::kThreads,
                     .least = kLeastOomScoreAdj,
                     .most = kMostOomScoreAdj}}};
}

constexpr int64_t kMostClassId = (int64_t{1} << 32) - 1;
constexpr char kWithoutNetCls[] =
    "match the pod's cgroup with nftables (socket cgroupv2) or eBPF, or limit it by a network "
    "plugin (kubernetes.io/egress-bandwidth)";

constexpr int64_t kMostLatency = 60'000'000;  // microseconds

// Of the pod's cgroup: the kernel compares siblings.
KnobType IoLatency() {
  return {.name = "io-latency",
          .level = sdk::ClassLevel::kPod,
          .controller = "io",
          .knobs = {{.name = "io.latency",
                     .place = KnobPlace::kFileV2,
                     .form = ValueForm::kByDevice,
                     .most = kMostLatency,
                     .neutral = "target=0"}}};
}

// Sockets of the host's network only: packets lose their sender where they leave a pod's network.
KnobType Network() {
  return {.name = "network",
          .controller = "net_cls",
          .knobs = {{.name = "net_cls.classid",
                     .place = KnobPlace::kFileV1,
                     .form = ValueForm::kClassId,
                     .most = kMostClassId,
                     .neutral = "0",
                     .instead = kWithoutNetCls},
                    {.name = "net_prio.ifpriomap",
                     .place = KnobPlace::kFileV1,
                     .form = ValueForm::kByInterface,
                     .most = kMostClassId,
                     .neutral = "0",
                     .instead = kWithoutNetCls}}};
}

}  // namespace

StatusOr<std::string> ShownValue(const Knob& knob, const std::string& text, uint64_t page) {
  switch (knob.form) {
    case ValueForm::kBytes:
      return ShownBytes(knob, text, page);
    case ValueForm::kPercent:
      return ShownPercent(text);
    case ValueForm::kPolicy:
      return ShownPolicy(text);
    case ValueForm::kClassId:
      return ShownClassId(knob, text);
    case ValueForm::kByInterface:
    case ValueForm::kByDevice:
    case ValueForm::kNumber:
      break;
  }
  return ShownNumber(knob, text);
}

StatusOr<std::map<std::string, KnobValues>> ParseKnobClasses(const config::Section& file,
                                                             const KnobType& type) {
  return ParseClasses<KnobValues>(
      file, [&type](const config::Section& section) { return ReadClass(section, type); });
}

bool KnobMachine::HasFile(const std::string& name) const {
  if (files_root.empty()) {
    return false;
  }
  if (Exists(files_root + "/" + name)) {
    return true;
  }
  std::error_code error;
  for (fs::directory_iterator at(files_root, error), end; !error && at != end;
       at.increment(error)) {
    if (Exists(at->path() / name)) {
      return true;
    }
  }
  return false;
}

KnobMachine FindKnobs(const std::string& controller, const std::string& cgroup_root) {
  KnobMachine machine;
  const auto files = FindCgroupHierarchy(cgroup_root, controller, controller);
  if (files.ok()) {
    machine.files_root = files->root;
    machine.is_v1 = files->is_v1;
  } else {
    machine.is_v1 = !Exists(cgroup_root + "/cgroup.controllers");
  }
  // In cgroup v1, the hierarchy where a container can be frozen.
  const auto threads = FindCgroupHierarchy(cgroup_root, "freezer", "memory");
  machine.threads_root = threads.ok() ? threads->root : machine.files_root;
  return machine;
}

bool IsMapping(ValueForm form) {
  return form == ValueForm::kByInterface || form == ValueForm::kByDevice;
}

bool IsOf(const Knob& knob, const KnobMachine& machine) {
  return knob.place != (machine.is_v1 ? KnobPlace::kFileV2 : KnobPlace::kFileV1);
}

Status CheckValues(const KnobType& type, const KnobValues& values, const KnobMachine& machine) {
  for (const Knob& knob : type.knobs) {
    const auto value = values.find(knob.name);
    if (value == values.end()) {
      continue;
    }
    if (knob.place == KnobPlace::kThreads) {
      QRM_RETURN_IF_ERROR(CheckMaySet(knob.name, value->second));
    } else if (!IsOf(knob, machine) || !machine.HasFile(knob.name)) {
      return NotHere(type, knob, machine);
    }
    if (knob.form == ValueForm::kByInterface) {
      QRM_RETURN_IF_ERROR(CheckInterfaces(knob, value->second, machine));
    }
    if (knob.name == kPolicy) {
      QRM_RETURN_IF_ERROR(CheckPolicy(value->second, machine));
    }
  }
  return OkStatus();
}

const std::vector<KnobType>& KnobTypes() {
  static const std::vector<KnobType> types = {Memory(), MemoryProtection(), CpuScheduling(),
                                              Oom(),    Network(),          IoLatency()};
  return types;
}

}  // namespace qrm::kernel
