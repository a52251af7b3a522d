// The machines that were captured as files, for tests.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

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
  const std::string unpack = fmt::format("tar -xjf '{}' -C '{}'", file.string(), scratch.string());
  if (std::system(unpack.c_str()) == 0) {
    for (const auto& entry : std::filesystem::directory_iterator(scratch)) {
      return MachineSource{.kind = MachineSource::Kind::kFsRoot, .argument = entry.path()};
    }
  }
  return Errorf(StatusCode::kNotFound, "cannot unpack {}", file.string());
}

}  // namespace qrm::test
