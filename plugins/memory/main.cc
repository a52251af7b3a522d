// qrm-plugin-memory: the memory plugin in a process of its own.
#include <utility>

#include "api/base/section.h"
#include "plugins/config/plugin_program.h"
#include "plugins/memory/memory_plugin.h"

namespace {

qrm::StatusOr<qrm::config::NamedPlugin> Make(const qrm::config::Section& section,
                                             const qrm::Machine& machine) {
  QRM_ASSIGN_OR_RETURN(const qrm::memory::MemoryPluginConfig config,
                       qrm::memory::ParseMemoryConfig(section));
  QRM_ASSIGN_OR_RETURN(auto plugin, qrm::memory::MakeMemoryPlugin(config, machine));
  return qrm::config::NamedPlugin{.resource = qrm::memory::kResource, .plugin = std::move(plugin)};
}

}  // namespace

int main(int argc, char** argv) {
  return qrm::config::PluginProgramMain(qrm::memory::kResource, Make, argc, argv);
}
