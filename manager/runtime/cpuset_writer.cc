// Writes cpuset.cpus, which cgroup v1 and v2 both have.
#include "manager/runtime/cpuset_writer.h"

#include <cerrno>
#include <string>
#include <system_error>

#include <fcntl.h>

#include "api/base/errorf.h"
#include "plugins/kernel/kernel_files.h"

namespace qrm::manager {

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
