// Keeps each class's table in step with the file and the devices, and writes it into cgroups.
#include "plugins/blockio/blockio_provider.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include <fmt/format.h>

#include "api/base/cgroup.h"
#include "api/base/mutex.h"
#include "plugins/cgroup/cgroup_table.h"

namespace qrm::blockio {
namespace {

using cgroup::CgroupDirectory;
using cgroup::CgroupTable;
using sdk::ClassOptions;
using sdk::ClassTarget;
using sdk::ClassType;

/// By which a file is known to have changed.
struct FileMark {
  ino_t inode = 0;
  off_t size = 0;
  int64_t changed_ns = 0;

  bool operator==(const FileMark&) const = default;
};

FileMark MarkOf(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) {
    return {};
  }
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  return {found.st_ino, found.st_size,
          found.st_mtim.tv_sec * kNanosPerSecond + found.st_mtim.tv_nsec};
}

StatusOr<std::vector<ClassConfig>> LoadConfig(const std::string& path) {
  QRM_ASSIGN_OR_RETURN(const config::Section section, config::Section::Load(path));
  return ParseConfig(section);
}

/// Errors: kFailedPrecondition naming the first class that somebody has and `classes` lack.
Status CheckInUse(const std::vector<ClassConfig>& classes, const std::string& path,
                  const std::set<std::string>& in_use) {
  for (const std::string& name : in_use) {
    if (std::none_of(classes.begin(), classes.end(),
                     [&](const ClassConfig& config) { return config.name == name; })) {
      return Errorf(StatusCode::kFailedPrecondition,
                    "cannot take over {}: class {} is in use and not in it; give its users another "
                    "class with qrmctl class set first",
                    path, name);
    }
  }
  return OkStatus();
}

/// What a class is now.
struct Resolved {
  CgroupTable table;
  std::string problem;
};

class Provider final : public sdk::ClassProvider {
 public:
  Provider(ProviderOptions options, std::unique_ptr<Devices> devices, FileMark mark,
           std::vector<ClassConfig> classes)
      : options_(std::move(options)),
        devices_(std::move(devices)),
        mark_(mark),
        classes_(std::move(classes)) {
    LookAtDevices();
  }

  [[nodiscard]] ClassType List() const override {
    ClassType type{.name = kType};
    const MutexLock guard(mutex_);
    for (const auto& [name, resolved] : resolved_) {
      type.classes.push_back({.name = name,
                              .definition = cgroup::ToString(resolved.table),
                              .problem = resolved.problem});
    }
    return type;
  }

  [[nodiscard]] StatusOr<ClassOptions> Resolve(const std::string& class_name) const override {
    QRM_ASSIGN_OR_RETURN(const CgroupTable table, Find(class_name));
    ClassOptions options;
    if (options_.version == CgroupVersion::kV2) {
      options.unified = UnifiedOf(table);
    }
    return options;
  }

  Status Refresh(const std::set<std::string>& in_use) override {
    const Status reread = ReadAgain(in_use);
    LookAtDevices();
    return reread;
  }

  Status Apply(const ClassTarget& target, const std::string& /*from*/,
               const std::string& to) override {
    CgroupTable wanted;
    if (!to.empty()) {
      QRM_ASSIGN_OR_RETURN(wanted, Find(to));
    }
    CgroupDirectory directory(DirectoryOf(target));
    return WriteTable(directory, FilesOf(options_.version), wanted);
  }

  [[nodiscard]] StatusOr<std::string> ReadBack(const ClassTarget& target,
                                               const std::string& class_name) override {
    CgroupTable wanted;
    if (!class_name.empty()) {
      QRM_ASSIGN_OR_RETURN(wanted, Find(class_name));
    }
    QRM_ASSIGN_OR_RETURN(const CgroupTable found, ReadTable(CgroupDirectory(DirectoryOf(target)),
                                                            FilesOf(options_.version)));
    return found == wanted ? std::string()
                           : fmt::format("its cgroup has {}, and the class is {}",
                                         cgroup::ToString(found), cgroup::ToString(wanted));
  }

 private:
  [[nodiscard]] StatusOr<CgroupTable> Find(const std::string& name) const {
    const MutexLock guard(mutex_);
    const auto found = resolved_.find(name);
    if (found == resolved_.end()) {
      return Errorf(StatusCode::kFailedPrecondition, "there is no blockio class {}; add it to {}",
                    name, options_.config_file);
    }
    if (!found->second.problem.empty()) {
      return Errorf(StatusCode::kFailedPrecondition, "{}", found->second.problem);
    }
    return found->second.table;
  }

  [[nodiscard]] std::string DirectoryOf(const ClassTarget& target) const {
    return options_.blkio_root + CgroupPath(target.cgroups_path);
  }

  Status ReadAgain(const std::set<std::string>& in_use) {
    const FileMark mark = MarkOf(options_.config_file);
    if (mark == mark_) {
      return OkStatus();
    }
    QRM_ASSIGN_OR_RETURN(std::vector<ClassConfig> classes, LoadConfig(options_.config_file));
    QRM_RETURN_IF_ERROR(CheckInUse(classes, options_.config_file, in_use));
    classes_ = std::move(classes);
    mark_ = mark;
    return OkStatus();
  }

  void LookAtDevices() {
    std::map<std::string, Resolved> resolved;
    for (const ClassConfig& config : classes_) {
      StatusOr<CgroupTable> table = TableOf(config, *devices_, options_.version);
      Resolved& entry = resolved[config.name];
      if (table.ok()) {
        entry.table = *std::move(table);
      } else {
        entry.problem = MessageOf(table.status());
      }
    }
    const MutexLock guard(mutex_);
    resolved_ = std::move(resolved);
  }

  const ProviderOptions options_;
  const std::unique_ptr<Devices> devices_;
  FileMark mark_;                     // as the next one, on the provider's thread
  std::vector<ClassConfig> classes_;  // as the file had them when it was last good
  mutable Mutex mutex_;
  std::map<std::string, Resolved> resolved_ QRM_GUARDED_BY(mutex_);
};

}  // namespace

StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeBlockioProvider(
    ProviderOptions options, std::unique_ptr<Devices> devices) {
  const FileMark mark = MarkOf(options.config_file);
  QRM_ASSIGN_OR_RETURN(std::vector<ClassConfig> classes, LoadConfig(options.config_file));
  return std::unique_ptr<sdk::ClassProvider>(
      std::make_unique<Provider>(std::move(options), std::move(devices), mark, std::move(classes)));
}

StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeSystemBlockio(const std::string& config_file,
                                                                const std::string& cgroup_root) {
  QRM_ASSIGN_OR_RETURN(const CgroupHierarchy hierarchy,
                       FindCgroupHierarchy(cgroup_root, "blkio", "io"));
  const std::string cost_file = hierarchy.is_v1 ? std::string() : hierarchy.root + "/io.cost.qos";
  return MakeBlockioProvider({.config_file = config_file,
                              .blkio_root = hierarchy.root,
                              .version = hierarchy.is_v1 ? CgroupVersion::kV1 : CgroupVersion::kV2},
                             std::make_unique<SystemDevices>("/sys", cost_file));
}

}  // namespace qrm::blockio
