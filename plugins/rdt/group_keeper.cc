// Compares the existing groups with the wanted groups.
#include "plugins/rdt/group_keeper.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "plugins/rdt/resolve.h"

namespace qrm::rdt {
namespace {

using Wanted = std::map<std::string, Schemata>;

/// Whether `found` contains all values of `wanted`; it may have more resources.
bool Says(const Schemata& found, const Schemata& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& line) {
    const auto resource = found.find(line.first);
    return resource != found.end() && resource->second == line.second;
  });
}

/// Whether `wanted` has no bit of a cache that `found` lacks.
bool Shrinks(const Schemata& found, const Schemata& wanted) {
  for (const auto& [resource, values] : wanted) {
    const auto before = found.find(resource);
    for (const auto& [id, value] : values) {
      if (before == found.end() || !before->second.contains(id) ||
          (resource != "MB" && (value & ~before->second.at(id)) != 0)) {
        return false;
      }
    }
  }
  return true;
}

bool IsOurs(const std::string& group) {
  return group.starts_with(kGroupPrefix);
}

/// Undoes the steps so far, unless all steps succeeded.
class Undo {
 public:
  void Add(std::function<Status()> step) { steps_.push_back(std::move(step)); }
  void Run() {
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      if (const Status undone = (*step)(); !undone.ok()) {
        log::Error("cannot undo a change of resctrl; it is half changed",
                   {{"error", MessageOf(undone)}});
      }
    }
  }

 private:
  std::vector<std::function<Status()>> steps_;
};

}  // namespace

/// The root group's schemata, as one value.
class GroupKeeper::RootGroup final : public kernel::KernelFiles {
 public:
  explicit RootGroup(const Resctrl& resctrl) : resctrl_(resctrl) {}

  StatusOr<std::string> Read(const std::string& path) const override {
    if (path != kRootSchemata) {
      return system_.Read(path);
    }
    QRM_ASSIGN_OR_RETURN(const std::string text, resctrl_.ReadSchemata(""));
    return ToString(ParseSchemata(text));
  }
  Status Write(const std::string& /*path*/, const std::string& value) override {
    return resctrl_.WriteSchemata("", value);
  }
  std::vector<std::string> List(const std::string& directory) const override {
    return system_.List(directory);
  }
  bool MayWrite(const std::string& path) const override { return system_.MayWrite(path); }

 private:
  const Resctrl& resctrl_;
  const kernel::SystemFiles system_{"/"};
};

GroupKeeper::GroupKeeper(const Resctrl& resctrl, std::string journal)
    : resctrl_(resctrl),
      journal_(std::move(journal)),
      root_(std::make_unique<RootGroup>(resctrl)) {}

GroupKeeper::~GroupKeeper() = default;

StatusOr<kernel::KernelValues*> GroupKeeper::Journal() {
  if (values_ == nullptr && !journal_.empty()) {
    QRM_ASSIGN_OR_RETURN(values_, kernel::KernelValues::Open(*root_, journal_));
  }
  return values_.get();
}

/// The planned changes; `different` has each group with its former lines.
struct GroupKeeper::Plan {
  std::map<std::string, std::string> stale;
  std::vector<std::string> missing;
  std::vector<std::pair<std::string, std::string>> different;  ///< shrinking groups first
};

Status GroupKeeper::CheckRoom(const Wanted& wanted, const std::set<std::string>& present,
                              std::size_t most) const {
  std::vector<std::string> others;
  std::ranges::copy_if(present, std::back_inserter(others),
                       [](const std::string& group) { return !IsOurs(group); });
  const std::size_t classes = wanted.size() - wanted.count("");
  const std::size_t taken = 1 + others.size();
  if (classes + taken <= most) {
    return OkStatus();
  }
  return Errorf(
      StatusCode::kResourceExhausted,
      "cannot create the groups of {} classes: resctrl supports {} groups on this machine, "
      "including the root group and {} other groups ({}); configure at most {} classes",
      classes, most, others.size(), fmt::join(others, ", "), most > taken ? most - taken : 0);
}

StatusOr<GroupKeeper::Plan> GroupKeeper::MakePlan(const Wanted& wanted,
                                                  const std::set<std::string>& present,
                                                  const RdtInfo& info) const {
  Plan plan;
  for (const std::string& group : present) {
    if (IsOurs(group) && !wanted.contains(group)) {
      QRM_ASSIGN_OR_RETURN(plan.stale[group], resctrl_.ReadSchemata(group));
    }
  }
  std::vector<std::pair<std::string, std::string>> growing;
  for (const auto& [group, schemata] : wanted) {
    if (!group.empty() && !present.contains(group)) {
      plan.missing.push_back(group);
      continue;
    }
    QRM_ASSIGN_OR_RETURN(std::string text, resctrl_.ReadSchemata(group));
    const Schemata found = ParseSchemata(text);
    const Schemata shown = AsShown(schemata, info);
    if (!Says(found, shown)) {
      (Shrinks(found, shown) ? plan.different : growing).emplace_back(group, std::move(text));
    }
  }
  plan.different.insert(plan.different.end(), growing.begin(), growing.end());
  return plan;
}

Status GroupKeeper::Write(const std::string& group, const Schemata& wanted,
                          const RdtInfo& info) const {
  if (wanted.empty()) {
    return OkStatus();
  }
  QRM_RETURN_IF_ERROR(resctrl_.WriteSchemata(group, ToString(wanted)));
  QRM_ASSIGN_OR_RETURN(const std::string text, resctrl_.ReadSchemata(group));
  const Schemata shown = AsShown(wanted, info);
  if (!Says(ParseSchemata(text), shown)) {
    return Errorf(
        StatusCode::kUnavailable,
        "cannot set the schemata of resctrl group '{}': the kernel shows {} instead of {}; "
        "find the other process that writes there",
        group, OneLine(ParseSchemata(text)), OneLine(shown));
  }
  return OkStatus();
}

Status GroupKeeper::Carry(const Plan& plan, const Wanted& wanted, const RdtInfo& info) const {
  Undo undo;
  const auto all = [&]() -> Status {
    for (const auto& [group, text] : plan.stale) {
      QRM_RETURN_IF_ERROR(resctrl_.Remove(group));
      undo.Add([this, removed = group, before = text]() -> Status {
        QRM_RETURN_IF_ERROR(resctrl_.Make(removed));
        return resctrl_.WriteSchemata(removed, before);
      });
    }
    for (const auto& [group, text] : plan.different) {
      undo.Add([this, changed = group, before = text] {
        return resctrl_.WriteSchemata(changed, before);
      });
      QRM_RETURN_IF_ERROR(Write(group, wanted.at(group), info));
    }
    for (const std::string& group : plan.missing) {
      QRM_RETURN_IF_ERROR(resctrl_.Make(group));
      undo.Add([this, group] { return resctrl_.Remove(group); });
      QRM_RETURN_IF_ERROR(Write(group, wanted.at(group), info));
    }
    return OkStatus();
  };
  const Status carried = all();
  if (!carried.ok()) {
    undo.Run();
  }
  return carried;
}

Status GroupKeeper::Keep(const Wanted& wanted, const RdtInfo& info) {
  QRM_ASSIGN_OR_RETURN(const ResctrlLock lock, resctrl_.Lock());
  QRM_ASSIGN_OR_RETURN(const std::set<std::string> present, resctrl_.Groups());
  QRM_RETURN_IF_ERROR(CheckRoom(wanted, present, info.groups));
  QRM_ASSIGN_OR_RETURN(const Plan plan, MakePlan(wanted, present, info));
  QRM_ASSIGN_OR_RETURN(kernel::KernelValues* const root, Journal());
  const bool is_root_kept = root != nullptr && !root->records().empty();
  if (root != nullptr && wanted.contains("") && !is_root_kept) {
    QRM_RETURN_IF_ERROR(
        root->Hold("rdt", {{.path = kRootSchemata, .form = kernel::ClaimForm::kKept}}).status());
  }
  QRM_RETURN_IF_ERROR(Carry(plan, wanted, info));
  if (is_root_kept && !wanted.contains("")) {
    QRM_RETURN_IF_ERROR(root->Release("rdt"));
  }
  for (const std::string& group : plan.missing) {
    if (kept_.contains(group)) {
      ++repairs_;
      log::Warning("resctrl group was missing; recreated", {{"group", group}});
    }
  }
  for (const auto& [group, text] : plan.different) {
    if (const auto before = kept_.find(group);
        before != kept_.end() && before->second == wanted.at(group)) {
      ++repairs_;
      log::Warning("schemata drift of a resctrl group corrected",
                   {{"group", group}, {"found", OneLine(ParseSchemata(text))}});
    }
  }
  kept_ = wanted;
  return OkStatus();
}

}  // namespace qrm::rdt
