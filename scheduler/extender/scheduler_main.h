// The main function of a program with extended resources, such as qrm-scheduler.
#pragma once

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "scheduler/cache/handle.h"

namespace qrm::scheduler {

/// What a program is, beside what all such programs are.
struct SchedulerProgram {
  struct Command {
    std::string help;  ///< one line
    std::function<int(const std::vector<std::string>& args, std::ostream& out, std::ostream& err)>
        run;  ///< returns the exit code
  };

  std::string name;
  std::string version;
  HandleFactories factories;
  std::vector<std::string> resources;       ///< judged by unless configured; empty: all
  std::map<std::string, Command> commands;  ///< beside serve
};

/// Runs the command in `argv`. Returns the exit code: 0 done, 1 failed, 2 misused.
int SchedulerMain(const SchedulerProgram& program, int argc, char** argv);

/// The same for a program that serves these resources, and has no other commands.
int SchedulerMain(const HandleFactories& factories, int argc, char** argv);

}  // namespace qrm::scheduler
