// The whole configuration of qrmd, that is, the options of its rooms, each with its defaults. The
// table of configuration keys, collected from the rooms with options, and read from a file and
// from flags.
#pragma once

#include <string>
#include <vector>

#include "api/base/config_key.h"
#include "api/base/status.h"
#include "api/resource.h"
#include "manager/classes/class_options.h"
#include "manager/control/control_options.h"
#include "manager/daemon/builtin_plugins.h"
#include "manager/daemon/process/process_options.h"
#include "manager/kubelet/kubelet_options.h"
#include "manager/observability/http_options.h"
#include "manager/podresources/pod_resources_options.h"
#include "manager/pods/pods_options.h"
#include "manager/publish/publish_options.h"
#include "manager/reconcile/reconcile_options.h"
#include "manager/registry/registration_check.h"
#include "manager/runtime/runtime_options.h"
#include "plugins/config/machine_config.h"
#include "plugins/placement/admission_options.h"
#include "plugins/placement/pod_keys.h"

namespace qrm::manager {

/// The values of all keys.
struct Config {
  ProcessOptions process;
  config::MachineConfig machine;
  BuiltinOptions builtin;
  RegistrationOptions registration;
  placement::AdmissionOptions admission;
  placement::PodKeys pod_keys;
  ClassesOptions classes;
  KubeletOptions kubelet;
  RuntimeOptions runtime;
  ReconcileOptions reconcile;
  PodsOptions pods;
  PodResourcesOptions pod_resources;
  PublishOptions publish;
  ControlOptions control;
  HttpOptions http;
};

/// Where the configuration is read from.
struct ConfigSource {
  std::string file;  ///< empty: none
  StringMap flags;   ///< override the file
};

/// A section of the reference.
struct KeyGroup {
  std::string title;
  std::vector<config::ConfigKey> keys;
};

/// All keys, in the order of the reference. They read and write `config`, which outlives them.
std::vector<KeyGroup> GroupedConfigKeys(Config& config);

/// All keys without the groups.
std::vector<config::ConfigKey> ConfigKeys(Config& config);

/// The flags of all keys, for --help.
std::string ConfigFlagsHelp();

/// A page in Markdown with every key, its default, range and meaning.
std::string ConfigReference();

/// The configuration in `file` (empty: the defaults). `flags` override the file: each is a key and
/// its value, which is YAML or a list with commas.
/// Errors: kInvalidArgument with file, line, key, value and what is allowed; kNotFound for a
/// missing file.
StatusOr<Config> ReadConfig(const std::string& file, const StringMap& flags);

/// The same from `text`. Errors call it `file`, which is not opened.
StatusOr<Config> ReadConfigText(const std::string& text, const std::string& file,
                                const StringMap& flags);

/// Whether `name` is a key.
bool IsConfigKey(const std::string& name);

/// The key that a misspelt `name` probably means; empty if no key is similar.
std::string NearestConfigKey(const std::string& name);

}  // namespace qrm::manager
