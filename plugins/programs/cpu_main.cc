// qrm-plugin-cpu: the cpu plugin in a process of its own.
#include "plugins/cpu/cpu_plugin.h"
#include "plugins/programs/plugin_program.h"

int main(int argc, char** argv) {
  return qrm::programs::PolicyMain(qrm::cpu::kResource, qrm::cpu::ParseCpuConfig,

                                   [](const auto& config, const auto& machine) {
                                     return qrm::cpu::MakeCpuPlugin(config, machine);
                                   },
                                   {argc, argv});
}
