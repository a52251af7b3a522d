// qrm-plugin-memory: the memory plugin in a process of its own.
#include "plugins/memory/memory_plugin.h"
#include "plugins/programs/plugin_program.h"

int main(int argc, char** argv) {
  return qrm::programs::PolicyMain(qrm::memory::kResource, qrm::memory::ParseMemoryConfig,
                                   qrm::memory::MakeMemoryPlugin, {argc, argv});
}
