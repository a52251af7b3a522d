// qrm-plugin-nic: the nic plugin in a process of its own.
#include <utility>

#include "api/base/section.h"
#include "plugins/config/plugin_program.h"
#include "plugins/nic/config.h"
#include "plugins/nic/live_nics.h"

namespace {

qrm::StatusOr<qrm::config::NamedPlugin> Make(const qrm::config::Section& section,
                                             const qrm::Machine& machine) {
  QRM_ASSIGN_OR_RETURN(const qrm::nic::NicPluginConfig config, qrm::nic::ParseNicConfig(section));
  QRM_ASSIGN_OR_RETURN(auto plugin, qrm::nic::MakeLiveNicPlugin(config, machine));
  return qrm::config::NamedPlugin{.resource = config.resource, .plugin = std::move(plugin)};
}

}  // namespace

int main(int argc, char** argv) {
  return qrm::config::PluginProgramMain(qrm::nic::kDefaultResource, Make, argc, argv);
}
