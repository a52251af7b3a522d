// Keeps the bandwidth of containers and their pods by their classes, in cgroup v1 and v2.
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/cgroup.h"
#include "api/base/errorf.h"
#include "api/base/number.h"
#include "plugins/kernel/cgroup_table.h"
#include "plugins/kernel/file_classes.h"
#include "plugins/kernel/knob.h"

namespace qrm::kernel {
namespace {

using sdk::ClassOptions;
using sdk::ClassTarget;

constexpr int kAll = 100;

StatusOr<QuotaClass> ReadQuotaClass(const config::Section& section) {
  QRM_RETURN_IF_ERROR(section.AllowKeys({"quota", "burst"}));
  if (section.Has("quota") == section.Has("burst")) {
    return section.Error("burst", "must be set if and only if quota is not set",
                         "write either `quota: none` or a burst such as `burst: 50%`");
  }
  if (section.Has("quota")) {
    QRM_RETURN_IF_ERROR(section.Choice("quota", 0, {"none"}).status());
    return QuotaClass{.is_lifted = true};
  }
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text("burst", ""));
  const auto percent = text.ends_with('%')
                           ? ParseNumber<int>(std::string_view(text).substr(0, text.size() - 1))
                           : std::nullopt;
  if (!percent.has_value() || *percent < 1 || *percent > kAll) {
    return section.Error("burst", fmt::format("is '{}'", text),
                         "write the part of the quota that may accumulate, from 1% to 100%");
  }
  return QuotaClass{.burst_percent = *percent};
}

std::string TextOf(const QuotaClass& of) {
  return of.is_lifted ? "quota none" : fmt::format("burst {}%", of.burst_percent);
}

/// The CPU bandwidth of one cgroup, in microseconds.
struct Bandwidth {
  std::optional<int64_t> quota;  ///< absent: no quota
  int64_t burst = 0;             ///< also 0 if the kernel has no file for it

  bool operator==(const Bandwidth&) const = default;
};

std::string TextOf(const Bandwidth& of) {
  return of.quota.has_value()
             ? fmt::format("a quota of {} us and a burst of {} us", *of.quota, of.burst)
             : "no quota";
}

const char* QuotaFile(bool is_v1) {
  return is_v1 ? "cpu.cfs_quota_us" : "cpu.max";
}

const char* BurstFile(bool is_v1) {
  return is_v1 ? "cpu.cfs_burst_us" : "cpu.max.burst";
}

/// The first number in `file`, -1 for "max"; in v2's file the period follows.
StatusOr<int64_t> ReadMicroseconds(const KernelFiles& cgroup, const char* file) {
  QRM_ASSIGN_OR_RETURN(const std::string text, cgroup.Read(file));
  const std::string word = text.substr(0, text.find_first_of(" \n"));
  const auto number = word == "max" ? std::optional<int64_t>(-1) : ParseNumber<int64_t>(word);
  return number.has_value()
             ? StatusOr<int64_t>(*number)
             : Errorf(StatusCode::kDataLoss,
                      "cannot read {}: '{}' is not a number of microseconds; is it a file of the "
                      "cpu controller?",
                      file, word);
}

StatusOr<Bandwidth> ReadBandwidth(const KernelFiles& cgroup, bool is_v1) {
  QRM_ASSIGN_OR_RETURN(const int64_t quota, ReadMicroseconds(cgroup, QuotaFile(is_v1)));
  const StatusOr<int64_t> burst = ReadMicroseconds(cgroup, BurstFile(is_v1));
  if (!burst.ok() && burst.status().code() != StatusCode::kNotFound) {
    return burst.status();
  }
  return Bandwidth{.quota = quota < 0 ? std::nullopt : std::optional(quota),
                   .burst = burst.value_or(0)};
}

/// The bandwidth of a cgroup with `now` after `wanted`: a burst is a part of its quota.
Bandwidth BandwidthFor(const Bandwidth& now, const QuotaClass& wanted) {
  if (wanted.is_lifted || !now.quota.has_value()) {
    return {};
  }
  return {.quota = now.quota, .burst = *now.quota * wanted.burst_percent / kAll};
}

Status SetBandwidth(KernelFiles& cgroup, bool is_v1, const QuotaClass& wanted) {
  QRM_ASSIGN_OR_RETURN(const Bandwidth now, ReadBandwidth(cgroup, is_v1));
  const Bandwidth then = BandwidthFor(now, wanted);
  if (then.burst != now.burst) {
    QRM_RETURN_IF_ERROR(cgroup.Write(BurstFile(is_v1), std::to_string(then.burst)));
  }
  return then.quota == now.quota ? OkStatus()
                                 : cgroup.Write(QuotaFile(is_v1), is_v1 ? "-1" : "max");
}

class QuotaClasses final : public FileClasses<QuotaClass, QuotaClass> {
 public:
  QuotaClasses(const std::string& config_file, KnobMachine machine)
      : FileClasses({.name = kQuotaType, .is_mutable = false}, config_file),
        machine_(std::move(machine)) {}

  [[nodiscard]] StatusOr<ClassOptions> Resolve(const std::string& class_name) const override {
    QRM_RETURN_IF_ERROR(Find(class_name).status());
    return ClassOptions();
  }

  Status Apply(const ClassTarget& target, const std::string& from, const std::string& to) override {
    if (to.empty()) {
      return from.empty() || Has(from) ? OkStatus() : ResetAll(target);
    }
    QRM_ASSIGN_OR_RETURN(const QuotaClass wanted, Find(to));
    for (const std::string& path : CgroupsOf(target)) {
      SystemFiles cgroup(path);
      QRM_RETURN_IF_ERROR(WithRemedy(cgroup, SetBandwidth(cgroup, machine_.is_v1, wanted)));
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
      const SystemFiles cgroup(path);
      const StatusOr<Bandwidth> found = ReadBandwidth(cgroup, machine_.is_v1);
      QRM_RETURN_IF_ERROR(WithRemedy(cgroup, found.status()));
      if (*found != BandwidthFor(*found, wanted)) {
        return fmt::format("{} has {}, but the class is {}", path, TextOf(*found), TextOf(wanted));
      }
    }
    return std::string();
  }

 private:
  /// Of a class that does not exist any more, a burst or a lifted quota may be left.
  Status ResetAll(const ClassTarget& target) {
    bool is_limited = true;
    for (const std::string& path : CgroupsOf(target)) {
      SystemFiles cgroup(path);
      QRM_ASSIGN_OR_RETURN(const Bandwidth now, ReadBandwidth(cgroup, machine_.is_v1));
      is_limited = is_limited && now.quota.has_value();
      if (now.burst != 0) {
        QRM_RETURN_IF_ERROR(WithRemedy(cgroup, cgroup.Write(BurstFile(machine_.is_v1), "0")));
      }
    }
    return is_limited ? OkStatus()
                      : Errorf(StatusCode::kFailedPrecondition,
                               "it has no quota, and only kubelet knows the former one; if the "
                               "container has a CPU limit, recreate the pod");
  }

  [[nodiscard]] StatusOr<Classes> Parse(const config::Section& file) const override {
    return ParseQuotaClasses(file);
  }

  Meanings ResolveAll(const Classes& classes) override {
    Meanings meanings;
    for (const auto& [name, of] : classes) {
      meanings[name] = {.setting = of,
                        .definition = TextOf(of),
                        .problem = ProblemOf(of),
                        .files = {QuotaFile(machine_.is_v1), BurstFile(machine_.is_v1)}};
    }
    return meanings;
  }

  /// The pod's cgroup first: it limits its containers.
  [[nodiscard]] std::vector<std::string> CgroupsOf(const ClassTarget& target) const {
    const std::string own = machine_.files_root + CgroupPath(target.cgroups_path);
    const std::string pod = PodCgroup(own, target.key.pod_uid);
    return pod.empty() ? std::vector{own} : std::vector{pod, own};
  }

  [[nodiscard]] std::string ProblemOf(const QuotaClass& of) const {
    const char* const file = of.is_lifted ? QuotaFile(machine_.is_v1) : BurstFile(machine_.is_v1);
    return machine_.HasFile(file)
               ? ""
               : fmt::format("this machine has no {}: {}", file,
                             of.is_lifted ? "enable the cpu controller and CONFIG_CFS_BANDWIDTH"
                                          : "use a kernel from 5.14 on, or remove burst");
  }

  const KnobMachine machine_;
};

}  // namespace

StatusOr<std::map<std::string, QuotaClass>> ParseQuotaClasses(const config::Section& file) {
  return ParseClasses<QuotaClass>(file, ReadQuotaClass);
}

StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeQuotaProvider(const std::string& config_file,
                                                                KnobMachine machine) {
  return MakeFileClasses<QuotaClasses>(config_file, std::move(machine));
}

}  // namespace qrm::kernel
