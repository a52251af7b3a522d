// Keeps each class's table up to date with the file and the devices, and writes it into cgroups.
#include "plugins/blockio/blockio_provider.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/cgroup.h"
#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/base/mutex.h"
#include "plugins/cgroup/cgroup_table.h"
#include "plugins/cgroup/class_file.h"

namespace qrm::blockio {
namespace {

using cgroup::CgroupDirectory;
using cgroup::CgroupTable;
using cgroup::ClassFile;
using sdk::ClassOptions;
using sdk::ClassTarget;
using sdk::ClassType;

StatusOr<std::vector<ClassConfig>> LoadConfig(ClassFile& file) {
  QRM_ASSIGN_OR_RETURN(const config::Section section, file.Load());
  return ParseConfig(section);
}

/// A class's current table.
struct Resolved {
  CgroupTable table;
  std::string problem;
  std::string unmatched;  // the globs, if no device matches any of them
};

class Provider final : public sdk::ClassProvider {
 public:
  Provider(ProviderOptions options, std::unique_ptr<Devices> devices, ClassFile file,
           std::vector<ClassConfig> classes)
      : options_(std::move(options)),
        devices_(std::move(devices)),
        file_(std::move(file)),
        classes_(std::move(classes)) {
    file_.TakeOver();
    LookAtDevices();
  }

  [[nodiscard]] ClassType List() const override {
    ClassType type{.name = kType};
    const MutexLock guard(mutex_);
    for (const auto& [name, resolved] : resolved_) {
      type.classes.push_back(
          {.name = name, .definition = DefinitionOf(resolved), .problem = resolved.problem});
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
                           : fmt::format("its cgroup has {}, but the class has {}",
                                         cgroup::ToString(found), cgroup::ToString(wanted));
  }

 private:
  static std::string DefinitionOf(const Resolved& resolved) {
    std::string text = cgroup::ToString(resolved.table);
    return resolved.unmatched.empty()
               ? text
               : fmt::format("{}: no device matches {}", text, resolved.unmatched);
  }

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
    if (!file_.HasChanged()) {
      return OkStatus();
    }
    QRM_ASSIGN_OR_RETURN(std::vector<ClassConfig> classes, LoadConfig(file_));
    std::set<std::string> names;
    for (const ClassConfig& config : classes) {
      names.insert(config.name);
    }
    QRM_RETURN_IF_ERROR(file_.CheckInUse(names, in_use));
    classes_ = std::move(classes);
    file_.TakeOver();
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
      entry.unmatched = UnmatchedGlobs(config, *devices_);
      if (!entry.unmatched.empty() && options_.require_devices) {
        entry.problem = fmt::format(
            "no device matches {}, and require-devices is on; correct the globs of class {} in {}",
            entry.unmatched, config.name, options_.config_file);
      }
    }
    WarnOfUnmatched(resolved);
    const MutexLock guard(mutex_);
    resolved_ = std::move(resolved);
  }

  /// Once for each class and its globs.
  void WarnOfUnmatched(const std::map<std::string, Resolved>& resolved) {
    std::set<std::string> unmatched;
    for (const auto& [name, entry] : resolved) {
      if (!entry.unmatched.empty() && unmatched.insert(name + entry.unmatched).second &&
          !warned_of_.contains(name + entry.unmatched)) {
        log::Warning("blockio class limits no device",
                     {{"class", name}, {"globs", entry.unmatched}});
      }
    }
    warned_of_ = std::move(unmatched);
  }

  const ProviderOptions options_;
  const std::unique_ptr<Devices> devices_;
  ClassFile file_;                    // this and the next two: only on the provider's thread
  std::vector<ClassConfig> classes_;  // from the last valid file
  std::set<std::string> warned_of_;   // classes with their globs
  mutable Mutex mutex_;
  std::map<std::string, Resolved> resolved_ QRM_GUARDED_BY(mutex_);
};

}  // namespace

StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeBlockioProvider(
    ProviderOptions options, std::unique_ptr<Devices> devices) {
  ClassFile file(options.config_file);
  QRM_ASSIGN_OR_RETURN(std::vector<ClassConfig> classes, LoadConfig(file));
  return std::unique_ptr<sdk::ClassProvider>(std::make_unique<Provider>(
      std::move(options), std::move(devices), std::move(file), std::move(classes)));
}

StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeSystemBlockio(const std::string& config_file,
                                                                const std::string& cgroup_root,
                                                                bool require_devices) {
  QRM_ASSIGN_OR_RETURN(const CgroupHierarchy hierarchy,
                       FindCgroupHierarchy(cgroup_root, "blkio", "io"));
  const std::string cost_file = hierarchy.is_v1 ? std::string() : hierarchy.root + "/io.cost.qos";
  return MakeBlockioProvider({.config_file = config_file,
                              .blkio_root = hierarchy.root,
                              .version = hierarchy.is_v1 ? CgroupVersion::kV1 : CgroupVersion::kV2,
                              .require_devices = require_devices},
                             std::make_unique<SystemDevices>("/sys", cost_file));
}

}  // namespace qrm::blockio
