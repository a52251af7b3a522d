// The values that several owners request for one file of the machine, and the value that serves
// all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"

namespace qrm::kernel {

/// A file's format, and how several claims on it are combined.
enum class ClaimForm : uint8_t {
  kWord,       ///< a word; all claims must be equal
  kFloor,      ///< a number: the highest
  kCeiling,    ///< a number: the lowest
  kLatency,    ///< pm_qos_resume_latency_us: the shortest; "n/a" is 0, and "0" means no claim
  kCpuList,    ///< CPUs; each claim lists CPUs to remove
  kCpuMask,    ///< the same in hexadecimal words
  kCpuUnion,   ///< CPUs; each claim adds CPUs
  kPartition,  ///< cpuset.cpus.partition: a word; the kernel appends why it is not in effect
  kKept,       ///< a value that the kernel drops meanwhile: claims change nothing
};

/// One owner's request.
struct Claim {
  std::string path;  ///< below the root
  ClaimForm form = ClaimForm::kWord;
  std::string value;
  bool is_optional = false;  ///< if the kernel rejects it, it is only reported

  bool operator==(const Claim&) const = default;
};

/// The value that serves all of `values` (at least one), where the file had `original`. If the
/// claims remove all CPUs, the CPUs in `online` that no claim removes are used. Errors:
/// kFailedPrecondition for claims that exclude each other, kInvalidArgument for a value that cannot
/// be read.
StatusOr<std::string> Combine(ClaimForm form, const std::string& original,
                              const std::vector<std::string>& values, const CpuSet& online);

/// Whether the file, and each claim, is a CPU set.
bool HoldsCpus(ClaimForm form);

/// Whether both mean the same to the kernel.
bool IsSameValue(ClaimForm form, const std::string& a, const std::string& b);

/// Whether `shown` results from `ours`: the same value, or a partition that the kernel has since
/// marked invalid.
bool ComesFrom(ClaimForm form, const std::string& shown, const std::string& ours);

/// CPUs in the form of /proc/irq/default_smp_affinity: hexadecimal, a comma every 8 digits.
StatusOr<CpuSet> ParseCpuMask(const std::string& text);
/// Writes as many words as `like` has: the kernel rejects more words than it shows.
std::string CpuMaskText(const CpuSet& cpus, const std::string& like);

}  // namespace qrm::kernel
