// qrmctl pool get, qrmctl pool set, qrmctl pool advise
#include <chrono>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/config_key.h"
#include "api/base/errorf.h"
#include "api/base/number.h"
#include "api/id_set.h"
#include "api/proto/qrm/v1/advisor.pb.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/table.h"

namespace qrm::manager::cli {
namespace {

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
void PrintPoolTable(const Response& response, std::ostream& out) {
  Table table({"POOL", "CPUS", "COUNT", "CONTAINERS", "ROLES"});
  for (const v1::Pool& pool : response.pools()) {
    table.Add({pool.name(), CpusOf(pool), CpuCount(pool.cpus()), std::to_string(pool.containers()),
               fmt::format("{}", fmt::join(pool.roles(), ","))});
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

std::string NameOf(const std::string& pool, const std::string& instance) {
  return instance.empty() ? pool : pool + "/" + instance;
}

std::string_view WordOf(v1::Clip clip) {
  switch (clip) {
    case v1::Clip::MIN:
      return "min";
    case v1::Clip::MAX:
      return "max";
    case v1::Clip::STEP:
      return "step";
    case v1::Clip::CAPACITY:
      return "capacity";
    case v1::Clip::UNKNOWN:
      return "unknown";
    case v1::Clip::STALE:
      return "stale";
    case v1::Clip::REQUESTS:
      return "requests";
    default:
      return "-";
  }
}

/// Adds the advice of a word NAME=COUNT or NAME/INSTANCE=COUNT. Errors: kInvalidArgument with what
/// is wrong with it.
Status AddAdvice(const std::string& word, v1::AdviseRequest& request) {
  const auto equals = word.find('=');
  const auto cpus = equals == std::string::npos
                        ? std::nullopt
                        : ParseNumber<int>(std::string_view(word).substr(equals + 1));
  if (equals == 0 || !cpus.has_value() || *cpus < 0 || *cpus > CpuSet::kMaxIds) {
    return Errorf(StatusCode::kInvalidArgument, "\"{}\" is not of the form NAME=COUNT", word);
  }
  const std::string name = word.substr(0, equals);
  const auto slash = name.find('/');
  v1::AdviceEntry& entry = *request.add_entries();
  entry.set_pool(name.substr(0, slash));
  if (slash != std::string::npos) {
    entry.set_instance(name.substr(slash + 1));
  }
  entry.set_cpus(*cpus);
  return OkStatus();
}

void PrintNode(const v1::AdvisedNode& node, std::ostream& out) {
  Table table({"POOL", "MIN", "MAX", "SIZE", "ASKED", "ADVISED"});
  for (const v1::AdvisedPool& pool : node.pools()) {
    const std::string advised = pool.advised() > 0 ? std::to_string(pool.advised()) : "-";
    const std::string max = pool.max() < CpuSet::kMaxIds ? std::to_string(pool.max()) : "-";
    table.Add({NameOf(pool.pool(), pool.instance()), std::to_string(pool.min()), max,
               std::to_string(pool.size()), std::to_string(pool.wish()),
               pool.may_be_advised() ? advised : "not to be"});
  }
  table.Print(out);
}

void PrintAnswer(const v1::AdviseRequest& request, const v1::AdviseResponse& response,
                 std::ostream& out) {
  Table table({"POOL", "ADVISED", "NEXT", "CLIPPED BY"});
  for (int i = 0; i < response.entries_size(); ++i) {
    const v1::AppliedAdvice& applied = response.entries(i);
    table.Add({NameOf(applied.pool(), applied.instance()),
               std::to_string(request.entries(i).cpus()), std::to_string(applied.size()),
               std::string(WordOf(applied.clipped_by()))});
  }
  table.Print(out);
}

}  // namespace

int RunPoolGet(const Args& args, std::ostream& out, std::ostream& err) {
  std::string resource;
  CommandLine line("pool get", "Shows the pools of a plugin.", "qrmctl pool get");
  line.Output().ControlSocket().Watch().Optional("RESOURCE", resource,
                                                 "the plugin's resource (default: cpu)");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  v1::GetPoolsRequest request;
  request.set_resource_name(resource);
  const auto answer = ControlClient(line).Ask<v1::GetPoolsResponse>(request);
  return Show(line, answer, out, err,
              [&](const v1::GetPoolsResponse& pools) { PrintPoolTable(pools, out); });
}

int RunPoolSet(const Args& args, std::ostream& out, std::ostream& err) {
  std::string resource;
  std::vector<std::string> words;
  CommandLine line("pool set",
                   "Replaces the CPUs of pools in one step, all or none; other pools keep their\n"
                   "CPUs. Running containers follow within one reconcile.",
                   "qrmctl pool set online=0-13,40-53 offline=14-39,54-79");
  line.Output()
      .ControlSocket()
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
  const auto answer = ControlClient(line).Ask<v1::SetPoolsResponse>(request);
  const int shown = Show(line, answer, out, err,
                         [&](const v1::SetPoolsResponse& pools) { PrintPoolTable(pools, out); });
  for (const auto& [name, cpus] : *cpus_by_pool) {
    if (shown == kDone && cpus.empty()) {
      err << fmt::format("pool {} has no CPUs now: containers of its roles are rejected\n", name);
    }
  }
  return shown;
}

int RunPoolAdvise(const Args& args, std::ostream& out, std::ostream& err) {
  std::string socket;
  std::string lease;
  v1::AdviseRequest request;
  std::string advisor = "qrmctl";
  std::vector<std::string> words;
  CommandLine line("pool advise",
                   "Advises the number of CPUs of elastic pools, or shows what advisors see.",
                   "qrmctl pool advise --socket /run/qrm/advisor.sock reclaim=30");
  line.Output()
      .Option("--socket", socket, "the advisors' socket, from the cpu plugin's key advisor", "PATH")
      .Option("--lease", lease, "validity of the advice, up to the configured lease", "DURATION")
      .Option("--advisor", advisor, "name of the advisor (default: qrmctl)", "NAME")
      .Any("NAME=COUNT", words, "a pool and how many CPUs it should have");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  if (socket.empty()) {
    return line.Misuse("--socket is missing", err);
  }
  for (const std::string& word : words) {
    if (const Status added = AddAdvice(word, request); !added.ok()) {
      return line.Misuse(MessageOf(added), err);
    }
  }
  if (!lease.empty()) {
    const std::optional<std::chrono::milliseconds> duration = config::ParseDuration(lease);
    if (!duration.has_value() || duration->count() <= 0) {
      return line.Misuse(fmt::format("\"{}\" is not a duration", lease), err);
    }
    request.set_lease_millis(duration->count());
  }
  const ControlClient client(socket, "--socket");
  const auto node = client.Ask<v1::AdvisedNode>(v1::GetNodeRequest());
  if (!node.ok() || words.empty()) {
    return Show(line, node, out, err, [&](const v1::AdvisedNode& shown) { PrintNode(shown, out); });
  }
  request.set_advisor(advisor);
  request.set_generation(node->generation());
  return Show(line, client.Ask<v1::AdviseResponse>(request), out, err,
              [&](const v1::AdviseResponse& answer) { PrintAnswer(request, answer, out); });
}

}  // namespace qrm::manager::cli
