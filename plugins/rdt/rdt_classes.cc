// Implements the class type rdt with resctrl; moves threads until all are in their group.
#include "plugins/rdt/rdt_classes.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/types.h>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "api/base/cgroup.h"
#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/base/section.h"
#include "plugins/kernel/container_threads.h"
#include "plugins/rdt/resolve.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::rdt {
namespace {

/// How a pass finds the threads that are not in the group.
enum class Check {
  kGroupFile,    ///< one read for all threads, of the file that was written
  kThreadFiles,  ///< each thread's file
};

StatusOr<std::vector<pid_t>> FindMissing(const Resctrl& resctrl, const std::vector<pid_t>& threads,
                                         const std::string& group, Check check) {
  std::vector<pid_t> missing;
  if (check == Check::kGroupFile) {
    QRM_ASSIGN_OR_RETURN(const std::set<pid_t> inside, resctrl.Threads(group));
    for (const pid_t thread : threads) {
      if (!inside.contains(thread)) {
        missing.push_back(thread);
      }
    }
    return missing;
  }
  for (const pid_t thread : threads) {
    QRM_ASSIGN_OR_RETURN(const std::optional<std::string> found, resctrl.GroupOf(thread));
    if (found.has_value() && *found != group) {
      missing.push_back(thread);
    }
  }
  return missing;
}

/// Whether `line` sets the key to a value that is not empty.
bool SetsRdtFile(std::string_view line) {
  constexpr std::string_view kKey = "rdt_config_file";
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (!line.starts_with(kKey)) {
    return false;
  }
  line.remove_prefix(kKey.size());
  const std::size_t value = line.find_first_not_of(" \t=");
  return value != std::string_view::npos && line.find('=') < value &&
         line.substr(value, 2) != "\"\"" && line.substr(value, 2) != "''";
}

/// The configuration files of containerd and CRI-O.
std::vector<std::string> RuntimeConfigFiles(const std::string& etc) {
  std::vector<std::string> files = {etc + "/containerd/config.toml", etc + "/crio/crio.conf"};
  std::set<std::string> parts;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(etc + "/crio/crio.conf.d", error)) {
    parts.insert(entry.path());
  }
  files.insert(files.end(), parts.begin(), parts.end());
  return files;
}

/// The first of `files` that sets `rdt_config_file`; empty if none does. A runtime with that
/// setting removes every resctrl group that is not in its own file. Source: containerd's
/// tasks-service, CRI-O's [crio.runtime]: TOML, one key per line.
std::string FindRuntimeSetting(const std::vector<std::string>& files) {
  for (const std::string& path : files) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      if (SetsRdtFile(line)) {
        return path;
      }
    }
  }
  return "";
}

std::set<std::string> NamesOf(const RdtConfig& config) {
  std::set<std::string> names;
  for (const auto& [name, partition] : config.partitions) {
    for (const auto& [class_name, asked] : partition.classes) {
      names.insert(class_name);
    }
  }
  names.erase(kRootClass);
  return names;
}

/// Whether a class of `lines` has less than the whole of some cache.
bool IsPart(const Schemata& lines, const RdtInfo& info) {
  return std::ranges::any_of(lines, [&](const auto& line) {
    const auto& cache = line.first.starts_with("L2") ? info.l2 : info.l3;
    return line.first.starts_with("L") && cache.has_value() &&
           std::ranges::any_of(line.second,
                               [&](const auto& mask) { return mask.second != cache->mask; });
  });
}

const sdk::ClassInfo* FindClass(const sdk::ClassType& type, const std::string& name) {
  const auto found = std::ranges::find_if(
      type.classes, [&](const sdk::ClassInfo& info) { return info.name == name; });
  return found == type.classes.end() ? nullptr : &*found;
}

std::string QuantityOf(const std::string& event) {
  return event.ends_with("_bytes") ? event : event + "_bytes";
}

}  // namespace

std::string NameOfGroup(const std::string& group) {
  return group.empty() ? "the root group" : fmt::format("group {}", group);
}

Status MoveAll(const Resctrl& resctrl, const std::string& directory, const std::string& group) {
  const auto pass = [&](const std::vector<pid_t>& threads, int clean) -> StatusOr<std::size_t> {
    const Check check = clean == 0 ? Check::kGroupFile : Check::kThreadFiles;
    QRM_ASSIGN_OR_RETURN(const std::vector<pid_t> missing,
                         FindMissing(resctrl, threads, group, check));
    if (!missing.empty()) {
      QRM_RETURN_IF_ERROR(resctrl.Move(missing, group));
    }
    return missing.size();
  };
  return kernel::RepairAllThreads(
      directory, fmt::format("move all threads of {} to {}", directory, NameOfGroup(group)), pass);
}

StatusOr<std::string> FindElsewhere(const Resctrl& resctrl, const std::string& directory,
                                    const std::string& group) {
  QRM_ASSIGN_OR_RETURN(const std::vector<pid_t> threads, kernel::ThreadsBelow(directory));
  std::map<std::string, std::size_t> elsewhere;
  for (const pid_t thread : threads) {
    QRM_ASSIGN_OR_RETURN(const std::optional<std::string> found, resctrl.GroupOf(thread));
    if (found.has_value() && *found != group) {
      ++elsewhere[*found];
    }
  }
  std::string where;
  for (const auto& [name, count] : elsewhere) {
    where += fmt::format("{}{} in {}", where.empty() ? "" : ", ", count, NameOfGroup(name));
  }
  return where.empty() ? ""
                       : fmt::format("{} threads, not all in {}: {}", threads.size(),
                                     NameOfGroup(group), where);
}

RdtClasses::RdtClasses(RdtSettings settings)
    : settings_(std::move(settings)),
      resctrl_(settings_.paths),
      keeper_(resctrl_, settings_.journal) {
  type_.name = kTypeName;
  type_.is_mutable = !IsRuntimes();
  type_.problem = "not known yet: resctrl has not been read; try again";
}

sdk::ClassType RdtClasses::List() const {
  const MutexLock lock(mutex_);
  return type_;
}

StatusOr<std::string> RdtClasses::GroupOfClass(const std::string& class_name) const {
  if (class_name.empty()) {
    return std::string();
  }
  const MutexLock lock(mutex_);
  if (FindClass(type_, class_name) == nullptr) {
    return Errorf(StatusCode::kNotFound, "rdt has no class {}{}{}; see `qrmctl classes`",
                  class_name, type_.problem.empty() ? "" : ": ", type_.problem);
  }
  if (!type_.problem.empty()) {
    return Errorf(StatusCode::kFailedPrecondition, "{}", type_.problem);
  }
  return IsRuntimes() ? class_name : kGroupPrefix + class_name;
}

StatusOr<sdk::ClassOptions> RdtClasses::Resolve(const std::string& class_name) const {
  sdk::ClassOptions options;
  QRM_ASSIGN_OR_RETURN(options.rdt_class, GroupOfClass(class_name));
  return options;
}

StatusOr<RdtConfig> RdtClasses::LoadConfig(const std::set<std::string>& in_use) {
  QRM_ASSIGN_OR_RETURN(const config::Section section, config::Section::Load(settings_.config_file));
  QRM_ASSIGN_OR_RETURN(RdtConfig config, ParseRdtConfig(section));
  const std::set<std::string> names = NamesOf(config);
  std::vector<std::string> dropped;
  std::set_difference(in_use.begin(), in_use.end(), names.begin(), names.end(),
                      std::back_inserter(dropped));
  if (!dropped.empty() && config_.has_value()) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot use the classes of {}: it lacks {}, which containers use; add it again, "
                  "or give the containers another class first",
                  settings_.config_file, fmt::join(dropped, ", "));
  }
  return config;
}

Status RdtClasses::FindResctrl() {
  StatusOr<RdtInfo> info = resctrl_.ReadInfo();
  if (!info.ok() && was_mounted_) {
    is_away_ = true;
    QRM_RETURN_IF_ERROR(resctrl_.Mount(mount_options_));
    info = resctrl_.ReadInfo();
  }
  QRM_RETURN_IF_ERROR(info.status());
  if (is_away_) {
    ++mounts_;
    log::Warning("resctrl was unmounted; mounted again", {{"path", settings_.paths.mount}});
  }
  is_away_ = false;
  was_mounted_ = true;
  mount_options_ = resctrl_.MountOptions();
  info_ = *std::move(info);
  return OkStatus();
}

Status RdtClasses::Take(const RdtConfig& config) {
  QRM_ASSIGN_OR_RETURN(const auto schemata, rdt::Resolve(config, info_));
  std::map<std::string, Schemata> wanted;
  std::map<std::string, std::string> definitions;
  for (const auto& [name, lines] : schemata) {
    wanted[name == kRootClass ? "" : kGroupPrefix + name] = lines;
    definitions[name] = OneLine(AsShown(lines, info_)) +
                        (IsPart(lines, info_) && SharesWithRoot(schemata, name, info_)
                             ? "; the root group may use these ways"
                             : "");
  }
  QRM_RETURN_IF_ERROR(keeper_.Keep(wanted, info_));
  if (const std::string raised = RaisedBandwidth(config, info_); !raised.empty()) {
    log::Warning("classes get more memory bandwidth than configured", {{"reason", raised}});
  }
  definitions.erase(kRootClass);
  definitions_ = std::move(definitions);
  config_ = config;
  in_force_ = true;
  return OkStatus();
}

Status RdtClasses::FollowConfig(const std::set<std::string>& in_use) {
  in_force_ = false;
  if (const std::string file = FindRuntimeSetting(RuntimeConfigFiles(settings_.etc));
      !file.empty()) {
    return Errorf(
        StatusCode::kFailedPrecondition,
        "cannot create resctrl groups: {} sets rdt_config_file, so the runtime removes other "
        "groups; remove it there, or leave config-file empty to use the runtime's classes",
        file);
  }
  const StatusOr<RdtConfig> next = LoadConfig(in_use);
  if (!config_.has_value()) {
    definitions_.clear();
    for (const std::string& name : next.ok() ? NamesOf(*next) : std::set<std::string>()) {
      definitions_[name];
    }
  }
  QRM_RETURN_IF_ERROR(FindResctrl());
  Status taken = next.ok() ? Take(*next) : next.status();
  if (taken.ok() || !config_.has_value()) {
    return taken;
  }
  if (const Status kept = Take(RdtConfig(*config_)); !kept.ok()) {
    return kept;
  }
  return Annotate(taken, "the previous classes stay in force");
}

Status RdtClasses::FollowRuntime() {
  in_force_ = false;
  QRM_RETURN_IF_ERROR(FindResctrl());
  QRM_RETURN_IF_ERROR(keeper_.Keep({}, info_));  // those of a former config-file
  QRM_ASSIGN_OR_RETURN(const std::set<std::string> groups, resctrl_.Groups());
  definitions_.clear();
  for (const std::string& group : groups) {
    const StatusOr<std::string> text = resctrl_.ReadSchemata(group);
    // Only groups that still exist and that a pod can request.
    if (text.ok() && sdk::IsClassName(group)) {
      definitions_[group] = OneLine(ParseSchemata(*text));
    }
  }
  in_force_ = true;
  return OkStatus();
}

Status RdtClasses::Refresh(const std::set<std::string>& in_use) {
  const Status followed = IsRuntimes() ? FollowRuntime() : FollowConfig(in_use);
  const MutexLock lock(mutex_);
  type_.problem = in_force_ ? "" : MessageOf(followed);
  type_.repairs = keeper_.repairs() + mounts_;
  type_.classes.clear();
  for (const auto& [name, definition] : definitions_) {
    type_.classes.push_back({.name = name, .definition = definition});
  }
  return followed;
}

StatusOr<std::string> RdtClasses::DirectoryOf(const sdk::ClassTarget& target) const {
  // In cgroup v1, the hierarchy where a container can be frozen.
  QRM_ASSIGN_OR_RETURN(const CgroupHierarchy hierarchy,
                       FindCgroupHierarchy(settings_.cgroup_root, "freezer", "memory"));
  return hierarchy.root + CgroupPath(target.cgroups_path);
}

Status RdtClasses::MoveTo(const std::string& directory, const std::string& class_name) {
  QRM_ASSIGN_OR_RETURN(const std::string group, GroupOfClass(class_name));
  Status moved = MoveAll(resctrl_, directory, group);
  if (moved.code() != StatusCode::kUnavailable) {
    return moved;
  }
  const std::optional<RdtConfig> config = config_;
  if (!config.has_value()) {
    return moved;
  }
  // Another process may have removed the group meanwhile.
  QRM_RETURN_IF_ERROR(FindResctrl());
  QRM_RETURN_IF_ERROR(Take(*config));
  return MoveAll(resctrl_, directory, group);
}

Status RdtClasses::Apply(const sdk::ClassTarget& target, const std::string& from,
                         const std::string& to) {
  if (IsRuntimes()) {
    QRM_ASSIGN_OR_RETURN(const std::string elsewhere, ReadBack(target, to));
    return elsewhere.empty() ? OkStatus()
                             : Errorf(StatusCode::kFailedPrecondition,
                                      "cannot move to class {}: {}; the runtime owns the groups: "
                                      "recreate the container",
                                      to, elsewhere);
  }
  QRM_ASSIGN_OR_RETURN(const std::string directory, DirectoryOf(target));
  const Status moved = MoveTo(directory, to);
  if (!moved.ok() && moved.code() != StatusCode::kNotFound && from != to) {
    const StatusOr<std::string> group = GroupOfClass(from);
    if (group.ok()) {
      MoveAll(resctrl_, directory, *group).IgnoreError();  // the first error is returned
    }
  }
  return moved;
}

StatusOr<std::string> RdtClasses::ReadBack(const sdk::ClassTarget& target,
                                           const std::string& class_name) {
  if (class_name.empty()) {
    return std::string();
  }
  QRM_ASSIGN_OR_RETURN(const std::string group, GroupOfClass(class_name));
  QRM_ASSIGN_OR_RETURN(const std::string directory, DirectoryOf(target));
  return FindElsewhere(resctrl_, directory, group);
}

std::vector<sdk::ClassReading> RdtClasses::Readings() {
  std::vector<sdk::ClassReading> readings;
  for (const auto& [name, definition] : definitions_) {
    const std::string group = IsRuntimes() ? name : kGroupPrefix + name;
    for (const auto& [event, count] : resctrl_.Counters(group, info_)) {
      readings.push_back(
          {.class_name = name, .quantity = QuantityOf(event), .value = static_cast<double>(count)});
    }
  }
  return readings;
}

StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeSystemRdt(RdtSettings settings) {
  if (!settings.config_file.empty()) {
    StatusOr<config::Section> section = config::Section::Load(settings.config_file);
    if (section.status().code() == StatusCode::kNotFound) {
      return Status(StatusCode::kInvalidArgument, section.status().message());
    }
    QRM_RETURN_IF_ERROR(section.status());
    QRM_RETURN_IF_ERROR(ParseRdtConfig(*section).status());
  }
  return std::make_unique<RdtClasses>(std::move(settings));
}

bool IsLeftOnSystem(const std::string& journal) {
  const auto groups = Resctrl({}).Groups();
  return kernel::ReadLine(journal).find(kRootSchemata) != std::string::npos ||
         (groups.ok() && std::ranges::any_of(*groups, [](const std::string& group) {
            return group.starts_with(kGroupPrefix);
          }));
}

}  // namespace qrm::rdt
