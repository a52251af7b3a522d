// What several owners want of one file of the machine, and the value that serves them all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"

namespace qrm::host {

/// What a file holds, and what becomes of several claims on it.
enum class ClaimForm : uint8_t {
  kWord,       ///< a word on which all must agree
  kFloor,      ///< a number: the highest
  kCeiling,    ///< a number: the lowest
  kLatency,    ///< pm_qos_resume_latency_us: the shortest; "n/a" is 0, and "0" no claim at all
  kCpuList,    ///< CPUs; each claim is those to leave
  kCpuMask,    ///< the same in hexadecimal words
  kCpuUnion,   ///< CPUs; each claim adds its own
  kPartition,  ///< cpuset.cpus.partition: a word, to which the kernel adds why it is not so
};

/// One owner's wish.
struct Claim {
  std::string path;  ///< below the root
  ClaimForm form = ClaimForm::kWord;
  std::string value;
  bool is_optional = false;  ///< a kernel that refuses it fails nothing, and is reported

  bool operator==(const Claim&) const = default;
};

/// The value that serves all of `values`, of which there is one at least, where the file had
/// `original`. CPUs that all would leave are replaced by those of `online` that nobody leaves.
/// Errors: kFailedPrecondition for claims that exclude each other, kInvalidArgument for a value
/// that cannot be read.
StatusOr<std::string> Combine(ClaimForm form, const std::string& original,
                              const std::vector<std::string>& values, const CpuSet& online);

/// Whether the file, and each claim, is a set of CPUs.
bool HoldsCpus(ClaimForm form);

/// Whether the kernel means the same by both.
bool IsSameValue(ClaimForm form, const std::string& a, const std::string& b);

/// Whether `shown` is what became of `ours`: the same, or a partition that the kernel has called
/// invalid since.
bool ComesFrom(ClaimForm form, const std::string& shown, const std::string& ours);

/// CPUs in the form of /proc/irq/default_smp_affinity: hexadecimal, a comma every 8 digits.
StatusOr<CpuSet> ParseCpuMask(const std::string& text);
/// `like` has as many words as are to be written: the kernel refuses more than it shows.
std::string CpuMaskText(const CpuSet& cpus, const std::string& like);

}  // namespace qrm::host
