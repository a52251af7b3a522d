// Mounts the two file systems of a machine with resctrl.
#include "test/support/resctrl/resctrl_double.h"

#include <cerrno>
#include <filesystem>
#include <utility>

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

ResctrlDouble::ResctrlDouble(ResctrlMachine machine)
    : model_(machine),
      thread_files_(model_.threads(),
                    fmt::format("resctrl {}/resctrl resctrl rw,relatime{} 0 0\n", directory_.path(),
                                machine.bandwidth_in_mbps ? ",mba_MBps" : "")) {}

StatusOr<std::unique_ptr<ResctrlDouble>> ResctrlDouble::Create(ResctrlMachine machine) {
  std::unique_ptr<ResctrlDouble> made(new ResctrlDouble(std::move(machine)));
  for (const char* const name : {"proc", "resctrl"}) {
    std::filesystem::create_directory(made->directory_ / name);
  }
  // Names of threads last: what is gone is refused when it is read.
  QRM_ASSIGN_OR_RETURN(
      made->proc_,
      FuseMount::Create(made->thread_files_, made->directory_ / "proc", Names::kRemembered));
  QRM_ASSIGN_OR_RETURN(made->mount_, FuseMount::Create(made->model_, made->directory_ / "resctrl",
                                                       Names::kAskedEachTime));
  return made;
}

void ResctrlDouble::Unmount() {
  mount_.reset();
  model_.Reset();
}

}  // namespace qrm::test
