// qrm-plugin-nic: the nic plugin in a process of its own.
#include <utility>

#include "api/base/section.h"
#include "plugins/config/plugin_program.h"
#include "plugins/nic/addresses.h"
#include "plugins/nic/nic_plugin.h"

namespace {

qrm::StatusOr<qrm::config::NamedPlugin> Make(const qrm::config::Section& section,
                                             const qrm::Machine& machine) {
  QRM_ASSIGN_OR_RETURN(const qrm::nic::NicPluginConfig config, qrm::nic::ParseNicConfig(section));
  QRM_ASSIGN_OR_RETURN(const auto addresses, qrm::nic::ReadAddresses());
  QRM_ASSIGN_OR_RETURN(auto plugin, qrm::nic::MakeNicPlugin(config, machine, addresses));
  return qrm::config::NamedPlugin{.resource = config.resource, .plugin = std::move(plugin)};
}

}  // namespace

int main(int argc, char** argv) {
  return qrm::config::PluginProgramMain(qrm::nic::kDefaultResource, Make, argc, argv);
}
