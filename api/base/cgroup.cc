// Distinguishes cgroup v1 from v2, and translates systemd's names.
#include "api/base/cgroup.h"

#include <fstream>

#include <sys/stat.h>

#include <fmt/format.h>

#include "api/base/errorf.h"

namespace qrm {
namespace {

bool IsDirectory(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

bool HasController(const std::string& root, std::string_view name) {
  std::ifstream controllers(root + "/cgroup.controllers");
  for (std::string controller; controllers >> controller;) {
    if (controller == name) {
      return true;
    }
  }
  return false;
}

/// systemd's place for a slice: "a-b.slice" lies in "a.slice".
std::string ExpandSlice(std::string_view slice) {
  constexpr std::string_view kSuffix = ".slice";
  if (!slice.ends_with(kSuffix)) {
    return fmt::format("/{}", slice);
  }
  const std::string stem(slice.substr(0, slice.size() - kSuffix.size()));
  std::string path;
  for (std::size_t dash = stem.find('-'); dash != std::string::npos;
       dash = stem.find('-', dash + 1)) {
    path += fmt::format("/{}{}", stem.substr(0, dash), kSuffix);
  }
  return fmt::format("{}/{}", path, slice);
}

}  // namespace

StatusOr<CgroupHierarchy> FindCgroupHierarchy(const std::string& cgroup_root,
                                              std::string_view controller,
                                              std::string_view v2_name) {
  const std::string v1 = fmt::format("{}/{}", cgroup_root, controller);
  if (!HasController(cgroup_root, v2_name) && IsDirectory(v1)) {
    return CgroupHierarchy{.root = v1, .is_v1 = true};
  }
  for (const std::string& v2 : {cgroup_root, cgroup_root + "/unified"}) {
    if (HasController(v2, v2_name)) {
      return CgroupHierarchy{.root = v2, .is_v1 = false};
    }
  }
  return Errorf(StatusCode::kFailedPrecondition,
                "no cgroup {} controller below {}; mount it, or enable it in the kernel", v2_name,
                cgroup_root);
}

std::string CgroupPath(std::string_view cgroups_path) {
  const std::size_t first = cgroups_path.find(':');
  const std::size_t second =
      first == std::string_view::npos ? first : cgroups_path.find(':', first + 1);
  if (second == std::string_view::npos) {
    return cgroups_path.starts_with('/') ? std::string(cgroups_path)
                                         : fmt::format("/{}", cgroups_path);
  }
  return fmt::format("{}/{}-{}.scope", ExpandSlice(cgroups_path.substr(0, first)),
                     cgroups_path.substr(first + 1, second - first - 1),
                     cgroups_path.substr(second + 1));
}

}  // namespace qrm
