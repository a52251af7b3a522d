// qrm-plugin-check: checks whether a resource plugin keeps the protocol.
#include <iostream>

#include "tools/plugin_check/check_command.h"

int main(int argc, char** argv) {
  return qrm::manager::RunPluginCheck({argv + 1, argv + argc}, std::cout, std::cerr);
}
