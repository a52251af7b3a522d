// Reads classes of the type cpu-quota.
#include "plugins/quota/config.h"

#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "api/base/number.h"
#include "plugins/cgroup/named_classes.h"

namespace qrm::quota {
namespace {

constexpr int kAll = 100;

StatusOr<QuotaClass> ReadClass(const config::Section& section) {
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

}  // namespace

StatusOr<std::map<std::string, QuotaClass>> ParseConfig(const config::Section& file) {
  return cgroup::ParseClasses<QuotaClass>(file, ReadClass);
}

std::string ToString(const QuotaClass& of) {
  return of.is_lifted ? "quota none" : fmt::format("burst {}%", of.burst_percent);
}

}  // namespace qrm::quota
