// Keeps each class's values up to date with the file and the machine, and sets them on containers.
#include "plugins/knobs/knob_provider.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/cgroup.h"
#include "api/base/errorf.h"
#include "api/base/mutex.h"
#include "api/base/number.h"
#include "plugins/cgroup/cgroup_table.h"
#include "plugins/cgroup/class_file.h"
#include "plugins/cgroup/small_file.h"
#include "plugins/knobs/config.h"
#include "plugins/knobs/thread_attributes.h"

namespace qrm::knobs {
namespace {

using cgroup::CgroupDirectory;
using cgroup::CgroupFile;
using cgroup::CgroupTable;
using cgroup::ClassFile;
using sdk::ClassOptions;
using sdk::ClassTarget;
using sdk::ClassType;

using Classes = std::map<std::string, KnobValues>;

/// The values that a class, or no class, means for a container.
struct Setting {
  CgroupTable files;     ///< without neutral values
  ThreadValues threads;  ///< with neutral values
  std::string problem;
};

std::string DefinitionOf(const KnobValues& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", name, value);
  }
  return text.empty() ? "nothing set" : text;
}

class Provider final : public sdk::ClassProvider {
 public:
  Provider(const KnobType& type, ClassFile file, Classes classes, KnobMachine machine)
      : type_(type), machine_(std::move(machine)), file_(std::move(file)) {
    TakeOver(std::move(classes));
    LookAtMachine();
  }

  [[nodiscard]] ClassType List() const override {
    ClassType type{.name = type_.name, .is_mutable = type_.is_mutable};
    const MutexLock guard(mutex_);
    for (const auto& [name, setting] : settings_) {
      if (!name.empty()) {
        type.classes.push_back(
            {.name = name, .definition = definitions_.at(name), .problem = setting.problem});
      }
    }
    return type;
  }

  [[nodiscard]] StatusOr<ClassOptions> Resolve(const std::string& class_name) const override {
    QRM_ASSIGN_OR_RETURN(const Setting setting, Find(class_name));
    ClassOptions options;
    for (const Knob& knob : type_.knobs) {
      const auto lines = setting.files.find(knob.name);
      // A value that spoils others is set later, once the others can be read.
      if (!machine_.is_v1 && lines != setting.files.end() && knob.spoils.empty()) {
        options.unified[knob.name] = lines->second.at(cgroup::kNoKey);
      }
    }
    const auto score = setting.threads.find(ThreadAttribute::kOomScoreAdj);
    if (score != setting.threads.end()) {
      options.oom_score_adj = ParseNumber<int64_t>(score->second);
    }
    return options;
  }

  Status Refresh(const std::set<std::string>& in_use) override {
    const Status reread = ReadAgain(in_use);
    LookAtMachine();
    return reread;
  }

  Status Apply(const ClassTarget& target, const std::string& from, const std::string& to) override {
    QRM_ASSIGN_OR_RETURN(const Setting wanted, Find(to));
    Status given = Give(target, wanted);
    if (!given.ok() && given.code() != StatusCode::kNotFound && from != to) {
      if (const auto former = Find(from); former.ok()) {
        Give(target, *former).IgnoreError();  // the first error is returned
      }
    }
    return given;
  }

  [[nodiscard]] StatusOr<std::string> ReadBack(const ClassTarget& target,
                                               const std::string& class_name) override {
    QRM_ASSIGN_OR_RETURN(const Setting wanted, Find(class_name));
    if (!files_.empty()) {
      QRM_ASSIGN_OR_RETURN(const CgroupTable found,
                           ReadTable(CgroupDirectory(FilesOf(target)), files_));
      if (found != wanted.files) {
        return fmt::format("its cgroup has {}, but the class has {}", cgroup::ToString(found),
                           cgroup::ToString(wanted.files));
      }
    }
    return FindOtherValues(ThreadsOf(target), wanted.threads);
  }

  void Release(const ClassTarget& target) override { spoiled_.erase(target.runtime_id); }

 private:
  /// The neutral values for no class. Errors: kFailedPrecondition with the reason.
  [[nodiscard]] StatusOr<Setting> Find(const std::string& name) const {
    const MutexLock guard(mutex_);
    const auto found = settings_.find(name);
    if (found == settings_.end()) {
      return Errorf(StatusCode::kFailedPrecondition, "there is no {} class {}; add it to {}",
                    type_.name, name, file_.path());
    }
    if (!found->second.problem.empty()) {
      return Errorf(StatusCode::kFailedPrecondition, "{}", found->second.problem);
    }
    return found->second;
  }

  [[nodiscard]] std::string FilesOf(const ClassTarget& target) const {
    return machine_.files_root + CgroupPath(target.cgroups_path);
  }
  [[nodiscard]] std::string ThreadsOf(const ClassTarget& target) const {
    return machine_.threads_root + CgroupPath(target.cgroups_path);
  }

  Status Give(const ClassTarget& target, const Setting& wanted) {
    if (!files_.empty()) {
      CgroupDirectory directory(FilesOf(target));
      KeepSpoiled(target, wanted, directory);
      QRM_RETURN_IF_ERROR(WriteTable(directory, files_, wanted.files));
      RestoreSpoiled(target, wanted, directory);
    }
    return SetAllThreads(ThreadsOf(target), wanted.threads);
  }

  /// Records the values that the kernel will drop.
  void KeepSpoiled(const ClassTarget& target, const Setting& wanted,
                   const CgroupDirectory& directory) {
    const auto found = ReadTable(directory, files_);
    for (const Knob& knob : type_.knobs) {
      if (!found.ok() || found->contains(knob.name) || !wanted.files.contains(knob.name)) {
        continue;
      }
      for (const std::string& file : knob.spoils) {
        if (auto value = directory.Read(file); value.ok()) {
          spoiled_[target.runtime_id][file] = *std::move(value);
        }
      }
    }
  }

  void RestoreSpoiled(const ClassTarget& target, const Setting& wanted,
                      CgroupDirectory& directory) {
    for (const Knob& knob : type_.knobs) {
      const auto kept = spoiled_.find(target.runtime_id);
      if (kept == spoiled_.end() || wanted.files.contains(knob.name)) {
        continue;
      }
      for (const std::string& file : knob.spoils) {
        if (const auto value = kept->second.find(file); value != kept->second.end()) {
          directory.Write(file, value->second).IgnoreError();  // the runtime writes it as well
          kept->second.erase(value);
        }
      }
    }
  }

  Status ReadAgain(const std::set<std::string>& in_use) {
    if (!file_.HasChanged()) {
      return OkStatus();
    }
    QRM_ASSIGN_OR_RETURN(const config::Section section, file_.Load());
    QRM_ASSIGN_OR_RETURN(Classes classes, ParseConfig(section, type_));
    std::set<std::string> names;
    for (const auto& [name, values] : classes) {
      names.insert(name);
    }
    QRM_RETURN_IF_ERROR(file_.CheckInUse(names, in_use));
    TakeOver(std::move(classes));
    return OkStatus();
  }

  /// When a class no longer sets a value, its containers get the neutral value.
  void TakeOver(Classes classes) {
    for (const auto& [name, values] : classes) {
      for (const auto& [knob, value] : values) {
        owned_.insert(knob);
      }
    }
    classes_ = std::move(classes);
    file_.TakeOver();
  }

  void LookAtMachine() {
    files_.clear();
    for (const Knob& knob : type_.knobs) {
      if (owned_.contains(knob.name) && knob.place != KnobPlace::kThreads && IsOf(knob, machine_)) {
        const std::string neutral = knob.neutral.empty()
                                        ? cgroup::ReadLine(machine_.files_root + "/" + knob.name)
                                        : knob.neutral;
        files_.push_back({.name = knob.name,
                          .form = cgroup::LineForm::kWhole,
                          .neutral = neutral,
                          .reset = knob.reset.empty() ? neutral : knob.reset});
      }
    }
    std::map<std::string, Setting> settings;
    std::map<std::string, std::string> definitions;
    settings[""] = SettingOf({});
    for (const auto& [name, values] : classes_) {
      settings[name] = SettingOf(values);
      definitions[name] = DefinitionOf(values);
    }
    const MutexLock guard(mutex_);
    settings_ = std::move(settings);
    definitions_ = std::move(definitions);
  }

  [[nodiscard]] Setting SettingOf(const KnobValues& values) const {
    Setting setting;
    for (const CgroupFile& file : files_) {
      const auto value = values.find(file.name);
      if (value != values.end() && value->second != file.neutral) {
        setting.files[file.name][cgroup::kNoKey] = value->second;
      }
    }
    for (const Knob& knob : type_.knobs) {
      const auto value = values.find(knob.name);
      const std::string& wanted = value == values.end() ? knob.neutral : value->second;
      if (knob.place == KnobPlace::kThreads && owned_.contains(knob.name) && !wanted.empty()) {
        setting.threads[knob.attribute] = wanted;
      }
    }
    const Status possible = CheckValues(type_, values, machine_);
    setting.problem = possible.ok() ? "" : MessageOf(possible);
    return setting;
  }

  const KnobType& type_;
  const KnobMachine machine_;
  // This and the next four: only on the provider's thread.
  ClassFile file_;
  Classes classes_;              // from the last valid file
  std::set<std::string> owned_;  // the knobs that a class sets or has set
  std::vector<CgroupFile> files_;
  std::map<std::string, StringMap> spoiled_;  // runtime id -> file -> its value before
  mutable Mutex mutex_;
  std::map<std::string, Setting> settings_ QRM_GUARDED_BY(mutex_);  // "": no class
  StringMap definitions_ QRM_GUARDED_BY(mutex_);
};

}  // namespace

StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeKnobProvider(const KnobType& type,
                                                               const std::string& config_file,
                                                               KnobMachine machine) {
  ClassFile file(config_file);
  QRM_ASSIGN_OR_RETURN(const config::Section section, file.Load());
  QRM_ASSIGN_OR_RETURN(Classes classes, ParseConfig(section, type));
  return std::unique_ptr<sdk::ClassProvider>(
      std::make_unique<Provider>(type, std::move(file), std::move(classes), std::move(machine)));
}

StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeSystemKnobs(const KnobType& type,
                                                              const std::string& config_file,
                                                              const std::string& cgroup_root) {
  return MakeKnobProvider(type, config_file, FindKnobs(type, cgroup_root));
}

}  // namespace qrm::knobs
