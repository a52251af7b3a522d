// qrm-plugin-cpu: the cpu plugin in a process of its own.
#include <utility>

#include "api/base/section.h"
#include "plugins/config/plugin_program.h"
#include "plugins/cpu/cpu_plugin.h"

namespace {

qrm::StatusOr<qrm::config::NamedPlugin> Make(const qrm::config::Section& section,
                                             const qrm::Machine& machine) {
  QRM_ASSIGN_OR_RETURN(const qrm::cpu::CpuPluginConfig config, qrm::cpu::ParseCpuConfig(section));
  QRM_ASSIGN_OR_RETURN(auto plugin, qrm::cpu::MakeCpuPlugin(config, machine));
  return qrm::config::NamedPlugin{.resource = qrm::cpu::kResource, .plugin = std::move(plugin)};
}

}  // namespace

int main(int argc, char** argv) {
  return qrm::config::PluginProgramMain(qrm::cpu::kResource, Make, argc, argv);
}
