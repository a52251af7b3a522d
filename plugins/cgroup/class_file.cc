// Detects a changed file by its inode, size and time.
#include "plugins/cgroup/class_file.h"

#include <sys/stat.h>

#include "api/base/errorf.h"

namespace qrm::cgroup {

ClassFile::Mark ClassFile::Look() const {
  struct stat found{};
  if (::stat(path_.c_str(), &found) != 0) {
    return {};
  }
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  return {found.st_ino, found.st_size,
          found.st_mtim.tv_sec * kNanosPerSecond + found.st_mtim.tv_nsec};
}

StatusOr<config::Section> ClassFile::Load() {
  if (path_.empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "config-file is not set; name the file that defines the classes");
  }
  loaded_ = Look();
  return config::Section::Load(path_);
}

bool ClassFile::HasChanged() const {
  return Look() != taken_;
}

Status ClassFile::CheckInUse(const std::set<std::string>& names,
                             const std::set<std::string>& in_use) const {
  for (const std::string& name : in_use) {
    if (!names.contains(name)) {
      return Errorf(StatusCode::kFailedPrecondition,
                    "cannot take over {}: it lacks class {}, which is in use; give its users "
                    "another class with qrmctl class set first",
                    path_, name);
    }
  }
  return OkStatus();
}

}  // namespace qrm::cgroup
