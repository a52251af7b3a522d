// Which containers are placed at all, and what they ask for beside what their pod requests.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/registry/plugin_info.h"
#include "plugins/placement/admission_options.h"
#include "plugins/placement/demand.h"

namespace qrm::manager {

class Plugins;

/// True when a container that requests `resource` is not placed without its plugin: a required one,
/// one that has registered since qrmd started, or one that only the checkpoint knows. What every
/// container uses is not asked of the last: the plugin may have been switched off for good.
bool NeedsPlugin(const std::string& resource, const placement::AdmissionOptions& options,
                 const Plugins& plugins);

/// Those of native-resources whose plugin a container needs that requests nothing of them.
std::vector<std::string> NeededNatives(const placement::AdmissionOptions& options,
                                       const Plugins& plugins);

/// True when the container starts without the plugins that are away, since it may be one of them.
bool RunsWithoutPlugins(const placement::ContainerDemand& demand,
                        const placement::AdmissionOptions& options);

/// Why `demand` is not placed without the plugin of `resource`, which is not live, with the cures.
Status PluginAway(const std::string& resource, const placement::ContainerDemand& demand,
                  const placement::AdmissionOptions& options, const Plugins& plugins);

/// What a container asks for under one name.
struct Ask {
  const std::string& requested;  ///< as the pod calls it
  const std::string& resource;   ///< as the plugin does
  double amount = 0;
  std::optional<double> limit;
};

/// `amount` of what `demand` calls `requested`.
Ask AskOf(const placement::ContainerDemand& demand, const std::string& requested, double amount,
          const placement::AdmissionOptions& options);

/// True when `record` was made for another request than `ask`: for less of it, for more CPUs or
/// another limit of CPUs, or when some of what it gave is gone.
bool Differs(const checkpoint::ContainerRecord& record, const Ask& ask);

/// True when the record of an earlier admission covers `ask`: it was made for that, or gave as
/// much.
bool Satisfies(const checkpoint::ContainerRecord& record, const Ask& ask);

/// Whether the container of `record` has nothing of `resource`, which it requests, or which all
/// get: its plugin came later, or could give only what a running container cannot take.
bool Lacks(const checkpoint::ContainerRecord& record, const std::string& resource,
           const placement::AdmissionOptions& options);

/// The resources that `record` has requests for because of the configuration, not of its pod.
std::vector<std::string> ImplicitRequests(const checkpoint::PodMeta& pod,
                                          const checkpoint::ContainerRecord& record,
                                          const placement::AdmissionOptions& options);

/// What `plugin` is asked, as placement::MakeRequest.
ContainerRequest MakeRequest(const placement::ContainerDemand& demand, const PluginInfo& plugin,
                             const std::string& requested, double amount,
                             const placement::AdmissionOptions& options);

}  // namespace qrm::manager
