// qrmd: flags, configuration, machine, then the daemon.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "manager/daemon/builtin_plugins.h"
#include "manager/daemon/class_providers.h"
#include "manager/daemon/config_table.h"
#include "manager/daemon/daemon.h"
#include "manager/daemon/man_page.h"
#include "manager/daemon/process/priority.h"
#include "plugins/config/machine_config.h"

namespace {

constexpr int kMisused = 2;

constexpr char kUsage[] =
    "qrmd places containers on CPUs, memory nodes and NICs, beside an unmodified kubelet.\n\n"
    "usage: qrmd [--config FILE] [--KEY=VALUE ...]\n\n";

void PrintHelp() {
  std::cout << kUsage;
  for (const qrm::manager::ProgramFlag& flag : qrm::manager::kProgramFlags) {
    std::cout << fmt::format("  {:<24} {}\n", flag.flag, flag.help);
  }
  std::cout << "\nkeys, as flags or in the file:\n" << qrm::manager::ConfigFlagsHelp();
}

struct Arguments {
  enum class Action { kRun, kCheck, kReference, kManPage, kVersion, kHelp };
  Action action = Action::kRun;
  bool simulate = false;
  std::string config_file;
  qrm::StringMap flags;
};

bool TakeAction(const std::string& name, Arguments& arguments) {
  using Action = Arguments::Action;
  static const std::map<std::string, Action> actions = {
      {"check-config", Action::kCheck},
      {"print-config-reference", Action::kReference},
      {"print-man-page", Action::kManPage},
      {"version", Action::kVersion},
      {"help", Action::kHelp},
  };
  const auto found = actions.find(name);
  if (found == actions.end()) {
    return false;
  }
  arguments.action = found->second;
  return true;
}

qrm::Status UnknownFlag(const std::string& argument, const std::string& name) {
  const std::string nearest = qrm::manager::NearestConfigKey(name);
  return qrm::Errorf(qrm::StatusCode::kInvalidArgument, "cannot read {}: there is no such flag; {}",
                     argument,
                     nearest.empty() ? "qrmd --help lists all flags" : "did you mean --" + nearest);
}

qrm::StatusOr<Arguments> ReadArguments(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto equals = word.find('=');
    const std::string name = word.starts_with("--")
                                 ? word.substr(2, equals == std::string::npos ? equals : equals - 2)
                                 : std::string();
    if (equals == std::string::npos && TakeAction(name, arguments)) {
      continue;
    }
    if (word == "--simulate") {
      arguments.simulate = true;
      continue;
    }
    if (name != "config" && !qrm::manager::IsConfigKey(name)) {
      return UnknownFlag(word, name);
    }
    if (equals == std::string::npos && i + 1 == words.size()) {
      return qrm::Errorf(qrm::StatusCode::kInvalidArgument,
                         "cannot read {}: it has no value; write --{}=VALUE", word, name);
    }
    const std::string value = equals == std::string::npos ? words[++i] : word.substr(equals + 1);
    if (name == "config") {
      arguments.config_file = value;
    } else {
      arguments.flags[name] = value;
    }
  }
  return arguments;
}

// Created before anything runs. An error here is an error of the configuration.
struct Prepared {
  qrm::manager::Config config;
  qrm::Machine machine;
  std::vector<qrm::manager::BuiltinPlugin> builtins;
  qrm::manager::ClassBook::Providers class_providers;
};

/// Errors: kInvalidArgument for another machine than this one without --simulate.
qrm::Status CheckMachine(const std::string& source, bool simulate) {
  if (simulate || source == "live") {
    return qrm::OkStatus();
  }
  return qrm::Errorf(
      qrm::StatusCode::kInvalidArgument,
      "cannot use machine {}: it is not this node, so that containers would get CPUs "
      "and nodes that this node may not have; remove the key machine, or start qrmd "
      "with --simulate to try that machine",
      source);
}

qrm::StatusOr<Prepared> Prepare(const Arguments& arguments) {
  Prepared prepared;
  QRM_ASSIGN_OR_RETURN(prepared.config,
                       qrm::manager::ReadConfig(arguments.config_file, arguments.flags));
  QRM_RETURN_IF_ERROR(CheckMachine(prepared.config.machine.source, arguments.simulate));
  QRM_ASSIGN_OR_RETURN(prepared.machine, qrm::config::LoadMachine(prepared.config.machine));
  QRM_ASSIGN_OR_RETURN(prepared.builtins,
                       qrm::manager::MakeBuiltinPlugins(prepared.config.builtin, prepared.machine));
  QRM_ASSIGN_OR_RETURN(prepared.class_providers,
                       qrm::manager::MakeClassProviders(prepared.config.classes,
                                                        {prepared.config.runtime.cgroup_root,
                                                         prepared.config.process.state_dir}));
  QRM_ASSIGN_OR_RETURN(const qrm::CpuSet reserved,
                       qrm::manager::ReservedCpus(prepared.config.builtin, prepared.config.machine,
                                                  prepared.machine));
  QRM_RETURN_IF_ERROR(qrm::manager::CheckPriority(prepared.config.process, reserved));
  return prepared;
}

int Fail(const qrm::Status& status, int code) {
  std::cerr << "qrmd: " << qrm::MessageOf(status) << '\n';
  return code;
}

int Serve(const Arguments& arguments, Prepared prepared) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);  // until the daemon handles it
  qrm::log::SetLevel(prepared.config.process.log_level);
  qrm::log::SetForm(prepared.config.process.log_form);
  // protobuf writes a line to stderr for each received text that is not UTF-8, without a limit.
  google::protobuf::SetLogHandler(nullptr);
  const auto daemon = qrm::manager::Daemon::Create(
      std::move(prepared.config), std::move(prepared.machine), std::move(prepared.builtins),
      std::move(prepared.class_providers), {arguments.config_file, arguments.flags});
  const qrm::Status end = daemon.ok() ? (*daemon)->Run() : daemon.status();
  return end.ok() ? EXIT_SUCCESS : Fail(end, EXIT_FAILURE);
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = ReadArguments({argv + 1, argv + argc});
  if (!arguments.ok()) {
    return Fail(arguments.status(), kMisused);
  }
  switch (arguments->action) {
    case Arguments::Action::kHelp:
      PrintHelp();
      return EXIT_SUCCESS;
    case Arguments::Action::kVersion:
      std::cout << "qrmd " << QRM_VERSION << '\n';
      return EXIT_SUCCESS;
    case Arguments::Action::kReference:
      std::cout << qrm::manager::ConfigReference();
      return EXIT_SUCCESS;
    case Arguments::Action::kManPage:
      std::cout << qrm::manager::ManPage(QRM_VERSION);
      return EXIT_SUCCESS;
    case Arguments::Action::kCheck:
    case Arguments::Action::kRun:
      break;
  }
  auto prepared = Prepare(*arguments);
  if (!prepared.ok()) {
    return Fail(prepared.status(), kMisused);
  }
  if (arguments->action == Arguments::Action::kCheck) {
    std::cout << "the configuration is good\n";
    return EXIT_SUCCESS;
  }
  return Serve(*arguments, *std::move(prepared));
}
