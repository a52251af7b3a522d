// qrm-plugin-nic: the nic plugin in a process of its own.
#include "plugins/nic/kernel_watch.h"
#include "plugins/programs/plugin_program.h"

int main(int argc, char** argv) {
  return qrm::programs::PolicyMain(qrm::nic::kDefaultResource, qrm::nic::ParseNicConfig,
                                   qrm::nic::MakeLiveNicPlugin, {argc, argv});
}
