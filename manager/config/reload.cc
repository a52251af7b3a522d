// Compares the new configuration with the one in force, key by key.
#include "manager/config/reload.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "manager/config/config_table.h"

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

Reload::Reload(const Config& in_force, ConfigReader read)
    : in_force_(in_force), read_(std::move(read)) {}

Daemon::Following Reload::ReadAgain() {
  return [this,
          next = std::make_shared<const StatusOr<Config>>(read_())](const Daemon::Takers& takers) {
    const Status taken = next->ok() ? Follow(**next, takers) : next->status();
    if (!taken.ok()) {
      log::Error("configuration rejected; the previous one stays in force",
                 {{"error", MessageOf(taken)}});
      takers.note("configuration rejected; the previous one stays in force: " + MessageOf(taken));
    }
    return taken;
  };
}

bool Reload::CountsAtOnce(const ChangedKey& changed) const {
  return changed.key == "log-level" || IsOfPlugins(changed) || IsRule(changed) ||
         (changed.key == "class-types" && in_force_.classes.enabled);
}

ReadChanges Reload::Compare(const Config& next) const {
  ReadChanges changes{.keys = ChangedKeys(in_force_, next), .builtin = in_force_.builtin};
  for (ChangedKey& key : changes.keys) {
    key.at_next_start = !CountsAtOnce(key);
  }
  changes.builtin.sections = next.builtin.sections;
  return changes;
}

// The plugins come first, because only they can still reject the configuration.
Status Reload::Follow(const Config& next, const Daemon::Takers& takers) {
  const std::vector<ChangedKey> changed = ChangedKeys(in_force_, next);
  if (std::any_of(changed.begin(), changed.end(), IsOfPlugins)) {
    BuiltinOptions builtin = in_force_.builtin;
    builtin.sections = next.builtin.sections;
    QRM_RETURN_IF_ERROR(takers.plugins(builtin));
    in_force_.builtin = std::move(builtin);
  }
  const log::Level level = next.process.log_level;
  // The more verbose of both levels, so that these lines are in the log.
  log::SetLevel(std::min(level, in_force_.process.log_level));
  if (std::any_of(changed.begin(), changed.end(), IsRule)) {
    in_force_.admission.TakeRules(next.admission);
    takers.rules(next.admission);
  }
  log::Info("configuration reloaded", {{"changed_keys", changed.size()}});
  std::vector<ChangedKey> waiting;
  for (const ChangedKey& key : changed) {
    if (!Follow(key, next, takers)) {
      waiting.push_back(key);
    }
  }
  takers.waiting(std::move(waiting));
  in_force_.process.log_level = level;
  log::SetLevel(level);
  return OkStatus();
}

bool Reload::Follow(const ChangedKey& changed, const Config& next, const Daemon::Takers& takers) {
  Status taken = CountsAtOnce(changed)
                     ? OkStatus()
                     : Errorf(StatusCode::kFailedPrecondition, "restart qrmd to apply the change");
  if (taken.ok() && changed.key == "class-types") {
    taken = takers.classes(next.classes);
    in_force_.classes.types = taken.ok() ? next.classes.types : in_force_.classes.types;
  }
  if (taken.ok()) {
    log::Info("configuration changed",
              {{"key", changed.key}, {"from", changed.from}, {"to", changed.to}});
    takers.note(fmt::format("{}: {} -> {}", changed.key, changed.from, changed.to));
  } else {
    log::Warning("configuration key not applied", {{"key", changed.key},
                                                   {"in_force", changed.from},
                                                   {"read", changed.to},
                                                   {"error", MessageOf(taken)}});
    takers.note(fmt::format("{} stays {} instead of {}: {}", changed.key, changed.from, changed.to,
                            MessageOf(taken)));
  }
  return taken.ok();
}

}  // namespace qrm::manager
