// Reads and writes cgroup files one line at a time: the kernel reads only the first line of a
// write.
#include "plugins/kernel/cgroup_table.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "api/base/text.h"

namespace qrm::kernel {
namespace {

bool Exists(const KernelFiles& cgroup) {
  return !cgroup.List("").empty();
}

std::string LineOf(const std::string& key, const std::string& value) {
  return key.empty() ? value : fmt::format("{} {}", key, value);
}

const std::map<std::string, std::string>& LinesOf(const CgroupTable& table,
                                                  const CgroupFile& file) {
  static const std::map<std::string, std::string> none;
  const auto lines = table.find(file.name);
  return lines == table.end() ? none : lines->second;
}

/// One written line, and its former value.
struct Undo {
  const CgroupFile& file;
  std::string key;
  std::string before;
};

// A change of a cgroup's files that can be undone.
class Change {
 public:
  Change(KernelFiles& cgroup, const CgroupTable& now) : cgroup_(cgroup), now_(now) {}

  Status Set(const CgroupFile& file, const std::map<std::string, std::string>& wanted) {
    const std::map<std::string, std::string>& now = LinesOf(now_, file);
    for (const auto& [key, value] : wanted) {
      const auto before = now.find(key);
      if (before == now.end() || before->second != value) {
        QRM_RETURN_IF_ERROR(
            Write(file, key, value, before == now.end() ? file.reset : before->second));
      }
    }
    return OkStatus();
  }

  Status Reset(const CgroupFile& file, const std::map<std::string, std::string>& wanted) {
    for (const auto& [key, value] : LinesOf(now_, file)) {
      if (!wanted.contains(key)) {
        QRM_RETURN_IF_ERROR(Write(file, key, file.reset, value));
      }
    }
    return OkStatus();
  }

  void TakeBack() {
    for (auto undo = done_.rbegin(); undo != done_.rend(); ++undo) {
      cgroup_.Write(undo->file.name, LineOf(undo->key, undo->before)).IgnoreError();
    }
  }

 private:
  Status Write(const CgroupFile& file, const std::string& key, const std::string& value,
               std::string before) {
    Status written = cgroup_.Write(file.name, LineOf(key, value));
    if (written.code() == StatusCode::kNotFound && cgroup_.Read(file.name).ok()) {
      return OkStatus();  // the disk is gone; the next Refresh leaves it out
    }
    if (written.ok()) {
      done_.push_back({file, key, std::move(before)});
    }
    return WithRemedy(cgroup_, written);
  }

  KernelFiles& cgroup_;
  const CgroupTable& now_;
  std::vector<Undo> done_;
};

}  // namespace

Status WithRemedy(const KernelFiles& cgroup, const Status& error) {
  switch (error.code()) {
    case StatusCode::kOk:
      return error;
    case StatusCode::kNotFound:
      return Exists(cgroup) ? Errorf(StatusCode::kFailedPrecondition,
                                     "{}; enable its controller for the container's parents, or "
                                     "remove it from the class",
                                     MessageOf(error))
                            : Errorf(StatusCode::kNotFound,
                                     "{}; check whether the container has ended", MessageOf(error));
    case StatusCode::kInvalidArgument:
      return Errorf(StatusCode::kInvalidArgument,
                    "{}; give the class a value that this kernel accepts", MessageOf(error));
    default:
      return Errorf(StatusCode::kUnavailable,
                    "{}; it is retried; if it stays so, see dmesg, and find other writers of the "
                    "cgroup",
                    MessageOf(error));
  }
}

std::map<std::string, std::string> ParseLines(const CgroupFile& file, std::string_view text) {
  std::map<std::string, std::string> lines;
  if (file.form == LineForm::kWhole) {
    if (const std::string value(Trimmed(text)); value != file.neutral) {
      lines[kNoKey] = value;
    }
    return lines;
  }
  std::istringstream input{std::string(text)};
  for (std::string line; std::getline(input, line);) {
    const std::string_view trimmed = Trimmed(line);
    const std::size_t space = trimmed.find(' ');
    if (space == std::string_view::npos) {
      continue;
    }
    const std::string value(Trimmed(trimmed.substr(space)));
    if (value != file.neutral) {
      lines[std::string(trimmed.substr(0, space))] = value;
    }
  }
  return lines;
}

StatusOr<CgroupTable> ReadTable(const KernelFiles& cgroup, const std::vector<CgroupFile>& files) {
  CgroupTable table;
  for (const CgroupFile& file : files) {
    const StatusOr<std::string> text = cgroup.Read(file.name);
    if (text.status().code() == StatusCode::kNotFound && Exists(cgroup)) {
      continue;
    }
    QRM_RETURN_IF_ERROR(WithRemedy(cgroup, text.status()));
    if (auto lines = ParseLines(file, *text); !lines.empty()) {
      table.emplace(file.name, std::move(lines));
    }
  }
  return table;
}

Status WriteTable(KernelFiles& cgroup, const std::vector<CgroupFile>& files,
                  const CgroupTable& wanted) {
  QRM_ASSIGN_OR_RETURN(const CgroupTable now, ReadTable(cgroup, files));
  Change change(cgroup, now);
  Status done;
  for (const CgroupFile& file : files) {
    done.Update(done.ok() ? change.Set(file, LinesOf(wanted, file)) : done);
  }
  for (const CgroupFile& file : files) {
    done.Update(done.ok() ? change.Reset(file, LinesOf(wanted, file)) : done);
  }
  if (!done.ok()) {
    change.TakeBack();
  }
  return done;
}

StatusOr<std::string> FindDrift(const KernelFiles& cgroup, const std::vector<CgroupFile>& files,
                                const CgroupTable& wanted) {
  QRM_ASSIGN_OR_RETURN(const CgroupTable found, ReadTable(cgroup, files));
  return found == wanted ? ""
                         : fmt::format("its cgroup has {}, but the class has {}", ToString(found),
                                       ToString(wanted));
}

std::string PodCgroup(const std::string& path, const std::string& uid) {
  const std::string parent = path.substr(0, path.rfind('/'));
  const std::string_view name = std::string_view(parent).substr(parent.rfind('/') + 1);
  std::string for_systemd = uid;
  std::ranges::replace(for_systemd, '-', '_');
  const bool is_pods = name.find("pod" + uid) != std::string_view::npos ||
                       name.find("pod" + for_systemd) != std::string_view::npos;
  return is_pods ? parent : std::string();
}

std::string ToString(const CgroupTable& table) {
  std::vector<std::string> lines;
  for (const auto& [file, values] : table) {
    for (const auto& [key, value] : values) {
      lines.push_back(fmt::format("{} {}", file, LineOf(key, value)));
    }
  }
  return lines.empty() ? "nothing set" : fmt::format("{}", fmt::join(lines, "; "));
}

}  // namespace qrm::kernel
