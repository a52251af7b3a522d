// Reads /proc and sizes of files.
#include "test/soak/process_use.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "api/base/errorf.h"

namespace qrm::test {

namespace fs = std::filesystem;

StatusOr<ProcessUse> ReadProcessUse(pid_t pid) {
  const std::string directory = "/proc/" + std::to_string(pid);
  std::error_code error;
  const fs::directory_iterator descriptors(directory + "/fd", error);
  std::ifstream status(directory + "/status");
  if (error || !status) {
    return Errorf(StatusCode::kNotFound, "cannot read {}: the process has ended; see its log",
                  directory);
  }
  ProcessUse use;
  use.descriptors = static_cast<int>(std::distance(descriptors, fs::directory_iterator()));
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string name;
    double value = 0;
    words >> name >> value;
    if (name == "VmRSS:") {
      use.resident_mib = value / 1024;
    } else if (name == "VmHWM:") {
      use.peak_mib = value / 1024;
    } else if (name == "Threads:") {
      use.threads = static_cast<int>(value);
    }
  }
  return use;
}

void ForgetPeak(pid_t pid) {
  std::ofstream("/proc/" + std::to_string(pid) + "/clear_refs") << "5\n";
}

DiskUse ReadDiskUse(const std::string& directory) {
  constexpr double kMebibyte = 1 << 20;
  DiskUse use;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(directory, error)) {
    if (entry.is_regular_file(error)) {
      const bool log = entry.path().string().ends_with("-wal");
      (log ? use.logs_mib : use.databases_mib) +=
          static_cast<double>(entry.file_size(error)) / kMebibyte;
    }
  }
  return use;
}

}  // namespace qrm::test
