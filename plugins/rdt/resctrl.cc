// Reads and writes resctrl's files.
#include "plugins/rdt/resctrl.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "api/base/number.h"
#include "plugins/kernel/kernel_files.h"
#include "plugins/rdt/schemata.h"

namespace qrm::rdt {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kThreadsAtOnce = 256;  // with seven digits each they fit in a page
constexpr const char* kOwnDirectories[] = {"info", "mon_groups", "mon_data"};

uint64_t ReadNumber(const std::string& path, int base = 10) {
  return ParseNumber<uint64_t>(kernel::ReadLine(path), base).value_or(0);
}

bool Exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

std::vector<int> IdsOf(const Schemata& schemata, const std::string& resource) {
  std::vector<int> ids;
  if (const auto found = schemata.find(resource); found != schemata.end()) {
    for (const auto& [id, value] : found->second) {
      ids.push_back(id);
    }
  }
  return ids;
}

std::optional<CacheInfo> ReadCache(const std::string& info, const std::string& level,
                                   const Schemata& root) {
  const bool code_and_data = Exists(fmt::format("{}/{}CODE", info, level));
  const std::string name = level + (code_and_data ? "CODE" : "");
  const uint64_t mask = ReadNumber(fmt::format("{}/{}/cbm_mask", info, name), 16);
  if (mask == 0) {
    return std::nullopt;
  }
  return CacheInfo{
      .mask = mask,
      .least_bits = static_cast<int>(ReadNumber(fmt::format("{}/{}/min_cbm_bits", info, name))),
      .ids = IdsOf(root, name),
      .code_and_data = code_and_data};
}

/// AMD counts bandwidth in eighths of GB/s: percentages have no meaning there.
bool CountsInSteps(const std::string& proc) {
  constexpr int kLines = 4;  // the vendor is in the second line
  std::ifstream cpus(proc + "/cpuinfo");
  std::string line;
  for (int read = 0; read < kLines && std::getline(cpus, line); ++read) {
    if (line.find("AuthenticAMD") != std::string::npos) {
      return true;
    }
  }
  return false;
}

std::optional<BandwidthInfo> ReadBandwidth(const std::string& info, const Schemata& root,
                                           bool in_mbps) {
  const std::string directory = info + "/MB";
  if (!Exists(directory)) {
    return std::nullopt;
  }
  return BandwidthInfo{.least_percent = ReadNumber(directory + "/min_bandwidth"),
                       .granularity = ReadNumber(directory + "/bandwidth_gran"),
                       .ids = IdsOf(root, "MB"),
                       .in_mbps = in_mbps};
}

/// The smallest number of groups of all resources.
std::size_t CountGroups(const std::string& info) {
  std::size_t least = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(info, error)) {
    const uint64_t groups = ReadNumber(entry.path() / "num_closids");
    if (groups != 0) {
      least = least == 0 ? groups : std::min<std::size_t>(least, groups);
    }
  }
  return least;
}

StatusCode CodeOf(int error) {
  switch (error) {
    case ENOSPC:
      return StatusCode::kResourceExhausted;
    case EBUSY:
    case EINTR:
    case EWOULDBLOCK:
    case ENOENT:  // the group is gone until it is recreated
    case ENODEV:
    case ENOTCONN:
      return StatusCode::kUnavailable;
    case EINVAL:
      return StatusCode::kInvalidArgument;
    default:
      return StatusCode::kFailedPrecondition;
  }
}

}  // namespace

ResctrlLock::ResctrlLock(ResctrlLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

ResctrlLock::~ResctrlLock() {
  if (file_ >= 0) {
    ::close(file_);
  }
}

Resctrl::Resctrl(ResctrlPaths paths) : paths_(std::move(paths)) {}

std::string Resctrl::PathOf(const std::string& group, std::string_view file) const {
  return group.empty() ? fmt::format("{}/{}", paths_.mount, file)
                       : fmt::format("{}/{}/{}", paths_.mount, group, file);
}

Status Resctrl::Failed(int error, std::string_view what) const {
  const std::string said = kernel::ReadLine(paths_.mount + "/info/last_cmd_status");
  const bool helps = !said.empty() && said != "ok";
  return Errorf(CodeOf(error), "cannot {}: {}{}{}", what, std::strerror(error),
                helps ? ", the kernel says: " : "", helps ? said : "");
}

Status Resctrl::CheckMounted() const {
  struct statfs found{};
  if (::statfs(paths_.mount.c_str(), &found) != 0 || found.f_type != paths_.filesystem_type) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "resctrl is not mounted on {0}; if the processor has RDT, run: mount -t resctrl "
                  "resctrl {0}",
                  paths_.mount);
  }
  return OkStatus();
}

StatusOr<RdtInfo> Resctrl::ReadInfo() const {
  QRM_RETURN_IF_ERROR(CheckMounted());
  if (const std::string own = fmt::format("{}/{}/cpu_resctrl_groups", paths_.proc, ::getpid());
      !Exists(own)) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot read the groups of threads: no file {}; use a kernel with "
                  "CONFIG_PROC_CPU_RESCTRL, and set hostPID: true in qrmd's pod",
                  own);
  }
  QRM_ASSIGN_OR_RETURN(const std::string text, ReadSchemata(""));
  const Schemata root = ParseSchemata(text);
  const std::string info = paths_.mount + "/info";
  RdtInfo found;
  found.l2 = ReadCache(info, "L2", root);
  found.l3 = ReadCache(info, "L3", root);
  if (!CountsInSteps(paths_.proc)) {
    found.mb = ReadBandwidth(info, root, MountOptions().find("mba_MBps") != std::string::npos);
  }
  found.groups = CountGroups(info);
  found.events = kernel::WordsIn(kernel::ReadLine(info + "/L3_MON/mon_features"));
  return found;
}

std::string Resctrl::MountOptions() const {
  std::ifstream mounts(paths_.proc + "/mounts");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string device;
    std::string point;
    std::string type;
    std::string options;
    fields >> device >> point >> type >> options;
    if (type != "resctrl" || point != paths_.mount) {
      continue;
    }
    std::vector<std::string> kept;
    std::istringstream words(options);
    for (std::string word; std::getline(words, word, ',');) {
      if (word == "cdp" || word == "cdpl2" || word == "mba_MBps" || word == "debug") {
        kept.push_back(word);
      }
    }
    return fmt::format("{}", fmt::join(kept, ","));
  }
  return "";
}

Status Resctrl::Mount(const std::string& options) const {
  if (::mount("resctrl", paths_.mount.c_str(), "resctrl", 0, options.c_str()) != 0) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "resctrl was unmounted and cannot be mounted again on {0}: {1}; run: mount -t "
                  "resctrl{2}{3} resctrl {0}",
                  paths_.mount, std::strerror(errno), options.empty() ? "" : " -o ", options);
  }
  return OkStatus();
}

StatusOr<ResctrlLock> Resctrl::Lock() const {
  constexpr int kTries = 100;
  constexpr auto kPause = std::chrono::milliseconds(10);
  const int file = ::open(paths_.mount.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) {
    return Failed(errno, "open " + paths_.mount);
  }
  ResctrlLock lock(file);
  for (int tried = 1; ::flock(file, LOCK_EX | LOCK_NB) != 0; ++tried) {
    if (errno != EWOULDBLOCK || tried == kTries) {
      return Errorf(StatusCode::kUnavailable,
                    "cannot lock {}: another process has had the lock for a second; see `lslocks`",
                    paths_.mount);
    }
    std::this_thread::sleep_for(kPause);
  }
  return lock;
}

StatusOr<std::set<std::string>> Resctrl::Groups() const {
  std::set<std::string> groups;
  std::error_code error;
  for (fs::directory_iterator at(paths_.mount, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored)) {
      groups.insert(at->path().filename());
    }
  }
  if (error) {
    return Failed(error.value(), "list the groups of " + paths_.mount);
  }
  for (const char* const own : kOwnDirectories) {
    groups.erase(own);
  }
  return groups;
}

Status Resctrl::Make(const std::string& group) const {
  constexpr mode_t kMode = 0755;
  return ::mkdir(PathOf(group, "").c_str(), kMode) == 0
             ? OkStatus()
             : Failed(errno, fmt::format("create resctrl group {}", group));
}

Status Resctrl::Remove(const std::string& group) const {
  return ::rmdir(PathOf(group, "").c_str()) == 0
             ? OkStatus()
             : Failed(errno, fmt::format("remove resctrl group {}", group));
}

StatusOr<std::string> Resctrl::Read(const std::string& group, std::string_view name,
                                    std::string_view action) const {
  kernel::SmallFile file(PathOf(group, name), O_RDONLY);
  std::string text = file.error() == 0 ? file.Read() : "";
  return file.error() == 0
             ? StatusOr<std::string>(std::move(text))
             : Failed(file.error(), fmt::format("{} of resctrl group '{}'", action, group));
}

StatusOr<std::string> Resctrl::ReadSchemata(const std::string& group) const {
  return Read(group, "schemata", "read the schemata");
}

Status Resctrl::WriteSchemata(const std::string& group, std::string_view lines) const {
  kernel::SmallFile file(PathOf(group, "schemata"), O_WRONLY);
  if (file.error() == 0) {
    file.Write(lines);
  }
  return file.error() == 0
             ? OkStatus()
             : Failed(file.error(), fmt::format("write the schemata of resctrl group '{}'", group));
}

StatusOr<std::set<pid_t>> Resctrl::Threads(const std::string& group) const {
  QRM_ASSIGN_OR_RETURN(const std::string text, Read(group, "tasks", "list the threads"));
  std::set<pid_t> threads;
  std::istringstream words(text);
  for (pid_t thread = 0; words >> thread;) {
    threads.insert(threads.end(), thread);
  }
  return threads;
}

Status Resctrl::Move(const std::vector<pid_t>& threads, const std::string& group) const {
  kernel::SmallFile file(PathOf(group, "tasks"), O_WRONLY);
  if (file.error() != 0) {
    return Failed(file.error(), fmt::format("move threads to resctrl group '{}'", group));
  }
  for (std::size_t done = 0; done < threads.size(); done += kThreadsAtOnce) {
    const auto part =
        std::span(threads).subspan(done, std::min(kThreadsAtOnce, threads.size() - done));
    file.Write(fmt::format("{}\n", fmt::join(part, ",")));
    if (file.error() == 0) {
      continue;
    }
    // Kernels before 6.7 accept no lists; later kernels stop at the first thread that is gone.
    for (const pid_t thread : part) {
      file.Write(fmt::format("{}\n", thread));
      if (file.error() != 0 && file.error() != ESRCH) {
        return Failed(file.error(),
                      fmt::format("move thread {} to resctrl group '{}'", thread, group));
      }
    }
  }
  return OkStatus();
}

StatusOr<std::optional<std::string>> Resctrl::GroupOf(pid_t thread) const {
  const std::string path = fmt::format("{}/{}/cpu_resctrl_groups", paths_.proc, thread);
  kernel::SmallFile file(path, O_RDONLY);
  const std::string text = file.error() == 0 ? file.ReadShort() : "";
  if (file.error() == ENOENT || file.error() == ESRCH) {
    return std::optional<std::string>();
  }
  constexpr std::string_view kMark = "res:/";
  if (file.error() != 0 || !text.starts_with(kMark)) {
    return Errorf(StatusCode::kUnavailable,
                  "cannot read the group of thread {}: {} has '{}'; check that resctrl is mounted",
                  thread, path, text.substr(0, text.find('\n')));
  }
  return std::optional(text.substr(kMark.size(), text.find('\n') - kMark.size()));
}

std::map<std::string, uint64_t> Resctrl::Counters(const std::string& group,
                                                  const RdtInfo& info) const {
  std::map<std::string, uint64_t> counters;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(PathOf(group, "mon_data"), error)) {
    for (const std::string& event : info.events) {
      const auto count = ParseNumber<uint64_t>(kernel::ReadLine(entry.path() / event));
      if (count.has_value()) {
        counters[event] += *count;
      }
    }
  }
  return counters;
}

}  // namespace qrm::rdt
