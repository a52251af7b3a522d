// A directory that represents a tree of cpuset cgroups.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "api/base/errorf.h"
#include "manager/reconcile/drift.h"
#include "test/support/temp_dir.h"

namespace qrm::test {

/// The cgroups of containers, by the paths that the runtime would give them.
class CpusetDir {
 public:
  void Make(const std::string& path, const std::string& cpus) {
    std::filesystem::create_directory(dir_ / path);
    std::ofstream(FileOf(path)) << cpus;
  }
  /// As where the file system is mounted read-only: that file of the kernel cannot be opened for
  /// writing.
  void MakeReadOnly(const std::string& path) {
    std::filesystem::create_directory(dir_ / path);
    std::filesystem::remove(FileOf(path));
    std::filesystem::create_symlink("/sys/devices/system/cpu/online", FileOf(path));
    read_only_ = path;
  }
  /// A cgroup that can be read and takes no values.
  void Break(const std::string& path) {
    std::filesystem::remove(FileOf(path));
    std::filesystem::create_directory(FileOf(path));
    broken_ = path;
  }
  void Mend(const std::string& path, const std::string& cpus) {
    std::filesystem::remove(FileOf(path));
    broken_.clear();
    Make(path, cpus);
  }

  std::string CpusOf(const std::string& path) const {
    std::ifstream file(FileOf(path));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// `reads`, if given, counts them.
  manager::CpusetSource Source(int* reads = nullptr) const {
    return [this, reads](const std::string& path) -> StatusOr<manager::CgroupCpuset> {
      if (reads != nullptr) {
        ++*reads;
      }
      if (path == read_only_ || path == broken_) {
        return manager::CgroupCpuset{.cpus = {0, 1, 2, 3, 4}, .path = dir_ / path};
      }
      if (!std::filesystem::exists(FileOf(path))) {
        return Errorf(StatusCode::kNotFound, "{} is gone", path);
      }
      QRM_ASSIGN_OR_RETURN(CpuSet cpus, CpuSet::Parse(CpusOf(path)));
      return manager::CgroupCpuset{.cpus = std::move(cpus), .path = dir_ / path};
    };
  }

 private:
  std::string FileOf(const std::string& path) const { return dir_ / path + "/cpuset.cpus"; }

  const TempDir dir_;
  std::string read_only_;
  std::string broken_;
};

}  // namespace qrm::test
