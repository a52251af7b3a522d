// qrmctl policy show, qrmctl policy check, qrmctl policy diff
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "api/proto/qrm/v1/policy.pb.h"
#include "manager/observability/config_trial.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/table.h"

namespace qrm::manager::cli {
namespace {

/// All of `file`, or of the standard input for "-". Errors: kNotFound, kInvalidArgument.
StatusOr<std::string> ReadConfig(const std::string& file) {
  std::ifstream opened;
  if (file != "-") {
    opened.open(file);
    if (!opened.is_open()) {
      return Errorf(StatusCode::kNotFound, "cannot read {}: {}; name a configuration of qrmd", file,
                    std::strerror(errno));
    }
  }
  std::istream& in = file == "-" ? std::cin : opened;
  std::string text(kMostConfigBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMostConfigBytes || (file != "-" && opened.bad())) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot read {}: it is not a file of up to {} bytes; name a configuration of qrmd", file,
        kMostConfigBytes);
  }
  return text;
}

StatusOr<v1::TryConfigurationResponse> Try(const CommandLine& line, const std::string& file) {
  v1::TryConfigurationRequest request;
  request.set_name(file == "-" ? "the standard input" : file);
  QRM_ASSIGN_OR_RETURN(*request.mutable_text(), ReadConfig(file));
  return ControlClient(line).Ask<v1::TryConfigurationResponse>(request);
}

std::string OrNone(const std::string& text) {
  return text.empty() ? "none" : text;
}

void PrintKeys(const v1::TryConfigurationResponse& trial, std::ostream& out) {
  Table table({"KEY", "FROM", "TO", "COUNTS"});
  for (const v1::ChangedKey& key : trial.keys()) {
    table.Add({key.key(), OrNone(key.from()), OrNone(key.to()),
               key.at_next_start() ? "at the next start" : "at once"});
  }
  if (table.empty()) {
    out << "No key changes.\n";
  } else {
    table.Print(out);
  }
}

void PrintPools(const v1::TryConfigurationResponse& trial, std::ostream& out) {
  Table table({"POOL", "RESOURCE", "FROM", "TO"});
  for (const v1::ChangedPool& pool : trial.pools()) {
    table.Add({pool.pool(), pool.resource_name(), OrNone(pool.from()), OrNone(pool.to())});
  }
  table.PrintBelow(out);
}

void PrintMoves(const v1::TryConfigurationResponse& trial, std::ostream& out) {
  Table table({"POD", "CONTAINER", "RESOURCE", "FROM", "TO"});
  for (const v1::Move& move : trial.moves()) {
    table.Add({fmt::format("{}/{}", move.namespace_(), move.pod()), move.container(),
               move.resource_name(), OrNone(move.from()), OrNone(move.to())});
  }
  table.PrintBelow(out);
  if (table.empty()) {
    out << "\nNo container moves.\n";
  }
}

void PrintPolicy(const v1::GetPolicyResponse& policy, std::ostream& out) {
  Table table({"PLUGIN", "KEYS", "FROM"});
  for (const v1::PluginPolicy& plugin : policy.plugins()) {
    table.Add(
        {plugin.plugin(), plugin.keys(), plugin.place().empty() ? "the defaults" : plugin.place()});
  }
  if (table.empty()) {
    out << "No plugin runs inside qrmd.\n";
  } else {
    table.Print(out);
  }
}

}  // namespace

int RunPolicyShow(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("policy show", "Shows the configuration of the plugins inside qrmd.",
                   "qrmctl policy show");
  line.Output().ControlSocket().Watch();
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const auto answer = ControlClient(line).Ask<v1::GetPolicyResponse>(v1::GetPolicyRequest());
  return Show(line, answer, out, err,
              [&](const v1::GetPolicyResponse& policy) { PrintPolicy(policy, out); });
}

int RunPolicyCheck(const Args& args, std::ostream& out, std::ostream& err) {
  std::string file;
  CommandLine line("policy check",
                   "Shows whether qrmd would accept a configuration file, with the flags of the\n"
                   "running qrmd, this machine and all allocations. Nothing changes.",
                   "qrmctl policy check /etc/qrm/qrmd.yaml");
  line.ControlSocket().Required("FILE", file, "a configuration of qrmd; - for standard input");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const auto trial = Try(line, file);
  if (!trial.ok()) {
    return line.Fail(trial.status(), err);
  }
  const auto later = std::count_if(trial->keys().begin(), trial->keys().end(),
                                   [](const v1::ChangedKey& key) { return key.at_next_start(); });
  out << fmt::format(
      "qrmd would accept it: keys that change: {}, at the next start: {}; containers "
      "that move: {}\n",
      trial->keys_size() - later, later, trial->moves_size());
  return kDone;
}

int RunPolicyDiff(const Args& args, std::ostream& out, std::ostream& err) {
  std::string file;
  CommandLine line("policy diff",
                   "Shows which keys, pools and containers a configuration file would change if\n"
                   "qrmd read it now. Nothing changes.",
                   "qrmctl policy diff /etc/qrm/qrmd.yaml");
  line.Output().ControlSocket().Required("FILE", file,
                                         "a configuration of qrmd; - for standard input");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  return Show(line, Try(line, file), out, err, [&](const v1::TryConfigurationResponse& trial) {
    PrintKeys(trial, out);
    PrintPools(trial, out);
    PrintMoves(trial, out);
  });
}

}  // namespace qrm::manager::cli
