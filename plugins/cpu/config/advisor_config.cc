// Reads which advisors may advise pools, and what happens when they stop.
#include "plugins/cpu/config/advisor_config.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "api/base/config_key.h"
#include "api/base/section.h"
#include "api/base/unix_socket.h"
#include "api/id_set.h"
#include "plugins/cpu/config/pool_config.h"

namespace qrm::cpu {
namespace {

using config::Section;
using std::chrono::milliseconds;

constexpr milliseconds kShortestLease{1000};
constexpr milliseconds kLongestLease{3600 * 1000};

StatusOr<std::string> ReadSocket(const Section& section, const std::string& key) {
  QRM_ASSIGN_OR_RETURN(std::string path, section.Text(key, ""));
  if (!path.starts_with('/') || !SocketAddress(path).has_value()) {
    return section.Error(key, fmt::format("is '{}', which is not a path of a socket", path),
                         fmt::format("write an absolute path of up to {} letters", kMaxSocketPath));
  }
  return path;
}

StatusOr<milliseconds> ReadLease(const Section& section) {
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text("lease", "30s"));
  const std::optional<milliseconds> lease = config::ParseDuration(text);
  if (!lease.has_value() || *lease < kShortestLease || *lease > kLongestLease) {
    return section.Error("lease", fmt::format("is '{}'", text), "write a duration from 1s to 1h");
  }
  return *lease;
}

/// Of a key with the period of a query.
StatusOr<milliseconds> ReadEvery(const Section& section, milliseconds otherwise) {
  if (!section.Has("every")) {
    return otherwise;
  }
  QRM_ASSIGN_OR_RETURN(const std::string every, section.Text("every", ""));
  const std::optional<milliseconds> period = config::ParseDuration(every);
  if (!period.has_value() || *period < kShortestLease || *period > kLongestLease) {
    return section.Error("every", fmt::format("is '{}'", every), "write a duration from 1s to 1h");
  }
  return *period;
}

/// `katalyst: SOCKET`, or a mapping.
StatusOr<KatalystRule> ReadKatalyst(const Section& section) {
  KatalystRule rule;
  if (section.IsScalar("katalyst")) {
    QRM_ASSIGN_OR_RETURN(rule.socket, ReadSocket(section, "katalyst"));
    return rule;
  }
  QRM_ASSIGN_OR_RETURN(const Section child, section.Child("katalyst"));
  QRM_RETURN_IF_ERROR(child.AllowKeys({"socket", "every"}));
  QRM_ASSIGN_OR_RETURN(rule.socket, ReadSocket(child, "socket"));
  QRM_ASSIGN_OR_RETURN(rule.every, ReadEvery(child, rule.every));
  return rule;
}

/// `request`, or `hold DURATION then request`: how long advice stays in force after its lease.
StatusOr<milliseconds> ReadHold(const Section& section) {
  constexpr std::string_view kBefore = "hold ";
  constexpr std::string_view kAfter = " then request";
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text("on-expiry", "request"));
  if (text == "request") {
    return milliseconds(0);
  }
  std::optional<milliseconds> hold;
  if (text.starts_with(kBefore) && text.ends_with(kAfter) &&
      text.size() > kBefore.size() + kAfter.size()) {
    hold = config::ParseDuration(
        text.substr(kBefore.size(), text.size() - kBefore.size() - kAfter.size()));
  }
  if (!hold.has_value()) {
    return section.Error("on-expiry", fmt::format("is '{}'", text),
                         "write request, or for example: hold 5m then request");
  }
  return *hold;
}

/// `use: true`, or a mapping.
StatusOr<std::optional<UseRule>> ReadUse(const Section& section) {
  UseRule rule;
  if (!section.Has("use") || section.IsScalar("use")) {
    QRM_ASSIGN_OR_RETURN(const bool on, section.Flag("use", false));
    return on ? std::optional(rule) : std::nullopt;
  }
  QRM_ASSIGN_OR_RETURN(const Section child, section.Child("use"));
  QRM_RETURN_IF_ERROR(child.AllowKeys({"target", "pressure", "every", "cgroup-root"}));
  QRM_ASSIGN_OR_RETURN(rule.target_percent, ReadPercent(child, "target", rule.target_percent, 100));
  QRM_ASSIGN_OR_RETURN(rule.pressure_percent,
                       ReadPercent(child, "pressure", rule.pressure_percent, 100));
  QRM_ASSIGN_OR_RETURN(rule.every, ReadEvery(child, rule.every));
  QRM_ASSIGN_OR_RETURN(rule.cgroup_root, child.Text("cgroup-root", rule.cgroup_root));
  return std::optional(rule);
}

StatusOr<int> ReadMaxStep(const Section& section) {
  QRM_ASSIGN_OR_RETURN(const uint64_t step, section.Number("max-step", 0));
  if (step > CpuSet::kMaxIds) {
    return section.Error("max-step", fmt::format("is {}, which is more than any machine has", step),
                         "write a number of CPUs, or 0 for any");
  }
  return static_cast<int>(step);
}

}  // namespace

bool AdvisorConfig::Advises(const std::string& pool) const {
  return std::find(pools.begin(), pools.end(), pool) != pools.end();
}

StatusOr<AdvisorConfig> ParseAdvisor(const Section& section, std::vector<std::string> by_advice) {
  AdvisorConfig config;
  if (!section.Has("advisor")) {
    return config;
  }
  QRM_ASSIGN_OR_RETURN(const Section child, section.Child("advisor"));
  QRM_RETURN_IF_ERROR(
      child.AllowKeys({"socket", "lease", "max-step", "pools", "on-expiry", "use", "katalyst"}));
  QRM_ASSIGN_OR_RETURN(config.use, ReadUse(child));
  if (child.Has("katalyst")) {
    QRM_ASSIGN_OR_RETURN(config.katalyst, ReadKatalyst(child));
  }
  if (child.Has("socket") || !(child.Has("use") || child.Has("katalyst"))) {
    QRM_ASSIGN_OR_RETURN(config.socket, ReadSocket(child, "socket"));
  }
  QRM_ASSIGN_OR_RETURN(config.lease, ReadLease(child));
  QRM_ASSIGN_OR_RETURN(config.hold, ReadHold(child));
  QRM_ASSIGN_OR_RETURN(config.max_step, ReadMaxStep(child));
  QRM_ASSIGN_OR_RETURN(config.pools, child.Words("pools"));
  if (config.pools.empty()) {
    config.pools = std::move(by_advice);
  }
  return config;
}

}  // namespace qrm::cpu
