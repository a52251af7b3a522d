// qrmctl: what an operator asks of a node's qrmd.
#include <cstdlib>
#include <iostream>

#include <unistd.h>

#include "tools/qrmctl/colours.h"
#include "tools/qrmctl/command.h"

int main(int argc, char** argv) {
  const char* const plain = std::getenv("NO_COLOR");  // see no-color.org
  if (::isatty(STDOUT_FILENO) == 1 && (plain == nullptr || *plain == '\0')) {
    qrm::manager::cli::UseColours(std::cout);
  }
  return qrm::manager::cli::RunQrmctl({argv + 1, argv + argc}, std::cout, std::cerr);
}
