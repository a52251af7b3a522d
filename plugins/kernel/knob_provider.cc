// Sets each class's values on containers, and gives back what the kernel drops meanwhile.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/cgroup.h"
#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/base/number.h"
#include "plugins/kernel/cgroup_table.h"
#include "plugins/kernel/file_classes.h"
#include "plugins/kernel/kernel_values.h"
#include "plugins/kernel/knob.h"
#include "plugins/kernel/thread_attributes.h"

namespace qrm::kernel {
namespace {

using sdk::ClassOptions;
using sdk::ClassTarget;

/// The values that a class, or no class, means for a container.
struct KnobSetting {
  CgroupTable files;     ///< without neutral values
  ThreadValues threads;  ///< with neutral values
};

std::string DefinitionOf(const KnobValues& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", name, value);
  }
  std::ranges::replace(text, '\n', ',');
  return text.empty() ? "nothing set" : text;
}

class KnobClasses final : public FileClasses<KnobValues, KnobSetting> {
 public:
  KnobClasses(const KnobType& type, const std::string& config_file, KnobMachine machine)
      : FileClasses({.name = type.name, .level = type.level, .is_mutable = type.is_mutable},
                    config_file),
        type_(type),
        machine_(std::move(machine)) {}

  [[nodiscard]] StatusOr<ClassOptions> Resolve(const std::string& class_name) const override {
    QRM_ASSIGN_OR_RETURN(const KnobSetting setting, Find(class_name));
    ClassOptions options;
    if (type_.level == sdk::ClassLevel::kPod) {
      return options;  // the runtime would set them on the container
    }
    for (const Knob& knob : type_.knobs) {
      const auto lines = setting.files.find(knob.name);
      // A value that spoils others is set later, once the others can be read.
      if (!machine_.is_v1 && lines != setting.files.end() && knob.spoils.empty()) {
        options.unified[knob.name] = lines->second.at(kNoKey);
      }
    }
    const auto score = setting.threads.find(kOomScoreAdj);
    if (score != setting.threads.end()) {
      options.oom_score_adj = ParseNumber<int64_t>(score->second);
    }
    return options;
  }

  Status Apply(const ClassTarget& target, const std::string& from, const std::string& to) override {
    QRM_ASSIGN_OR_RETURN(const KnobSetting wanted, Find(to));
    Status given = Give(target, wanted);
    if (!given.ok() && given.code() != StatusCode::kNotFound && from != to) {
      if (const auto former = Find(from); former.ok()) {
        Give(target, *former).IgnoreError();  // the first error is returned
      }
    }
    const bool is_lost = !from.empty() && to.empty() && !Has(from);
    return given.ok() && is_lost ? ResetAll(target) : given;
  }

  [[nodiscard]] StatusOr<std::string> ReadBack(const ClassTarget& target,
                                               const std::string& class_name) override {
    QRM_ASSIGN_OR_RETURN(const KnobSetting wanted, Find(class_name));
    for (const Level& level : LevelsOf(target, wanted)) {
      QRM_ASSIGN_OR_RETURN(std::string drift,
                           FindDrift(SystemFiles(level.path), *level.files, level.wanted));
      if (!drift.empty()) {
        return drift;
      }
    }
    return FindOtherValues(ThreadsOf(target), wanted.threads);
  }

  void Release(const ClassTarget& target) override {
    const std::string own = FilesOf(target);
    const std::string pod = PodCgroup(own, target.key.pod_uid);
    RestoreKept(own);
    if (auto found = pods_.find(pod);
        found != pods_.end() && found->second.erase(own) > 0 && found->second.empty()) {
      pods_.erase(found);
      RestoreKept(pod);
    }
  }

 private:
  /// A cgroup with the files that are set there.
  struct Level {
    std::string path;
    const std::vector<CgroupFile>* files;
    CgroupTable wanted;
  };

  [[nodiscard]] StatusOr<Classes> Parse(const config::Section& file) const override {
    return ParseKnobClasses(file, type_);
  }
  [[nodiscard]] Classes WithoutFile() const override { return type_.built_in; }

  /// When a class no longer sets a value, its containers get the neutral value.
  Meanings ResolveAll(const Classes& classes) override {
    for (const auto& [name, values] : classes) {
      for (const auto& [knob, value] : values) {
        owned_.insert(knob);
      }
    }
    files_.clear();
    pod_files_.clear();
    for (const Knob& knob : type_.knobs) {
      if (owned_.contains(knob.name) && knob.place != KnobPlace::kThreads && IsOf(knob, machine_)) {
        files_.push_back(FileOf(knob));
        if (knob.is_of_pods) {
          pod_files_.push_back(files_.back());
        }
      }
    }
    std::set<std::string> names;
    for (const CgroupFile& file : files_) {
      names.insert(file.name);
    }
    Meanings meanings = {{"", {.setting = SettingOf({})}}};
    for (const auto& [name, values] : classes) {
      const Status possible = CheckValues(type_, values, machine_);
      meanings[name] = {.setting = SettingOf(values),
                        .definition = DefinitionOf(values),
                        .problem = possible.ok() ? "" : MessageOf(possible),
                        .files = names};
    }
    return meanings;
  }

  [[nodiscard]] KnobSetting SettingOf(const KnobValues& values) const {
    KnobSetting setting;
    for (const CgroupFile& file : files_) {
      const auto value = values.find(file.name);
      auto lines = ParseLines(file, value == values.end() ? file.neutral : value->second);
      if (!lines.empty()) {
        setting.files[file.name] = std::move(lines);
      }
    }
    for (const Knob& knob : type_.knobs) {
      const auto value = values.find(knob.name);
      const std::string& wanted = value == values.end() ? knob.neutral : value->second;
      if (knob.place == KnobPlace::kThreads && owned_.contains(knob.name) && !wanted.empty()) {
        setting.threads[knob.name] = wanted;
      }
    }
    return setting;
  }

  /// Of a class that does not exist any more, any value may be left. A pod keeps what its other
  /// containers have by a class.
  Status ResetAll(const ClassTarget& target) {
    std::vector<CgroupFile> files;
    std::vector<CgroupFile> of_pods;
    ThreadValues threads;
    std::string lasting;
    for (const Knob& knob : type_.knobs) {
      if (knob.place == KnobPlace::kThreads) {
        if (knob.neutral.empty()) {
          lasting = knob.name;
        } else {
          threads[knob.name] = knob.neutral;
        }
      } else if (IsOf(knob, machine_) && machine_.HasFile(knob.name)) {
        files.push_back(FileOf(knob));
        if (knob.is_of_pods && !owned_.contains(knob.name)) {
          of_pods.push_back(files.back());
        }
      }
    }
    const std::string own = FilesOf(target);
    const std::string pod = of_pods.empty() ? "" : PodCgroup(own, target.key.pod_uid);
    for (const auto& [path, reset] : {std::pair(own, files), std::pair(pod, of_pods)}) {
      if (!path.empty()) {
        SystemFiles directory(path);
        QRM_RETURN_IF_ERROR(WriteTable(directory, reset, {}));
        RestoreKept(path);
      }
    }
    QRM_RETURN_IF_ERROR(SetAllThreads(ThreadsOf(target), threads));
    return lasting.empty() ? OkStatus()
                           : Errorf(StatusCode::kFailedPrecondition,
                                    "if the class set {}, only kubelet knows its former value; "
                                    "recreate the pod",
                                    lasting);
  }

  [[nodiscard]] CgroupFile FileOf(const Knob& knob) const {
    const std::string neutral =
        knob.neutral.empty() ? ReadLine(machine_.files_root + "/" + knob.name) : knob.neutral;
    return {.name = knob.name,
            .form = IsMapping(knob.form) ? LineForm::kKeyed : LineForm::kWhole,
            .neutral = neutral,
            .reset = knob.reset.empty() ? neutral : knob.reset};
  }

  [[nodiscard]] std::string FilesOf(const ClassTarget& target) const {
    return machine_.files_root + CgroupPath(target.cgroups_path);
  }
  [[nodiscard]] std::string ThreadsOf(const ClassTarget& target) const {
    return machine_.threads_root + CgroupPath(target.cgroups_path);
  }

  /// The container's cgroup and, for what counts beside other pods, its pod's.
  std::vector<Level> LevelsOf(const ClassTarget& target, const KnobSetting& wanted) {
    if (files_.empty()) {
      return {};
    }
    std::vector<Level> levels = {{FilesOf(target), &files_, wanted.files}};
    const std::string pod = PodCgroup(levels.front().path, target.key.pod_uid);
    if (!pod.empty() && !pod_files_.empty()) {
      auto& containers = pods_[pod];
      CgroupTable& own = containers[levels.front().path];
      own.clear();
      for (const CgroupFile& file : pod_files_) {
        if (const auto lines = wanted.files.find(file.name); lines != wanted.files.end()) {
          own.insert(*lines);
        }
      }
      const bool is_of_all =
          std::ranges::all_of(containers, [&own](const auto& each) { return each.second == own; });
      levels.push_back({pod, &pod_files_, is_of_all ? own : CgroupTable()});
    }
    return levels;
  }

  Status Give(const ClassTarget& target, const KnobSetting& wanted) {
    for (const Level& level : LevelsOf(target, wanted)) {
      SystemFiles directory(level.path);
      KeepSpoiled(level, directory);
      QRM_RETURN_IF_ERROR(WriteTable(directory, *level.files, level.wanted));
      RestoreSpoiled(level);
    }
    return SetAllThreads(ThreadsOf(target), wanted.threads);
  }

  /// Records the values that the kernel will drop.
  void KeepSpoiled(const Level& level, const KernelFiles& directory) {
    std::vector<Claim> claims;
    const auto found = ReadTable(directory, *level.files);
    for (const Knob& knob : type_.knobs) {
      if (!found.ok() || found->contains(knob.name) || !level.wanted.contains(knob.name)) {
        continue;
      }
      for (const std::string& file : knob.spoils) {
        if (directory.Read(file).ok()) {
          claims.push_back({.path = level.path + "/" + file, .form = ClaimForm::kKept});
        }
      }
    }
    if (KernelValues* const kept = claims.empty() ? nullptr : Kept(); kept != nullptr) {
      Warn(kept->Hold(level.path, claims).status());
    }
  }

  void RestoreSpoiled(const Level& level) {
    const bool drops = std::ranges::any_of(type_.knobs, [&](const Knob& knob) {
      return !knob.spoils.empty() && level.wanted.contains(knob.name);
    });
    if (!drops) {
      RestoreKept(level.path);
    }
  }

  void RestoreKept(const std::string& path) {
    if (KernelValues* const kept = Kept(); kept != nullptr) {
      Warn(kept->Release(path));
    }
  }

  static void Warn(const Status& status) {
    if (!status.ok()) {
      log::Warning("value that the kernel drops is not restored", {{"error", MessageOf(status)}});
    }
  }

  /// Null if the type has no such values, or the journal cannot be read.
  KernelValues* Kept() {
    const bool spoils =
        std::ranges::any_of(type_.knobs, [](const Knob& knob) { return !knob.spoils.empty(); });
    if (!std::exchange(is_opened_, true) && spoils && !machine_.journal.empty()) {
      auto opened = KernelValues::Open(root_, machine_.journal);
      Warn(opened.status());
      kept_ = opened.ok() ? *std::move(opened) : nullptr;
      const JournalRecords records = kept_ == nullptr ? JournalRecords() : kept_->records();
      for (const JournalRecord& record : records) {
        if (root_.Read(record.path).status().code() == StatusCode::kNotFound) {
          Warn(kept_->ReleaseFile(record.path));  // its cgroup ended meanwhile
        }
      }
    }
    return kept_.get();
  }

  const KnobType& type_;
  const KnobMachine machine_;
  // This and the next six: only on the provider's thread.
  std::set<std::string> owned_;  // the knobs that a class sets or has set
  std::vector<CgroupFile> files_;
  std::vector<CgroupFile> pod_files_;  // those of `files_` that pods have as well
  // A pod's cgroup -> those of its containers -> what they want of `pod_files_`.
  std::map<std::string, std::map<std::string, CgroupTable>> pods_;
  SystemFiles root_{"/"};
  std::unique_ptr<KernelValues> kept_;  // the owners are cgroups
  bool is_opened_ = false;
};

}  // namespace

StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeKnobProvider(const KnobType& type,
                                                               const std::string& config_file,
                                                               KnobMachine machine) {
  return MakeFileClasses<KnobClasses>(type, config_file, std::move(machine));
}

}  // namespace qrm::kernel
