// Decisions from and to lines; folds equal ones and drops the oldest.
#include "checkpoint/decision_trace.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/repeated_lines.h"

namespace qrm::checkpoint {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::system_clock;

/// What follows the head's members in a line. Not within one of them: quotes in a text are escaped.
constexpr std::string_view kDocument = ",\"decision\":";

constexpr char kBefore[] = "equal_ones_before";
constexpr char kFirst[] = "first_unix_millis";

/// Equal decisions that follow each other.
struct Run {
  std::size_t latest;  // of the traces
  uint64_t before;     // equal ones before that
  int64_t first_unix_millis;
};

Json DocumentOf(const DecisionTrace& trace) {
  Json document = Json::parse(trace.json, nullptr, /*allow_exceptions=*/false);
  return document.is_object() ? document : Json::object();
}

template <typename Number>
Number NumberOf(const Json& document, const char* name, Number otherwise) {
  const auto found = document.find(name);
  return found != document.end() && found->is_number() ? found->get<Number>() : otherwise;
}

/// Without a message there is nothing to compare.
std::string ReasonOf(const Json& document) {
  const auto message = document.find("message");
  return message != document.end() && message->is_string()
             ? WithoutNumbers(message->get<std::string>())
             : "";
}

Run RunOf(std::size_t index, const DecisionTrace& trace, const Json& document) {
  const int64_t millis =
      std::chrono::duration_cast<milliseconds>(trace.time.time_since_epoch()).count();
  return {.latest = index,
          .before = NumberOf(document, kBefore, uint64_t{0}),
          .first_unix_millis = NumberOf(document, kFirst, millis)};
}

/// `later` with all of `run` before it.
Run Joined(const Run& run, const Run& later) {
  return {.latest = later.latest,
          .before = run.before + 1 + later.before,
          .first_unix_millis = run.first_unix_millis};
}

void Write(const Run& run, DecisionTrace& trace) {
  Json document = DocumentOf(trace);
  document[kBefore] = run.before;
  document[kFirst] = run.first_unix_millis;
  trace.json = document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<DecisionTrace> Only(std::vector<DecisionTrace> traces, const std::vector<bool>& kept) {
  std::vector<DecisionTrace> result;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    if (kept[i]) {
      result.push_back(std::move(traces[i]));
    }
  }
  return result;
}

/// Which traces explain the current state of a container of a pod on the node.
std::vector<bool> OfPodsOnNode(const std::vector<DecisionTrace>& traces,
                               const IsOnNode& is_on_node) {
  std::vector<bool> tells(traces.size(), false);
  if (!is_on_node) {
    return tells;
  }
  std::map<std::string, bool> known;  // by the pod's UID
  std::set<ContainerKey> decided;
  std::set<ContainerKey> admitted;
  for (std::size_t i = traces.size(); i-- > 0;) {
    const DecisionTrace& trace = traces[i];
    if (!trace.IsDecision()) {
      continue;
    }
    const auto [pod, is_new] = known.emplace(trace.key.pod_uid, false);
    pod->second = is_new ? is_on_node(trace.key.pod_uid) : pod->second;
    const bool is_latest = decided.insert(trace.key).second;
    const bool is_latest_admission = trace.admitted && admitted.insert(trace.key).second;
    tells[i] = pod->second && (is_latest || is_latest_admission);
  }
  return tells;
}

}  // namespace

std::string ToLine(const DecisionTrace& trace) {
  Json head = {{"unix_nanos", nanoseconds(trace.time.time_since_epoch()).count()},
               {"pod_uid", trace.key.pod_uid},
               {"namespace", trace.pod_namespace},
               {"name", trace.pod_name},
               {"container", trace.key.container},
               {"admitted", trace.admitted}};
  if (trace.commit.has_value()) {
    head["commit_nanos"] = trace.commit->count();
  }
  if (!trace.IsDecision()) {
    head["type"] = trace.type;
  }
  std::string line = head.dump(-1, ' ', false, Json::error_handler_t::replace);
  line.pop_back();
  line += kDocument;
  line += trace.json.empty() ? "{}" : trace.json;
  line += "}\n";
  return line;
}

std::optional<DecisionTrace> FromLine(std::string_view line) {
  const std::size_t document = line.find(kDocument);
  if (document == std::string_view::npos || !line.ends_with("}")) {
    return std::nullopt;
  }
  const Json head =
      Json::parse(std::string(line.substr(0, document)) + "}", nullptr, /*allow_exceptions=*/false);
  if (!head.is_object()) {
    return std::nullopt;
  }
  try {
    const nanoseconds since_epoch(head.at("unix_nanos").get<int64_t>());
    DecisionTrace trace{
        .key = {head.at("pod_uid").get<std::string>(), head.at("container").get<std::string>()},
        .pod_namespace = head.at("namespace"),
        .pod_name = head.at("name"),
        .time = system_clock::time_point(
            std::chrono::duration_cast<system_clock::duration>(since_epoch)),
        .admitted = head.at("admitted")};
    if (const auto commit = head.find("commit_nanos"); commit != head.end()) {
      trace.commit = nanoseconds(commit->get<int64_t>());
    }
    trace.type = head.value("type", "");
    const std::size_t begin = document + kDocument.size();
    trace.json = line.substr(begin, line.size() - 1 - begin);
    return trace;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::vector<DecisionTrace> Folded(std::vector<DecisionTrace> traces) {
  std::vector<bool> kept(traces.size(), true);
  std::map<ContainerKey, std::map<std::string, Run>> runs;  // since its latest admission
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const DecisionTrace& trace = traces[i];
    if (trace.admitted) {
      runs.erase(trace.key);
      continue;
    }
    const Json document = trace.IsDecision() ? DocumentOf(trace) : Json();
    const std::string reason = trace.IsDecision() ? ReasonOf(document) : std::string();
    if (reason.empty()) {
      continue;
    }
    const Run alone = RunOf(i, trace, document);
    const auto [run, is_first] = runs[trace.key].emplace(reason, alone);
    if (!is_first) {
      kept[run->second.latest] = false;
      run->second = Joined(run->second, alone);
      Write(run->second, traces[i]);
    }
  }
  return Only(std::move(traces), kept);
}

std::vector<DecisionTrace> Latest(std::vector<DecisionTrace> traces, const IsOnNode& is_on_node,
                                  HistoryBounds bounds) {
  const std::vector<bool> of_pods = OfPodsOnNode(traces, is_on_node);
  std::vector<std::size_t> sizes;
  sizes.reserve(traces.size());
  for (const DecisionTrace& trace : traces) {
    sizes.push_back(ToLine(trace).size());
  }
  std::vector<bool> kept(traces.size(), false);
  std::size_t bytes = 0;
  const auto keep = [&](std::size_t i) {
    kept[i] = bytes + sizes[i] <= bounds.bytes;
    bytes += kept[i] ? sizes[i] : 0;
  };
  for (std::size_t i = traces.size(); i-- > 0;) {
    if (of_pods[i]) {
      keep(i);
    }
  }
  std::size_t decisions = 0;
  std::size_t events = 0;
  for (std::size_t i = traces.size(); i-- > 0;) {
    std::size_t& count = traces[i].IsDecision() ? decisions : events;
    if (++count <= bounds.traces && !of_pods[i]) {
      keep(i);
    }
  }
  return Only(std::move(traces), kept);
}

}  // namespace qrm::checkpoint
