// qrmctl pool get, qrmctl pool set
#include <map>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/id_set.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/table.h"

namespace qrm::manager::cli {
namespace {

std::string Join(const google::protobuf::RepeatedPtrField<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ",") + word;
  }
  return text;
}

std::string CpuCount(const std::string& cpus) {
  const auto parsed = CpuSet::Parse(cpus);
  return parsed.ok() ? std::to_string(parsed->Count()) : "?";
}

/// `0-3`, with remarks: `0-3 (configured: 0-7) (borrowed: 8-9) (class: fast)`.
std::string CpusOf(const v1::Pool& pool) {
  std::string text = pool.cpus();
  if (!pool.configured_cpus().empty()) {
    text = fmt::format("{} (configured: {})", text.empty() ? "none" : text, pool.configured_cpus());
  }
  if (!pool.borrowed_cpus().empty()) {
    text += fmt::format(" (borrowed: {})", pool.borrowed_cpus());
  }
  if (!pool.cpu_class().empty()) {
    text += fmt::format(" (class: {}{})", pool.cpu_class(),
                        pool.class_problem().empty() ? "" : ", not in force");
  }
  return text;
}

template <typename Response>
void PrintPools(const Response& response, const OutputFormat& format, std::ostream& out) {
  if (!format.IsText()) {
    PrintMessage(response, format, out);
    return;
  }
  Table table({"POOL", "CPUS", "COUNT", "CONTAINERS", "ROLES"});
  for (const v1::Pool& pool : response.pools()) {
    table.Add({pool.name(), CpusOf(pool), CpuCount(pool.cpus()), std::to_string(pool.containers()),
               Join(pool.roles())});
  }
  if (table.empty()) {
    out << "The plugin has no pools.\n";
    return;
  }
  table.Print(out);
  for (const v1::Pool& pool : response.pools()) {
    if (!pool.class_problem().empty()) {
      out << "Pool " << pool.name() << " is not tuned: " << pool.class_problem() << '\n';
    }
  }
}

/// Reads NAME=CPUS words. Errors: kInvalidArgument with the word and what is wrong with it.
StatusOr<std::map<std::string, std::string>> ParseAssignments(
    const std::vector<std::string>& words) {
  std::map<std::string, std::string> cpus_by_pool;
  for (const std::string& word : words) {
    const auto equals = word.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return Errorf(StatusCode::kInvalidArgument, "\"{}\" is not of the form NAME=CPUS", word);
    }
    const std::string name = word.substr(0, equals);
    const auto cpus = CpuSet::Parse(word.substr(equals + 1));
    if (!cpus.ok()) {
      return Annotate(cpus.status(), "pool " + name);
    }
    if (!cpus_by_pool.emplace(name, ToString(*cpus)).second) {
      return Errorf(StatusCode::kInvalidArgument, "pool {} is named twice", name);
    }
  }
  return cpus_by_pool;
}

int RunPoolGet(const Args& args, std::ostream& out, std::ostream& err) {
  OutputFormat format = OutputFormat::kTable;
  std::string socket;
  std::string resource;
  CommandLine line("pool get", "Shows the pools of a plugin.", "qrmctl pool get");
  line.Output(format).ControlSocket(socket).Watch().Optional(
      "RESOURCE", resource, "the plugin's resource (default: cpu)");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  v1::GetPoolsRequest request;
  request.set_resource_name(resource);
  const auto pools = ControlClient(socket).Ask<v1::GetPoolsResponse>(request);
  if (!pools.ok()) {
    return line.Fail(pools.status(), err);
  }
  PrintPools(*pools, format, out);
  return kDone;
}

int RunPoolSet(const Args& args, std::ostream& out, std::ostream& err) {
  OutputFormat format = OutputFormat::kTable;
  std::string socket;
  std::string resource;
  std::vector<std::string> words;
  CommandLine line("pool set",
                   "Replaces the CPUs of pools in one step, all or none; other pools keep their\n"
                   "CPUs. Running containers follow within one reconcile.",
                   "qrmctl pool set online=0-13,40-53 offline=14-39,54-79");
  line.Output(format)
      .ControlSocket(socket)
      .Option("--resource", resource, "the plugin's resource (default: cpu)", "NAME")
      .Several("NAME=CPUS", words, "a pool and its CPUs, such as 0-3,8");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const auto cpus_by_pool = ParseAssignments(words);
  if (!cpus_by_pool.ok()) {
    return line.Misuse(MessageOf(cpus_by_pool.status()), err);
  }
  v1::SetPoolsRequest request;
  request.set_resource_name(resource);
  request.mutable_cpus_by_pool()->insert(cpus_by_pool->begin(), cpus_by_pool->end());
  const auto pools = ControlClient(socket).Ask<v1::SetPoolsResponse>(request);
  if (!pools.ok()) {
    return line.Fail(pools.status(), err);
  }
  PrintPools(*pools, format, out);
  for (const auto& [name, cpus] : *cpus_by_pool) {
    if (cpus.empty()) {
      err << fmt::format("pool {} has no CPUs now: containers of its roles are rejected\n", name);
    }
  }
  return kDone;
}

}  // namespace

int RunPool(const Args& args, std::ostream& out, std::ostream& err) {
  const Args rest(args.empty() ? args.begin() : args.begin() + 1, args.end());
  const std::string verb = args.empty() ? "" : args[0];
  if (verb == "get") {
    return RunPoolGet(rest, out, err);
  }
  if (verb == "set") {
    return RunPoolSet(rest, out, err);
  }
  if (verb == "advise") {
    return RunPoolAdvise(rest, out, err);
  }
  if (verb == "--help" || verb == "-h") {
    out << "Shows, resizes and advises pools of CPUs.\n\n"
           "Usage: qrmctl pool get [RESOURCE]\n"
           "       qrmctl pool set NAME=CPUS...\n"
           "       qrmctl pool advise --socket PATH [NAME=COUNT...]\n\n"
           "qrmctl pool VERB --help describes each verb.\n";
    return kDone;
  }
  err << "qrmctl pool: " << (verb.empty() ? "no verb given" : "there is no verb \"" + verb + "\"")
      << "; try: qrmctl pool get, or qrmctl pool set online=0-13\n";
  return kMisuse;
}

}  // namespace qrm::manager::cli
