// The machines that were captured as files, for tests.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "api/base/errorf.h"
#include "test/support/child_process.h"
#include "topology/discovery.h"

namespace qrm::test {

/// The files of machines in `folder`, by name; none where there is no such folder.
inline std::vector<std::string> CapturedMachines(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string extension = entry.path().extension();
    if (extension == ".xml" || extension == ".bz2") {
      names.push_back(entry.path().filename());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Where the machine of `file` is read from; a copy of its files is unpacked into `scratch`, which
/// is empty. Errors: kNotFound when it cannot be unpacked.
inline StatusOr<MachineSource> OpenCaptured(const std::filesystem::path& file,
                                            const std::filesystem::path& scratch) {
  if (file.extension() == ".xml") {
    return MachineSource{.kind = MachineSource::Kind::kXml, .argument = file};
  }
  ChildProcess unpack({"/bin/tar", "-xjf", file.string(), "-C", scratch.string()}, "/dev/null");
  if (unpack.Wait() == 0) {
    for (const auto& entry : std::filesystem::directory_iterator(scratch)) {
      return MachineSource{.kind = MachineSource::Kind::kFsRoot, .argument = entry.path()};
    }
  }
  return Errorf(StatusCode::kNotFound, "cannot unpack {}", file.string());
}

}  // namespace qrm::test
