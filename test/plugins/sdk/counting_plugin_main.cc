// CountingPlugin as a program, for tests that kill it.
#include "test/plugins/sdk/counting_plugin.h"

int main(int argc, char** argv) {
  qrm::test::CountingPlugin plugin(4096);
  return qrm::sdk::PluginMain("cpu", plugin, argc, argv);
}
