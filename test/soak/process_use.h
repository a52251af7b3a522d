// Measures what a running process and a directory use.
#pragma once

#include <string>

#include <sys/types.h>

#include "api/base/status.h"

namespace qrm::test {

struct ProcessUse {
  double resident_mib = 0;
  double peak_mib = 0;  ///< most that was resident since the start, or ForgetPeak
  int descriptors = 0;
  int threads = 0;
};

/// Errors: kNotFound when there is no such process. Source: proc(5), /proc/PID/status and fd.
StatusOr<ProcessUse> ReadProcessUse(pid_t pid);

/// Counts the peak from now on. Source: proc(5), /proc/PID/clear_refs.
void ForgetPeak(pid_t pid);

/// The sizes of all files below a directory, in MiB.
struct DiskUse {
  double databases_mib = 0;  ///< all but the logs
  double logs_mib = 0;       ///< write-ahead logs: they keep their greatest size, 1 MiB as a rule
};
DiskUse ReadDiskUse(const std::string& directory);

}  // namespace qrm::test
