// Answers as proc(5) does for threads and their groups.
#include "test/support/resctrl/thread_files.h"

#include <cerrno>

#include <sys/types.h>

#include <fmt/format.h>

#include "api/base/number.h"

namespace qrm::test {
namespace {

constexpr char kGroupsFile[] = "/cpu_resctrl_groups";

/// The thread that `path` starts with; 0 for none.
pid_t ThreadOf(const std::string& path) {
  return ParseNumber<pid_t>(std::string_view(path).substr(0, path.find('/'))).value_or(0);
}

}  // namespace

FileTree::Kind ThreadFiles::Find(const std::string& path) {
  if (path.empty()) {
    return Kind::kDirectory;
  }
  if (path == "mounts") {
    return Kind::kFile;
  }
  ThreadGroup group;
  if (ThreadOf(path) == 0 || !threads_.Find(ThreadOf(path), group)) {
    return Kind::kNone;
  }
  if (path.find('/') == std::string::npos) {
    return Kind::kDirectory;
  }
  return path.ends_with(kGroupsFile) ? Kind::kFile : Kind::kNone;
}

std::vector<std::string> ThreadFiles::List(const std::string& directory) {
  return directory.empty() ? std::vector<std::string>{"mounts"} : std::vector<std::string>();
}

FileResult ThreadFiles::Read(const std::string& path) {
  if (path == "mounts") {
    return {.text = mounts_};
  }
  ThreadGroup group;
  if (!threads_.Find(ThreadOf(path), group)) {
    return {.error = ESRCH};
  }
  return {.text = fmt::format("res:/{}\nmon:{}\n", group.control, group.monitor)};
}

int ThreadFiles::Write(const std::string& /*path*/, std::string_view /*text*/) {
  return EACCES;
}

int ThreadFiles::MakeDirectory(const std::string& /*path*/) {
  return EPERM;
}

int ThreadFiles::RemoveDirectory(const std::string& /*path*/) {
  return EPERM;
}

}  // namespace qrm::test
