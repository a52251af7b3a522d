// qrmctl: what an operator asks of a node's qrmd.
#include <iostream>

#include "tools/qrmctl/command.h"

int main(int argc, char** argv) {
  return qrm::manager::cli::RunQrmctl({argv + 1, argv + argc}, std::cout, std::cerr);
}
