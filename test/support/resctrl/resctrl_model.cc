// Answers as fs/resctrl does.
#include "test/support/resctrl/resctrl_model.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/number.h"

namespace qrm::test {
namespace {

constexpr uint64_t kUnlimitedMbps = 4294967295;
constexpr const char* kEvents[] = {"llc_occupancy", "mbm_total_bytes", "mbm_local_bytes"};

std::string_view Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  return first == std::string_view::npos
             ? std::string_view()
             : text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

std::string Next(std::string& path) {
  const std::size_t slash = path.find('/');
  std::string part = path.substr(0, slash);
  path = slash == std::string::npos ? "" : path.substr(slash + 1);
  return part;
}

std::string Lines(const std::vector<pid_t>& threads) {
  return threads.empty() ? "" : fmt::format("{}\n", fmt::join(threads, "\n"));
}

}  // namespace

ResctrlModel::ResctrlModel(ResctrlMachine machine) : machine_(std::move(machine)) {
  const MutexLock lock(mutex_);
  groups_[""].schemata = FullSchemata();
}

void ResctrlModel::Reset() {
  threads_.Reset();
  const MutexLock lock(mutex_);
  groups_.clear();
  groups_[""].schemata = FullSchemata();
  status_ = "ok";
}

void ResctrlModel::SetBefore(std::function<void(const std::string&)> before) {
  const MutexLock lock(mutex_);
  before_ = std::move(before);
}

void ResctrlModel::SetCounter(const std::string& group, const std::string& event,
                              const std::string& text) {
  const MutexLock lock(mutex_);
  groups_[group].counters[event] = text;
}

void ResctrlModel::Announce(const std::string& path) {
  std::function<void(const std::string&)> before;
  {
    const MutexLock lock(mutex_);
    before = before_;
  }
  if (before) {
    before(path);
  }
}

std::vector<std::string> ResctrlModel::Caches() const {
  return machine_.code_and_data ? std::vector<std::string>{"L3CODE", "L3DATA"}
                                : std::vector<std::string>{"L3"};
}

ResctrlModel::Values ResctrlModel::FullSchemata() const {
  Values full;
  for (const int id : machine_.cache_ids) {
    for (const std::string& cache : Caches()) {
      uint64_t mask = machine_.l3_mask;
      for (const auto& [name, group] : groups_) {
        mask &= group.mode == "exclusive" ? ~group.schemata.at(cache).at(id) : ~uint64_t{0};
      }
      const int low = std::countr_zero(mask);
      const int run = mask == 0 ? 0 : std::countr_one(mask >> low);
      full[cache][id] = mask & (((uint64_t{1} << run) - 1) << low);  // no holes
    }
    full["MB"][id] = machine_.bandwidth_in_mbps ? kUnlimitedMbps : 100;
  }
  return full;
}

std::string ResctrlModel::SchemataText(const Group& group) const {
  std::size_t width = 6;  // as of the longest name that a kernel has
  for (const auto& [name, values] : group.schemata) {
    width = std::max(width, name.size());
  }
  std::string text;
  for (const auto& [name, values] : group.schemata) {
    std::vector<std::string> parts;
    for (const auto& [id, value] : values) {
      parts.push_back(name == "MB" ? fmt::format("{}={:>4}", id, value)
                                   : fmt::format("{}={:x}", id, value));
    }
    text += fmt::format("{:>{}}:{}\n", name, width, fmt::join(parts, ";"));
  }
  return text;
}

std::map<std::string, std::string> ResctrlModel::InfoFiles() const {
  std::map<std::string, std::string> files{{"last_cmd_status", status_ + "\n"}};
  for (const std::string& cache : Caches()) {
    files[cache + "/num_closids"] = fmt::format("{}\n", Closids());
    files[cache + "/cbm_mask"] = fmt::format("{:x}\n", machine_.l3_mask);
    files[cache + "/min_cbm_bits"] = fmt::format("{}\n", machine_.least_bits);
    files[cache + "/shareable_bits"] = "0\n";
  }
  files["MB/num_closids"] = fmt::format("{}\n", machine_.closids);
  files["MB/min_bandwidth"] = fmt::format("{}\n", machine_.least_bandwidth);
  files["MB/bandwidth_gran"] = fmt::format("{}\n", machine_.bandwidth_granularity);
  files["MB/delay_linear"] = "1\n";
  files["L3_MON/num_rmids"] = fmt::format("{}\n", machine_.rmids);
  files["L3_MON/mon_features"] = fmt::format("{}\n", fmt::join(kEvents, "\n"));
  return files;
}

std::set<std::string> ResctrlModel::FilesOf(const Where& where) const {
  std::set<std::string> files{"tasks", "cpus", "cpus_list"};
  if (where.monitor.empty()) {
    files.insert({"schemata", "mode", "size"});
  }
  for (const int id : machine_.cache_ids) {
    for (const char* const event : kEvents) {
      files.insert(fmt::format("mon_data/mon_L3_{:02}/{}", id, event));
    }
  }
  return files;
}

ResctrlModel::Where ResctrlModel::Locate(const std::string& path) const {
  Where where{.rest = path, .exists = true};
  std::string rest = path;
  const std::string first = Next(rest);
  if (!first.empty() && groups_.contains(first)) {
    where.group = first;
    where.rest = rest;
  }
  rest = where.rest;
  if (Next(rest) == "mon_groups" && !rest.empty()) {
    where.monitor = Next(rest);
    where.rest = rest;
    where.exists = groups_.at(where.group).monitors.contains(where.monitor);
  }
  return where;
}

FileTree::Kind ResctrlModel::Find(const std::string& path) {
  const MutexLock lock(mutex_);
  const Where where = Locate(path);
  if (!where.exists) {
    return Kind::kNone;
  }
  if (where.rest.empty() || (where.rest == "mon_groups" && where.monitor.empty())) {
    return Kind::kDirectory;
  }
  std::set<std::string> files = FilesOf(where);
  if (where.group.empty() && where.monitor.empty()) {
    for (const auto& [name, text] : InfoFiles()) {
      files.insert("info/" + name);
    }
  }
  if (files.contains(where.rest)) {
    return Kind::kFile;
  }
  const auto inside = files.lower_bound(where.rest + "/");
  return inside != files.end() && inside->starts_with(where.rest + "/") ? Kind::kDirectory
                                                                        : Kind::kNone;
}

std::vector<std::string> ResctrlModel::List(const std::string& directory) {
  std::set<std::string> names;
  const MutexLock lock(mutex_);
  const Where where = Locate(directory);
  std::set<std::string> paths = FilesOf(where);
  if (where.monitor.empty()) {
    paths.insert("mon_groups/");
    for (const std::string& monitor : groups_.at(where.group).monitors) {
      paths.insert("mon_groups/" + monitor);
    }
    if (where.group.empty()) {
      for (const auto& [name, text] : InfoFiles()) {
        paths.insert("info/" + name);
      }
      for (const auto& [name, group] : groups_) {
        paths.insert(name);
      }
    }
  }
  const std::string prefix = where.rest.empty() ? "" : where.rest + "/";
  for (const std::string& path : paths) {
    if (path.starts_with(prefix) && path.size() > prefix.size()) {
      std::string rest = path.substr(prefix.size());
      names.insert(Next(rest));
    }
  }
  return {names.begin(), names.end()};
}

FileResult ResctrlModel::Read(const std::string& path) {
  const MutexLock lock(mutex_);
  const Where where = Locate(path);
  if (!where.exists) {
    return {.error = ENODEV};
  }
  if (where.group.empty() && where.rest.starts_with("info/")) {
    const auto files = InfoFiles();
    const auto found = files.find(where.rest.substr(5));
    return found == files.end() ? FileResult{.error = ENODEV} : FileResult{.text = found->second};
  }
  const Group& group = groups_.at(where.group);
  if (where.rest == "tasks") {
    return {.text = Lines(threads_.In({where.group, where.monitor}))};
  }
  if (where.rest == "schemata") {
    return {.text = SchemataText(group)};
  }
  if (where.rest == "mode") {
    return {.text = group.mode + "\n"};
  }
  if (where.rest.starts_with("mon_data/")) {
    const auto counter = group.counters.find(where.rest.substr(where.rest.rfind('/') + 1));
    return {.text = (counter == group.counters.end() ? "0" : counter->second) + "\n"};
  }
  return FilesOf(where).contains(where.rest) ? FileResult{.text = "\n"}
                                             : FileResult{.error = ENODEV};
}

int ResctrlModel::Fail(int error, std::string text) {
  status_ = std::move(text);
  return error;
}

int ResctrlModel::Write(const std::string& path, std::string_view text) {
  Announce(path);
  const MutexLock lock(mutex_);
  const Where where = Locate(path);
  if (!where.exists || !FilesOf(where).contains(where.rest)) {
    return where.rest.starts_with("info/") ? EACCES : ENODEV;
  }
  if (where.rest == "tasks") {
    status_ = "ok";
    return WriteTasks(where, text);
  }
  if (!text.ends_with('\n')) {
    return EINVAL;  // and the status of the last command stays
  }
  status_ = "ok";
  if (where.rest == "schemata") {
    return WriteSchemata(where.group, text.substr(0, text.size() - 1));
  }
  return where.rest == "mode" ? WriteMode(where.group, Trimmed(text)) : EACCES;
}

int ResctrlModel::WriteTasks(const Where& where, std::string_view text) {
  while (!text.empty()) {  // a comma between them, as since 6.7
    const std::size_t comma = text.find(',');
    if (const int error = MoveThread(where, Trimmed(text.substr(0, comma))); error != 0) {
      return error;
    }
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return 0;
}

int ResctrlModel::MoveThread(const Where& where, std::string_view text) {
  const auto thread = ParseNumber<pid_t>(text);
  if (!thread.has_value()) {
    return Fail(EINVAL, fmt::format("Task list parsing error pid {}", text));
  }
  if (*thread < 0) {
    return Fail(EINVAL, fmt::format("Invalid pid {}", *thread));
  }
  ThreadGroup now;
  if (!threads_.Find(*thread, now)) {
    return Fail(ESRCH, fmt::format("No task {}", *thread));
  }
  if (!where.monitor.empty() && now.control != where.group) {
    return Fail(EINVAL, "Can't move task to different control group");
  }
  threads_.Move(*thread, {where.group, where.monitor});
  return 0;
}

std::size_t ResctrlModel::UsedRmids() const {
  std::size_t used = 0;
  for (const auto& [name, group] : groups_) {
    used += 1 + group.monitors.size();
  }
  return used;
}

int ResctrlModel::MakeDirectory(const std::string& path) {
  Announce(path);
  const MutexLock lock(mutex_);
  const std::size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const Where where = Locate(parent);
  const bool monitor = where.exists && where.monitor.empty() && where.rest == "mon_groups";
  if (!parent.empty() && !monitor) {
    return EPERM;
  }
  if (name.find('\n') != std::string::npos) {
    return EINVAL;
  }
  status_ = "ok";
  if (UsedRmids() >= static_cast<std::size_t>(machine_.rmids)) {
    return Fail(ENOSPC, "Out of RMIDs");
  }
  if (monitor) {
    groups_.at(where.group).monitors.insert(name);
    return 0;
  }
  if (groups_.size() >= static_cast<std::size_t>(Closids())) {
    return Fail(ENOSPC, "Out of CLOSIDs");
  }
  Values full = FullSchemata();
  groups_[name].schemata = std::move(full);
  return 0;
}

int ResctrlModel::RemoveDirectory(const std::string& path) {
  Announce(path);
  const MutexLock lock(mutex_);
  const Where where = Locate(path);
  if (!where.exists || !where.rest.empty() || (where.group.empty() && where.monitor.empty())) {
    return EPERM;
  }
  if (!where.monitor.empty()) {
    threads_.MoveAll({where.group, where.monitor}, {where.group, ""});
    groups_.at(where.group).monitors.erase(where.monitor);
    return 0;
  }
  for (const std::string& monitor : groups_.at(where.group).monitors) {
    threads_.MoveAll({where.group, monitor}, {});
  }
  threads_.MoveAll({where.group, ""}, {});
  groups_.erase(where.group);
  return 0;
}

}  // namespace qrm::test
