// Reads flags and file, and waits for a signal.
#include "scheduler/extender/serve_command.h"

#include <csignal>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "api/base/config_file.h"
#include "api/base/errorf.h"
#include "api/base/log.h"
#include "cluster/access.h"
#include "scheduler/extender/extender_server.h"
#include "scheduler/extender/serve_options.h"

namespace qrm::scheduler {
namespace {

constexpr int kFailed = 1;
constexpr int kMisuse = 2;
constexpr char kAccountDirectory[] = "/var/run/secrets/kubernetes.io/serviceaccount";

struct Arguments {
  config::ConfigSources sources;
  bool check = false;
  bool help = false;
};

StatusOr<Arguments> ReadArguments(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--help" || word == "-h" || word == "--check-config") {
      (word == "--check-config" ? arguments.check : arguments.help) = true;
      continue;
    }
    const auto equals = word.find('=');
    if (!word.starts_with("--") || (equals == std::string::npos && i + 1 == words.size())) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot read {}: it is not a flag with a value; write --KEY=VALUE", word);
    }
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const std::string value = equals == std::string::npos ? words[++i] : word.substr(equals + 1);
    if (name == "config") {
      arguments.sources.file = value;
    } else {
      arguments.sources.flags[name] = value;
    }
  }
  return arguments;
}

ServeOptions DefaultsOf(const SchedulerProgram& program) {
  ServeOptions options{.factories = program.factories, .resources = program.resources};
  if (options.resources.empty()) {
    for (const auto& [type, factory] : program.factories) {
      options.resources.push_back(type);
    }
  }
  return options;
}

void PrintHelp(const SchedulerProgram& program, std::ostream& out) {
  ServeOptions options = DefaultsOf(program);
  out << "Serves the extender that kube-scheduler asks, and follows the cluster.\n\nusage: "
      << program.name
      << " serve [--config FILE] [--KEY=VALUE ...]\n\n"
         "  --config FILE    YAML file with the keys below\n"
         "  --check-config   say what is wrong with the configuration, and exit\n"
         "  --help           print this, and exit\n\nkeys, also of the file:\n";
  for (const config::ConfigKey& key : ServeKeys(options)) {
    out << fmt::format("  --{}={}\n      {}\n      {}\n", key.name, key.show(), key.help,
                       key.range);
  }
  out << "\nExit codes: 0 done, 1 it cannot serve, 2 the configuration is wrong.\n";
}

StatusOr<cluster::ClusterAccess> FindCluster(const ServeOptions& options) {
  if (!options.kubeconfig.empty()) {
    return cluster::ReadKubeconfig(options.kubeconfig, options.context);
  }
  return cluster::InClusterAccess(
      [](const std::string& name) {
        const char* const value = std::getenv(name.c_str());
        return std::string(value == nullptr ? "" : value);
      },
      kAccountDirectory);
}

/// Blocked in this thread, and so in all that it starts.
sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

Status Serve(const ServeOptions& options) {
  QRM_ASSIGN_OR_RETURN(cluster::ClusterAccess access, FindCluster(options));
  std::signal(SIGPIPE, SIG_IGN);
  const sigset_t signals = BlockStopSignals();
  log::SetLevel(options.log_level);
  QRM_ASSIGN_OR_RETURN(const auto server, ExtenderServer::Start(options, std::move(access)));
  log::Info("extender serves",
            {{"port", server->port()}, {"monitor_port", server->monitor_port()}});
  int signal = 0;
  sigwait(&signals, &signal);
  log::Info("extender stops", {{"signal", signal}});
  return OkStatus();
}

int Fail(const SchedulerProgram& program, const Status& status, int code, std::ostream& err) {
  err << program.name << " serve: " << MessageOf(status) << '\n';
  return code;
}

}  // namespace

int RunServe(const SchedulerProgram& program, const std::vector<std::string>& args,
             std::ostream& out, std::ostream& err) {
  const StatusOr<Arguments> arguments = ReadArguments(args);
  if (!arguments.ok()) {
    return Fail(program, arguments.status(), kMisuse, err);
  }
  if (arguments->help) {
    PrintHelp(program, out);
    return EXIT_SUCCESS;
  }
  ServeOptions options = DefaultsOf(program);
  Status read = config::ReadKeys(arguments->sources, ServeKeys(options), program.name + " serve");
  read = read.ok() ? CheckServe(options) : read;
  if (!read.ok()) {
    return Fail(program, read, kMisuse, err);
  }
  if (arguments->check) {
    out << "the configuration is good\n";
    return EXIT_SUCCESS;
  }
  const Status served = Serve(options);
  return served.ok() ? EXIT_SUCCESS : Fail(program, served, kFailed, err);
}

}  // namespace qrm::scheduler
