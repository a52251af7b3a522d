// Creates directories with the modes that their sockets need.
#include "manager/daemon/directories.h"

#include <filesystem>
#include <system_error>

namespace qrm::manager {

void MakeDirectory(const std::string& path) {
  std::error_code error;
  if (std::filesystem::create_directories(path, error)) {
    using std::filesystem::perms;
    std::filesystem::permissions(path, perms::owner_all | perms::group_read | perms::group_exec,
                                 error);
  }
}

}  // namespace qrm::manager
