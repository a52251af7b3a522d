// qrm-plugin-check: does a resource plugin keep the protocol?
#include <iostream>

#include "tools/plugin_check/check_command.h"

int main(int argc, char** argv) {
  return qrm::manager::RunPluginCheck({argv + 1, argv + argc}, std::cout, std::cerr);
}
