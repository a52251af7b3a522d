// Reads and changes the files of one cgroup, line by line.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "plugins/kernel/kernel_files.h"

namespace qrm::kernel {

/// The form of a file's lines.
enum class LineForm {
  kKeyed,  ///< "KEY VALUE", any number of lines; one line is written at a time
  kWhole,  ///< one value for the whole file, under kNoKey
};

/// The key of a value without a key.
inline constexpr char kNoKey[] = "";

/// One file that a type sets.
struct CgroupFile {
  std::string name;
  LineForm form = LineForm::kKeyed;
  /// The value that the kernel shows if nothing is set, and the value to write to reset it. A line
  /// with the neutral value counts as not set.
  std::string neutral;
  std::string reset;
};

/// File -> key -> value, of all set values. Files without set values are not in it.
using CgroupTable = std::map<std::string, std::map<std::string, std::string>>;

/// The set lines in `text`, the content of `file`.
std::map<std::string, std::string> ParseLines(const CgroupFile& file, std::string_view text);

/// The set values in `files` of `cgroup`, a cgroup's directory; a missing file has none. Errors:
/// kNotFound when the cgroup is gone; the kernel's.
StatusOr<CgroupTable> ReadTable(const KernelFiles& cgroup, const std::vector<CgroupFile>& files);

/// Makes `files` of `cgroup` equal to `wanted`. First writes every line that differs, each in one
/// write, then resets lines that are no longer set, so that no limit is lifted before the new one
/// applies. A line about a missing device is skipped. Errors: kNotFound when the cgroup is gone;
/// kFailedPrecondition when it lacks a wanted file; the kernel's. Earlier writes are undone as far
/// as the kernel permits.
Status WriteTable(KernelFiles& cgroup, const std::vector<CgroupFile>& files,
                  const CgroupTable& wanted);

/// Empty if `files` of `cgroup` are `wanted`, else a sentence with their values. Errors: as
/// ReadTable.
StatusOr<std::string> FindDrift(const KernelFiles& cgroup, const std::vector<CgroupFile>& files,
                                const CgroupTable& wanted);

/// The kernel's `error` about a file of `cgroup`, as a ClassProvider reports it, with what to do.
/// kNotFound remains only if the cgroup is gone.
Status WithRemedy(const KernelFiles& cgroup, const Status& error);

/// The parent of the cgroup at `path` if it is the cgroup of the pod `uid`; else empty. systemd's
/// names contain the UID without dashes.
std::string PodCgroup(const std::string& path, const std::string& uid);

/// "FILE KEY VALUE; FILE KEY VALUE"; "nothing set" for an empty table.
std::string ToString(const CgroupTable& table);

}  // namespace qrm::kernel
