// Reads the flags, runs the checks and prints their lines.
#include "tools/plugin_check/check_command.h"

#include <algorithm>
#include <map>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "api/base/errorf.h"
#include "tools/plugin_check/conformance.h"
#include "topology/discovery.h"

namespace qrm::manager {
namespace {

constexpr int kBroken = 1;
constexpr int kMisuse = 2;
constexpr int kRefused = 3;

/// The command line before it is understood.
struct Flags {
  CheckSettings settings;
  std::string machine = "live";
  int64_t timeout_ms = CheckSettings{}.timeout.count();
  std::vector<std::string> labels;
  std::vector<std::string> annotations;
  bool is_driver = false;
};

void Declare(CLI::App& app, Flags& flags) {
  app.add_option("SOCKET", flags.settings.socket, "the plugin's socket")->required();
  app.add_option("--resource", flags.settings.resource,
                 "resource to ask for (default: the one that the plugin announces)");
  app.add_option("--amount", flags.settings.amount, "how much each of two containers asks for")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--role", flags.settings.pod_role, "the pod's role");
  app.add_option("--type", flags.settings.pod_type, "the pod's type");
  app.add_option("--label", flags.labels, "KEY=VALUE of the pod; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--annotation", flags.annotations, "KEY=VALUE of the pod; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--machine", flags.machine,
                 "the machine that the plugin knows: live, fsroot:DIR, xml:FILE or synthetic:TEXT")
      ->capture_default_str();
  app.add_option("--timeout-ms", flags.timeout_ms, "for each answer")
      ->check(CLI::Range(1, 60000))
      ->capture_default_str();
  app.add_flag("--cci", flags.is_driver, "check a compute driver; --amount is in CPUs");
  app.add_option("--spec", flags.settings.spec, "the spec to ask a compute driver for");
  app.add_option("--command", flags.settings.command,
                 "shell command that starts the plugin: it is started, killed and started again");
  app.footer(
      "Exit codes: 0 all rules hold, 1 a rule is broken, 2 misused, 3 the plugin rejected the\n"
      "request, so that rules about allocations were not checked.\nExample:\n  qrm-plugin-check "
      "/var/lib/qrm/plugins_registry/cpu.sock --amount 2");
}

StatusOr<std::map<std::string, std::string>> ParsePairs(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Errorf(StatusCode::kInvalidArgument, "cannot read \"{}\": write KEY=VALUE", text);
    }
    pairs[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return pairs;
}

StatusOr<Machine> MachineOf(const Flags& flags) {
  QRM_ASSIGN_OR_RETURN(const MachineSource source, MachineSource::Parse(flags.machine));
  return Discover(source);
}

Status Complete(Flags& flags) {
  QRM_ASSIGN_OR_RETURN(flags.settings.labels, ParsePairs(flags.labels));
  QRM_ASSIGN_OR_RETURN(flags.settings.annotations, ParsePairs(flags.annotations));
  flags.settings.timeout = std::chrono::milliseconds(flags.timeout_ms);
  return OkStatus();
}

int Misuse(const std::string& message, std::ostream& err) {
  err << "qrm-plugin-check: " << message << "; try: qrm-plugin-check --help\n";
  return kMisuse;
}

}  // namespace

int RunPluginCheck(std::vector<std::string> arguments, std::ostream& out, std::ostream& err) {
  CLI::App app("Checks whether a resource plugin, or a compute driver, keeps the protocol.",
               "qrm-plugin-check");
  Flags flags;
  Declare(app, flags);
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    out << app.help();
    return EXIT_SUCCESS;
  } catch (const CLI::ParseError& error) {
    return Misuse(error.what(), err);
  }
  if (const Status complete = Complete(flags); !complete.ok()) {
    return Misuse(MessageOf(complete), err);
  }
  const StatusOr<Machine> machine = MachineOf(flags);
  if (!machine.ok()) {
    return Misuse(MessageOf(machine.status()), err);
  }
  const auto check = flags.is_driver ? CheckDriver : CheckPlugin;
  const Verdict verdict = check(flags.settings, *machine, [&](const RuleResult& result) {
    out << fmt::format("{:<8}{}{}{}\n", ToString(result.verdict), result.rule,
                       result.detail.empty() ? "" : ": ", result.detail)
        << std::flush;
  });
  if (verdict == Verdict::kRefused) {
    return kRefused;
  }
  return verdict == Verdict::kHolds ? EXIT_SUCCESS : kBroken;
}

}  // namespace qrm::manager
