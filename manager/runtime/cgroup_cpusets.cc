// Finds a container's cgroup by the path that the runtime gives, and reads and writes its cpuset,
// under cgroup v1 and v2.
#include "manager/runtime/cgroup_cpusets.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "api/base/cgroup.h"
#include "api/base/errorf.h"
#include "api/base/number.h"
#include "plugins/kernel/kernel_files.h"

namespace qrm::manager {
namespace {

/// The whole file; the files here have one line, or one line per controller.
StatusOr<std::string> ReadFile(const std::string& path) {
  kernel::SmallFile file(path, O_RDONLY);
  std::string text = file.error() == 0 ? file.Read() : std::string();
  if (const int cause = file.error(); cause != 0) {
    const bool gone = cause == ENOENT || cause == ENODEV || cause == ESRCH;
    return Errorf(gone ? StatusCode::kNotFound : StatusCode::kUnavailable,
                  "cannot read {}: {}; does the container still exist?", path,
                  std::generic_category().message(cause));
  }
  return text;
}

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \n\t") == std::string_view::npos;
}

/// The file `name`. In cgroup v2 it is empty while the cgroup inherits its values, which are in
/// `name`.effective.
StatusOr<std::string> ReadCpusetFile(const std::string& directory, const std::string& name) {
  QRM_ASSIGN_OR_RETURN(std::string text, ReadFile(directory + "/" + name));
  return IsBlank(text) ? ReadFile(directory + "/" + name + ".effective") : std::move(text);
}

/// The path in a line of /proc/PID/cgroup, `id:controllers:path`, if it is the line of cpusets.
std::string CpusetPathIn(const std::string& line, bool is_v1) {
  const std::size_t first = line.find(':');
  const std::size_t second = line.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) {
    return {};
  }
  const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
  const bool matches =
      is_v1 ? controllers.find(",cpuset,") != std::string::npos : line.starts_with("0::");
  return matches ? line.substr(second + 1) : std::string();
}

/// "anon N0=8192 N1=0", or with v1 "anon=2 N0=2 N1=0", whose sum is left out.
StatusOr<std::map<int, uint64_t>> AmountsIn(const std::string& line, uint64_t unit,
                                            const std::string& file) {
  std::map<int, uint64_t> amounts;
  std::istringstream words(line);
  std::string word;
  words >> word;
  while (words >> word) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const auto node = ParseNumber<int>(std::string_view(word).substr(1, equals - 1));
    const auto amount =
        equals == word.size() ? std::nullopt : ParseNumber<uint64_t>(word.substr(equals + 1));
    if (!word.starts_with('N') || !node.has_value() || !amount.has_value()) {
      return Errorf(
          StatusCode::kDataLoss,
          "cannot read {}: {} is not a NUMA node's amount; is it a file of the memory controller?",
          file, word);
    }
    amounts[*node] = *amount * unit;
  }
  return amounts;
}

/// Where the kernel has the value of an OCI property.
struct LimitFile {
  const char* property;
  const char* controller;
  const char* v1;
  const char* v2;   ///< null: not compared
  int v2_word = 0;  ///< the value's place in that file
};
constexpr std::array kLimitFiles{
    LimitFile{"CpuPeriod", "cpu", "cpu.cfs_period_us", "cpu.max", 1},
    LimitFile{"CpuQuota", "cpu", "cpu.cfs_quota_us", "cpu.max"},
    LimitFile{"CpuShares", "cpu", "cpu.shares", nullptr},
    LimitFile{"MemoryLimitInBytes", "memory", "memory.limit_in_bytes", "memory.max"},
    LimitFile{"MemorySwapLimitInBytes", "memory", "memory.memsw.limit_in_bytes", nullptr},
};

/// The kernel's number; -1 for no limit, which is also "max" and more than any memory.
std::optional<int64_t> LimitIn(const std::string& text, int word) {
  constexpr int64_t kNoMemoryHasMore = int64_t{1} << 62;
  std::istringstream words(text);
  std::string found;
  for (int i = 0; i <= word; ++i) {
    words >> found;
  }
  const auto number = found == "max" ? int64_t{-1} : ParseNumber<int64_t>(found);
  return number.has_value() && (*number < 0 || *number >= kNoMemoryHasMore) ? -1 : number;
}

/// What the kernel makes of `value`: whole pages of memory.
int64_t AsTheKernelHasIt(const LimitFile& file, int64_t value) {
  const int64_t unit =
      file.controller == std::string_view("memory") ? ::sysconf(_SC_PAGESIZE) : int64_t{1};
  return value < 0 ? -1 : value / unit * unit;
}

}  // namespace

CgroupReader::CgroupReader(std::string cgroup_root, std::string proc_root)
    : cgroup_root_(std::move(cgroup_root)), proc_root_(std::move(proc_root)) {}

StatusOr<CgroupCpuset> CgroupReader::ReadDirectory(const std::string& directory) const {
  QRM_ASSIGN_OR_RETURN(const std::string cpus, ReadCpusetFile(directory, "cpuset.cpus"));
  QRM_ASSIGN_OR_RETURN(const std::string mems, ReadCpusetFile(directory, "cpuset.mems"));
  CgroupCpuset cpuset{.path = directory};
  QRM_ASSIGN_OR_RETURN(cpuset.cpus, CpuSet::Parse(cpus));
  QRM_ASSIGN_OR_RETURN(cpuset.mems, NumaMask::Parse(mems));
  return cpuset;
}

StatusOr<CgroupCpuset> CgroupReader::ReadByPath(const std::string& cgroups_path) const {
  QRM_ASSIGN_OR_RETURN(const CgroupHierarchy hierarchy,
                       FindCgroupHierarchy(cgroup_root_, "cpuset", "cpuset"));
  return ReadDirectory(hierarchy.root + CgroupPath(cgroups_path));
}

StringMap CgroupReader::LimitsThatDiffer(const std::string& cgroups_path,
                                         const StringMap& properties) const {
  StringMap differing;
  for (const LimitFile& file : kLimitFiles) {
    const auto property = properties.find(file.property);
    const auto wanted =
        property == properties.end() ? std::nullopt : ParseNumber<int64_t>(property->second);
    if (!wanted.has_value() || *wanted == 0) {  // CRI: not set
      continue;
    }
    const auto hierarchy = FindCgroupHierarchy(cgroup_root_, file.controller, file.controller);
    if (!hierarchy.ok() || (!hierarchy->is_v1 && file.v2 == nullptr)) {
      continue;
    }
    const auto text = ReadFile(fmt::format("{}{}/{}", hierarchy->root, CgroupPath(cgroups_path),
                                           hierarchy->is_v1 ? file.v1 : file.v2));
    const auto actual =
        text.ok() ? LimitIn(*text, hierarchy->is_v1 ? 0 : file.v2_word) : std::nullopt;
    if (actual.has_value() && *actual != AsTheKernelHasIt(file, *wanted)) {
      differing.emplace(file.property, std::to_string(*actual));
    }
  }
  return differing;
}

StatusOr<std::map<int, uint64_t>> CgroupReader::ReadMemory(const std::string& cgroups_path) const {
  QRM_ASSIGN_OR_RETURN(const CgroupHierarchy hierarchy,
                       FindCgroupHierarchy(cgroup_root_, "memory", "memory"));
  const std::string file = hierarchy.root + CgroupPath(cgroups_path) + "/memory.numa_stat";
  QRM_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  const uint64_t unit = hierarchy.is_v1 ? static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) : 1;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("anon ") || line.starts_with("anon=")) {
      return AmountsIn(line, unit, file);
    }
  }
  return Errorf(
      StatusCode::kDataLoss,
      "cannot read {}: it has no line of anonymous memory; is it a file of the memory controller?",
      file);
}

StatusOr<CgroupCpuset> CgroupReader::ReadByPid(uint32_t pid) const {
  QRM_ASSIGN_OR_RETURN(const CgroupHierarchy hierarchy,
                       FindCgroupHierarchy(cgroup_root_, "cpuset", "cpuset"));
  const std::string file = proc_root_ + "/" + std::to_string(pid) + "/cgroup";
  QRM_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (const std::string path = CpusetPathIn(line, hierarchy.is_v1); !path.empty()) {
      return ReadDirectory(hierarchy.root + path);
    }
  }
  return Errorf(StatusCode::kNotFound,
                "cannot find the cpuset of process {}: {} has no line for it; is it the right "
                "process?",
                pid, file);
}

Status WriteCpus(const CgroupCpuset& at, const CpuSet& cpus) {
  kernel::SmallFile file(at.path + "/cpuset.cpus", O_WRONLY | O_TRUNC);
  if (file.error() == 0) {
    file.Write(ToString(cpus));
  }
  switch (file.error()) {
    case 0:
    case ENOENT:
    case ENODEV:
      return OkStatus();
    case EROFS:
    case EACCES:
    case EPERM:
      return Errorf(StatusCode::kPermissionDenied, "{}: {}; mount cgroup-root writable", at.path,
                    std::generic_category().message(file.error()));
    default:
      return Errorf(StatusCode::kFailedPrecondition, "{}: {}; it is tried again", at.path,
                    std::generic_category().message(file.error()));
  }
}

}  // namespace qrm::manager
