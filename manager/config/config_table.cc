// Every key of qrmd, and the page about them.
#include "manager/config/config_table.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "manager/daemon/class_providers.h"

namespace qrm::manager {
namespace {

using config::ConfigKey;

std::vector<ConfigKey> Join(std::vector<ConfigKey> keys, std::vector<ConfigKey> more) {
  keys.insert(keys.end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
  return keys;
}

constexpr char kReferenceHead[] =
    "# Configuration of qrmd\n\n"
    "`qrmd --config FILE` reads one YAML file; every key is also a flag (`--reconcile-period=1s`), "
    "which wins over the file.\n"
    "`qrmd --check-config` reads both, says what is wrong and exits. A key that is not known, or a "
    "value out of range, is an\n"
    "error that names file, line and key; qrmd then exits with 2. The sections of the plugins are "
    "in\n"
    "[configuration-plugins.md](configuration-plugins.md).\n\n"
    "When the file has changed, and at SIGHUP, qrmd reads both again. `log-level` changes at "
    "once, and so do the sections in\n"
    "`plugins` ([how](configuration-plugins.md#while-it-runs)), and `class-types` as long as "
    "no type comes or goes; the log\n"
    "names every other key that differs, which counts from the next start on. A file that is "
    "wrong, or that a plugin refuses,\n"
    "changes nothing; the log and `qrmctl status` say why.\n\n"
    "This page is made by `qrmd --print-config-reference`.\n";

}  // namespace

std::vector<KeyGroup> GroupedConfigKeys(Config& config) {
  return {
      {"Process", Join(ProcessKeys(config.process), HttpKeys(config.http))},
      {"Machine", config::MachineKeys(config.machine)},
      {"Plugins", Join(Join(BuiltinKeys(config.builtin), placement::AwayKeys(config.admission)),
                       RegistrationKeys(config.registration))},
      {"Placement", placement::PlacementKeys(config.admission)},
      {"Requests", placement::RequestKeys(config.admission)},
      {"Roles and types of pods", placement::RoleAndTypeKeys(config.pod_keys)},
      {"Permissions", placement::RuleKeys(config.admission)},
      {"Compute drivers", placement::DriverKeys(config.admission.drivers)},
      {"QoS-class resources", ClassKeys(config.classes, ClassTypeNames())},
      {"Containers that are left alone", placement::SkipKeys(config.admission)},
      {"Deadlines", placement::DeadlineKeys(config.admission)},
      {"Container runtime", RuntimeKeys(config.runtime)},
      {"Running containers", Join(ReconcileKeys(config.reconcile), PodsKeys(config.pods))},
      {"Kubelet", KubeletKeys(config.kubelet)},
      {"Pod-resources socket", PodResourcesKeys(config.pod_resources)},
      {"API server", PublishKeys(config.publish)},
      {"Control socket", ControlKeys(config.control)},
  };
}

std::vector<ConfigKey> ConfigKeys(Config& config) {
  std::vector<ConfigKey> keys;
  for (KeyGroup& group : GroupedConfigKeys(config)) {
    keys = Join(std::move(keys), std::move(group.keys));
  }
  return keys;
}

std::string ConfigFlagsHelp() {
  std::string help;
  Config defaults;
  for (const ConfigKey& key : ConfigKeys(defaults)) {
    help += fmt::format("  --{}=VALUE\n      {}\n      {}; default {}\n", key.name, key.help,
                        key.range, key.show());
  }
  return help;
}

std::string ConfigReference() {
  std::string page = kReferenceHead;
  Config defaults;
  for (const KeyGroup& group : GroupedConfigKeys(defaults)) {
    page += fmt::format("\n## {}\n\n| key | default | values | meaning |\n|---|---|---|---|\n",
                        group.title);
    for (const ConfigKey& key : group.keys) {
      page += fmt::format("| `{}` | `{}` | {} | {} |\n", key.name, key.show(), key.range, key.help);
    }
  }
  return page;
}

}  // namespace qrm::manager
