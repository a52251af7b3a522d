// Detects when a file was replaced or changed.
#pragma once

#include <string>

#include <sys/stat.h>

namespace qrm {

/// Differs when the file does; "none" without a file. A secret that is mounted is replaced by
/// another file. Cost: a call of stat(2).
inline std::string FileVersion(const std::string& file) {
  struct stat now{};
  if (::stat(file.c_str(), &now) != 0) {
    return "none";
  }
  return std::to_string(now.st_ino) + ":" + std::to_string(now.st_size) + ":" +
         std::to_string(now.st_mtim.tv_sec) + "." + std::to_string(now.st_mtim.tv_nsec);
}

}  // namespace qrm
