// qrmctl pool advise
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

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

void PrintNode(const v1::AdvisedNode& node, const OutputFormat& format, std::ostream& out) {
  if (!format.IsText()) {
    PrintMessage(node, format, out);
    return;
  }
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
                 const OutputFormat& format, std::ostream& out) {
  if (!format.IsText()) {
    PrintMessage(response, format, out);
    return;
  }
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

int RunPoolAdvise(const Args& args, std::ostream& out, std::ostream& err) {
  OutputFormat format = OutputFormat::kTable;
  std::string socket;
  std::string lease;
  v1::AdviseRequest request;
  std::string advisor = "qrmctl";
  std::vector<std::string> words;
  CommandLine line("pool advise",
                   "Advises the number of CPUs of elastic pools, or shows what advisors see.",
                   "qrmctl pool advise --socket /run/qrm/advisor.sock reclaim=30");
  line.Output(format)
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
  if (!node.ok()) {
    return line.Fail(node.status(), err);
  }
  if (words.empty()) {
    PrintNode(*node, format, out);
    return kDone;
  }
  request.set_advisor(advisor);
  request.set_generation(node->generation());
  const auto answer = client.Ask<v1::AdviseResponse>(request);
  if (!answer.ok()) {
    return line.Fail(answer.status(), err);
  }
  PrintAnswer(request, *answer, format, out);
  return kDone;
}

}  // namespace qrm::manager::cli
