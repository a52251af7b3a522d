// qrmctl as a user types it, and what it prints.
#pragma once

#include <sstream>
#include <string>

#include "tools/qrmctl/command.h"

namespace qrm::manager::cli {

class Typed {
 protected:
  /// Runs the words unchanged; returns the exit code.
  int RunAsTyped(const Args& args) {
    out_.str("");
    err_.str("");
    return RunQrmctl(args, out_, err_);
  }
  std::string out() const { return out_.str(); }
  std::string err() const { return err_.str(); }

 private:
  std::ostringstream out_;
  std::ostringstream err_;
};

}  // namespace qrm::manager::cli
