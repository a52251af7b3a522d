// The tables. Source: Linux Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst,
// kernel/sched/core.c (cpu_legacy_files, cpu_files), sched(7), proc_pid_oom_score_adj(5).
#include "plugins/kernel/knob.h"

namespace qrm::kernel {
namespace {

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
                    {.name = "nice",
                     .place = KnobPlace::kThreads,
                     .least = kLeastNice,
                     .most = kMostNice,
                     .neutral = "0",
                     .attribute = ThreadAttribute::kNice},
                    {.name = "policy",
                     .place = KnobPlace::kThreads,
                     .form = ValueForm::kPolicy,
                     .neutral = "other",
                     .attribute = ThreadAttribute::kPolicy}},
          .built_in = {{kIdleClass, {{"cpu.idle", "1"}}}}};
}

// Immutable: kubelet computed the former values of a container's processes, and they cannot be
// queried.
KnobType Oom() {
  return {.name = "oom",
          .is_mutable = false,
          .controller = "memory",
          .knobs = {NumberKnob("memory.oom.group", KnobPlace::kFileV2, 1, "0"),
                    {.name = "oom_score_adj",
                     .place = KnobPlace::kThreads,
                     .least = kLeastOomScoreAdj,
                     .most = kMostOomScoreAdj,
                     .attribute = ThreadAttribute::kOomScoreAdj}}};
}

}  // namespace

const std::vector<KnobType>& KnobTypes() {
  static const std::vector<KnobType> types = {Memory(), MemoryProtection(), CpuScheduling(), Oom()};
  return types;
}

}  // namespace qrm::kernel
