// Compares each configuration with the one in force, key by key, and publishes the keys as one
// immutable value.
#include "manager/daemon/live_config.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/log.h"
#include "manager/daemon/config_table.h"
#include "manager/daemon/process/priority.h"
#include "manager/daemon/start_builtin.h"

namespace qrm::manager {
namespace {

/// Whether it is a key of AdmissionOptions::TakeRules.
bool IsRule(const ChangedKey& changed) {
  return changed.key == "permissions" || changed.key == "compute-drivers";
}

bool IsOfPlugins(const ChangedKey& changed) {
  return changed.key == "plugins";
}

}  // namespace

std::vector<ChangedKey> ChangedKeys(Config from, Config to) {
  const std::vector<config::ConfigKey> before = ConfigKeys(from);
  const std::vector<config::ConfigKey> after = ConfigKeys(to);
  std::vector<ChangedKey> changed;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (std::string now = before[i].show(), next = after[i].show(); now != next) {
      changed.push_back({.key = before[i].name, .from = std::move(now), .to = std::move(next)});
    }
  }
  return changed;
}

LiveConfig::LiveConfig(const Parts& parts, Config as_read, ConfigSource source)
    : parts_(parts), source_(std::move(source)), in_force_(std::move(as_read)) {
  Publish(parts.config.builtin, parts.config.admission);
}

std::shared_ptr<const LiveConfig::Keys> LiveConfig::Load() const {
  const MutexLock lock(mutex_);
  return keys_;
}

void LiveConfig::Publish(const BuiltinOptions& builtin,
                         const placement::AdmissionOptions& admission) {
  auto keys = std::make_shared<const Keys>(
      Keys{builtin, admission,
           NodeConfig::Make({parts_.machine, builtin, admission, parts_.config.pod_keys})});
  const MutexLock lock(mutex_);
  keys_ = std::move(keys);
}

std::string LiveConfig::refusal() const {
  const MutexLock lock(mutex_);
  return refusal_;
}

std::vector<ChangedKey> LiveConfig::waiting() const {
  const MutexLock lock(mutex_);
  return waiting_;
}

std::vector<PluginPolicy> LiveConfig::Policies() const {
  const auto keys = Load();
  std::vector<PluginPolicy> policies;
  for (const std::string& plugin : keys->builtin.plugins) {
    PluginPolicy& policy = policies.emplace_back(PluginPolicy{.plugin = plugin, .keys = "{}"});
    const auto section = keys->builtin.sections.find(plugin);
    if (section != keys->builtin.sections.end()) {
      policy.keys = section->second.OneLine();
      policy.place = section->second.Place();
    }
  }
  return policies;
}

StatusOr<Config> LiveConfig::Read() const {
  return ReadConfig(source_.file, source_.flags);
}

StatusOr<Config> LiveConfig::ReadText(const std::string& text, const std::string& name) const {
  const std::string file = Quoted(name);
  if (text.size() > kMostConfigBytes) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot try {}: it has {} bytes, and a configuration has at most {}; name a "
                  "configuration of qrmd",
                  file, text.size(), kMostConfigBytes);
  }
  return ReadConfigText(text, file, source_.flags);
}

bool LiveConfig::CountsAtOnce(const ChangedKey& changed) const {
  return changed.key == "log-level" || IsOfPlugins(changed) || IsRule(changed) ||
         (changed.key == "class-types" && in_force_.classes.enabled);
}

StatusOr<std::vector<BuiltinPlugin>> LiveConfig::MakeNext(const BuiltinOptions& next) const {
  QRM_ASSIGN_OR_RETURN(const CpuSet reserved,
                       ReservedCpus(next, parts_.config.machine, parts_.machine));
  QRM_RETURN_IF_ERROR(CheckPriority(parts_.config.process, reserved));
  return MakeChangedPlugins(Load()->builtin, next, parts_.machine);
}

StatusOr<ConfigTrial> LiveConfig::Try(const Config& next) const {
  std::vector<ChangedKey> keys = ChangedKeys(in_force_, next);
  for (ChangedKey& key : keys) {
    key.at_next_start = !CountsAtOnce(key);
  }
  log::Info("trying a configuration: nothing changes, even if its plugins log changes now",
            {{"changed_keys", keys.size()}});
  BuiltinOptions builtin = in_force_.builtin;
  builtin.sections = next.builtin.sections;
  QRM_ASSIGN_OR_RETURN(std::vector<BuiltinPlugin> plugins, MakeNext(builtin));
  QRM_ASSIGN_OR_RETURN(ConfigTrial trial, TryBuiltins(std::move(plugins), parts_.local_plugins));
  trial.keys = std::move(keys);
  std::sort(trial.moves.begin(), trial.moves.end(), [](const Move& a, const Move& b) {
    return std::tie(a.pod_namespace, a.pod_name, a.key, a.resource) <
           std::tie(b.pod_namespace, b.pod_name, b.key, b.resource);
  });
  return trial;
}

Status LiveConfig::Follow(const StatusOr<Config>& read, ConfigTaker& taker) {
  Status taken = read.ok() ? FollowAll(*read, taker) : read.status();
  if (!taken.ok()) {
    log::Error("configuration rejected; the previous one stays in force",
               {{"error", MessageOf(taken)}});
    taker.NoteChange("configuration rejected; the previous one stays in force: " +
                     MessageOf(taken));
  }
  const MutexLock lock(mutex_);
  refusal_ = MessageOf(taken);
  return taken;
}

// The plugins come first, because only they can still reject the configuration.
Status LiveConfig::FollowAll(const Config& next, ConfigTaker& taker) {
  const std::vector<ChangedKey> changed = ChangedKeys(in_force_, next);
  if (std::any_of(changed.begin(), changed.end(), IsOfPlugins)) {
    BuiltinOptions builtin = in_force_.builtin;
    builtin.sections = next.builtin.sections;
    QRM_RETURN_IF_ERROR(taker.TakePlugins(builtin));
    in_force_.builtin = std::move(builtin);
    Publish(in_force_.builtin, Load()->admission);
  }
  const log::Level level = next.process.log_level;
  // The more verbose of both levels, so that these lines are in the log.
  log::SetLevel(std::min(level, in_force_.process.log_level));
  if (std::any_of(changed.begin(), changed.end(), IsRule)) {
    in_force_.admission.TakeRules(next.admission);
    const auto keys = Load();
    placement::AdmissionOptions admission = keys->admission;
    admission.TakeRules(next.admission);
    Publish(keys->builtin, admission);
    taker.TakeRules(next.admission);
  }
  log::Info("configuration reloaded", {{"changed_keys", changed.size()}});
  std::vector<ChangedKey> waiting;
  for (const ChangedKey& key : changed) {
    if (!FollowKey(key, next, taker)) {
      waiting.push_back(key);
    }
  }
  in_force_.process.log_level = level;
  log::SetLevel(level);
  const MutexLock lock(mutex_);
  waiting_ = std::move(waiting);
  return OkStatus();
}

bool LiveConfig::FollowKey(const ChangedKey& changed, const Config& next, ConfigTaker& taker) {
  Status taken = CountsAtOnce(changed)
                     ? OkStatus()
                     : Errorf(StatusCode::kFailedPrecondition, "restart qrmd to apply the change");
  if (taken.ok() && changed.key == "class-types") {
    taken = taker.TakeClasses(next.classes);
    in_force_.classes.types = taken.ok() ? next.classes.types : in_force_.classes.types;
  }
  if (taken.ok()) {
    log::Info("configuration changed",
              {{"key", changed.key}, {"from", changed.from}, {"to", changed.to}});
    taker.NoteChange(fmt::format("{}: {} -> {}", changed.key, changed.from, changed.to));
  } else {
    log::Warning("configuration key not applied", {{"key", changed.key},
                                                   {"in_force", changed.from},
                                                   {"read", changed.to},
                                                   {"error", MessageOf(taken)}});
    taker.NoteChange(fmt::format("{} stays {} instead of {}: {}", changed.key, changed.from,
                                 changed.to, MessageOf(taken)));
  }
  return taken.ok();
}

}  // namespace qrm::manager
