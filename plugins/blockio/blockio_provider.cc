// Writes each class's table, for the current devices, into cgroups.
#include "plugins/blockio/blockio_provider.h"

#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/base/cgroup.h"
#include "api/base/log.h"
#include "plugins/kernel/cgroup_table.h"
#include "plugins/kernel/file_classes.h"

namespace qrm::blockio {
namespace {

using kernel::CgroupTable;
using sdk::ClassOptions;
using sdk::ClassTarget;

class Provider final : public kernel::FileClasses<ClassConfig, CgroupTable> {
 public:
  Provider(ProviderOptions options, std::unique_ptr<Devices> devices)
      : FileClasses({.name = kType}, options.config_file),
        options_(std::move(options)),
        devices_(std::move(devices)) {}

  [[nodiscard]] StatusOr<ClassOptions> Resolve(const std::string& class_name) const override {
    QRM_ASSIGN_OR_RETURN(const CgroupTable table, Find(class_name));
    ClassOptions options;
    if (options_.version == CgroupVersion::kV2) {
      options.unified = UnifiedOf(table);
    }
    return options;
  }

  Status Apply(const ClassTarget& target, const std::string& /*from*/,
               const std::string& to) override {
    QRM_ASSIGN_OR_RETURN(const CgroupTable wanted, Find(to));
    kernel::SystemFiles cgroup(DirectoryOf(target));
    return WriteTable(cgroup, FilesOf(options_.version), wanted);
  }

  [[nodiscard]] StatusOr<std::string> ReadBack(const ClassTarget& target,
                                               const std::string& class_name) override {
    QRM_ASSIGN_OR_RETURN(const CgroupTable wanted, Find(class_name));
    return FindDrift(kernel::SystemFiles(DirectoryOf(target)), FilesOf(options_.version), wanted);
  }

 private:
  [[nodiscard]] StatusOr<Classes> Parse(const config::Section& file) const override {
    return ParseConfig(file);
  }

  Meanings ResolveAll(const Classes& classes) override {
    Meanings meanings;
    meanings[""];  // no limit
    std::set<std::string> unmatched;
    for (const auto& [name, config] : classes) {
      StatusOr<CgroupTable> table = TableOf(config, *devices_, options_.version);
      const CgroupTable set = table.value_or(CgroupTable());
      auto& meaning = meanings[name] = {.setting = set,
                                        .definition = kernel::ToString(set),
                                        .problem = table.ok() ? "" : MessageOf(table.status())};
      const std::string globs = UnmatchedGlobs(config, *devices_);
      if (globs.empty()) {
        continue;
      }
      meaning.definition += ": no device matches " + globs;
      if (options_.require_devices) {
        meaning.problem = fmt::format(
            "no device matches {}, and require-devices is on; correct the globs of class {} in {}",
            globs, name, options_.config_file);
      }
      if (unmatched.insert(name + globs).second && !warned_of_.contains(name + globs)) {
        log::Warning("blockio class limits no device", {{"class", name}, {"globs", globs}});
      }
    }
    warned_of_ = std::move(unmatched);
    return meanings;
  }

  [[nodiscard]] std::string DirectoryOf(const ClassTarget& target) const {
    return options_.blkio_root + CgroupPath(target.cgroups_path);
  }

  const ProviderOptions options_;
  const std::unique_ptr<Devices> devices_;
  std::set<std::string> warned_of_;  // classes with their globs
};

}  // namespace

StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeBlockioProvider(
    ProviderOptions options, std::unique_ptr<Devices> devices) {
  return kernel::MakeFileClasses<Provider>(std::move(options), std::move(devices));
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
