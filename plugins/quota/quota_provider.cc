// Keeps the bandwidth of containers and their pods by their classes.
#include "plugins/quota/quota_provider.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/cgroup.h"
#include "api/base/errorf.h"
#include "api/base/mutex.h"
#include "plugins/cgroup/cgroup_table.h"
#include "plugins/cgroup/class_file.h"
#include "plugins/quota/bandwidth.h"
#include "plugins/quota/config.h"

namespace qrm::quota {
namespace {

using cgroup::CgroupDirectory;
using cgroup::ClassFile;
using sdk::ClassOptions;
using sdk::ClassTarget;
using sdk::ClassType;

using Classes = std::map<std::string, QuotaClass>;

/// The parent of the cgroup at `path` if it is the pod's cgroup; else empty. systemd's names
/// contain the UID without dashes.
std::string PodOf(const std::string& path, const std::string& uid) {
  const std::string parent = path.substr(0, path.rfind('/'));
  const std::string_view name = std::string_view(parent).substr(parent.rfind('/') + 1);
  std::string for_systemd = uid;
  std::replace(for_systemd.begin(), for_systemd.end(), '-', '_');
  const bool is_pods = name.find("pod" + uid) != std::string_view::npos ||
                       name.find("pod" + for_systemd) != std::string_view::npos;
  return is_pods ? parent : std::string();
}

class Provider final : public sdk::ClassProvider {
 public:
  Provider(ClassFile file, Classes classes, knobs::KnobMachine machine)
      : machine_(std::move(machine)), file_(std::move(file)) {
    file_.TakeOver();
    Keep(std::move(classes));
  }

  [[nodiscard]] ClassType List() const override {
    ClassType type{.name = kType, .is_mutable = false};
    const MutexLock guard(mutex_);
    for (const auto& [name, of] : classes_) {
      type.classes.push_back(
          {.name = name, .definition = ToString(of), .problem = problems_.at(name)});
    }
    return type;
  }

  [[nodiscard]] StatusOr<ClassOptions> Resolve(const std::string& class_name) const override {
    QRM_RETURN_IF_ERROR(Find(class_name).status());
    return ClassOptions();
  }

  Status Refresh(const std::set<std::string>& in_use) override {
    StatusOr<Classes> classes = file_.HasChanged() ? LoadAnew(in_use) : Copy();
    if (!classes.ok()) {
      Keep(Copy());
      return classes.status();
    }
    file_.TakeOver();
    Keep(*std::move(classes));
    return OkStatus();
  }

  Status Apply(const ClassTarget& target, const std::string& /*from*/,
               const std::string& to) override {
    if (to.empty()) {
      return OkStatus();
    }
    QRM_ASSIGN_OR_RETURN(const QuotaClass wanted, Find(to));
    for (const std::string& path : CgroupsOf(target)) {
      CgroupDirectory cgroup(path);
      if (const Status set = SetBandwidth(cgroup, machine_.is_v1, wanted); !set.ok()) {
        return Annotate(WhereThereIsOne(cgroup, set), "cannot set " + path);
      }
    }
    return OkStatus();
  }

  [[nodiscard]] StatusOr<std::string> ReadBack(const ClassTarget& target,
                                               const std::string& class_name) override {
    if (class_name.empty()) {
      return std::string();
    }
    QRM_ASSIGN_OR_RETURN(const QuotaClass wanted, Find(class_name));
    for (const std::string& path : CgroupsOf(target)) {
      const CgroupDirectory cgroup(path);
      const StatusOr<Bandwidth> found = ReadBandwidth(cgroup, machine_.is_v1);
      if (!found.ok()) {
        return WhereThereIsOne(cgroup, found.status());
      }
      if (*found != BandwidthFor(*found, wanted)) {
        return fmt::format("{} has {}, but the class is {}", path, ToString(*found),
                           ToString(wanted));
      }
    }
    return std::string();
  }

 private:
  /// The pod's cgroup first: it limits its containers.
  [[nodiscard]] std::vector<std::string> CgroupsOf(const ClassTarget& target) const {
    const std::string own = machine_.files_root + CgroupPath(target.cgroups_path);
    const std::string pod = PodOf(own, target.key.pod_uid);
    return pod.empty() ? std::vector{own} : std::vector{pod, own};
  }

  /// A file is missing if the cgroup is gone, or if the machine does not have the file.
  static Status WhereThereIsOne(const CgroupDirectory& cgroup, const Status& failure) {
    return failure.code() == StatusCode::kNotFound && cgroup.Exists()
               ? Status(StatusCode::kFailedPrecondition, MessageOf(failure))
               : failure;
  }

  /// Errors: kFailedPrecondition with the reason.
  [[nodiscard]] StatusOr<QuotaClass> Find(const std::string& name) const {
    const MutexLock guard(mutex_);
    const auto found = classes_.find(name);
    if (found == classes_.end()) {
      return Errorf(StatusCode::kFailedPrecondition, "there is no {} class {}; add it to {}", kType,
                    name, file_.path());
    }
    if (const std::string& problem = problems_.at(name); !problem.empty()) {
      return Errorf(StatusCode::kFailedPrecondition, "{}", problem);
    }
    return found->second;
  }

  [[nodiscard]] Classes Copy() const {
    const MutexLock guard(mutex_);
    return classes_;
  }

  StatusOr<Classes> LoadAnew(const std::set<std::string>& in_use) {
    QRM_ASSIGN_OR_RETURN(const config::Section section, file_.Load());
    QRM_ASSIGN_OR_RETURN(Classes classes, ParseConfig(section));
    std::set<std::string> names;
    for (const auto& [name, of] : classes) {
      names.insert(name);
    }
    QRM_RETURN_IF_ERROR(file_.CheckInUse(names, in_use));
    return classes;
  }

  /// Keeps `classes` with their problems on this machine.
  void Keep(Classes classes) {
    std::map<std::string, std::string> problems;
    for (const auto& [name, of] : classes) {
      problems[name] = ProblemOf(of);
    }
    const MutexLock guard(mutex_);
    classes_ = std::move(classes);
    problems_ = std::move(problems);
  }

  [[nodiscard]] std::string ProblemOf(const QuotaClass& of) const {
    const char* const file = of.is_lifted ? QuotaFile(machine_.is_v1) : BurstFile(machine_.is_v1);
    return machine_.HasFile(file)
               ? ""
               : fmt::format("this machine has no {}: {}", file,
                             of.is_lifted ? "enable the cpu controller and CONFIG_CFS_BANDWIDTH"
                                          : "use a kernel from 5.14 on, or remove burst");
  }

  const knobs::KnobMachine machine_;
  ClassFile file_;  // on the provider's thread
  mutable Mutex mutex_;
  Classes classes_ QRM_GUARDED_BY(mutex_);                              // from the last valid file
  std::map<std::string, std::string> problems_ QRM_GUARDED_BY(mutex_);  // by class
};

}  // namespace

StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeQuotaProvider(const std::string& config_file,
                                                                knobs::KnobMachine machine) {
  ClassFile file(config_file);
  QRM_ASSIGN_OR_RETURN(const config::Section section, file.Load());
  QRM_ASSIGN_OR_RETURN(Classes classes, ParseConfig(section));
  return std::unique_ptr<sdk::ClassProvider>(
      std::make_unique<Provider>(std::move(file), std::move(classes), std::move(machine)));
}

StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeSystemQuota(const std::string& config_file,
                                                              const std::string& cgroup_root) {
  knobs::KnobMachine machine;
  if (const auto cpu = FindCgroupHierarchy(cgroup_root, "cpu", "cpu"); cpu.ok()) {
    machine.files_root = cpu->root;
    machine.is_v1 = cpu->is_v1;
  }
  return MakeQuotaProvider(config_file, std::move(machine));
}

}  // namespace qrm::quota
