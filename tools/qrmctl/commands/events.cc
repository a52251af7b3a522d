// qrmctl events [POD]
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "checkpoint/decision_trace.h"
#include "manager/state/pod_selector.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/follow.h"
#include "tools/qrmctl/keep_rows.h"
#include "tools/qrmctl/table.h"
#include "tools/qrmctl/text.h"

namespace qrm::manager::cli {
namespace {

struct Question {
  std::string pod;              ///< a name, "namespace/name" or a UID; empty: all events
  std::set<std::string> types;  ///< empty: all
  int64_t since = 0;            ///< milliseconds since 1970
};

bool IsMeant(const Question& question, const v1::Event& event) {
  return (question.types.empty() || question.types.contains(event.type())) &&
         (question.pod.empty() ||
          manager::IsMeant(question.pod,
                           {event.pod_uid(), event.pod_namespace(), event.pod_name()}));
}

StatusOr<v1::ListEventsResponse> Ask(const CommandLine& line, const Question& question) {
  v1::ListEventsRequest request;
  request.set_since_unix_millis(question.since);
  auto events = ControlClient(line).Ask<v1::ListEventsResponse>(request);
  if (events.ok()) {
    KeepNamespace(line.listing().pod_namespace, *events->mutable_events(),
                  [](const v1::Event& event) { return event.pod_namespace(); });
    KeepRows(*events->mutable_events(),
             [&](const v1::Event& event) { return IsMeant(question, event); });
  }
  return events;
}

/// "pools of cpu set: online: 0-3 -> 0-1 (by uid 0, pid 4711)".
std::string WhatText(const v1::Event& event) {
  return event.by().empty() ? event.message()
                            : fmt::format("{} (by {})", event.message(), event.by());
}

Status PrintTable(const v1::ListEventsResponse& response, const Listing& listing,
                  std::ostream& out) {
  Table table({"TIME", "TYPE", "RESULT", "NAMESPACE", "POD", "CONTAINER", "WHAT"});
  for (const v1::Event& event : response.events()) {
    table.Add({TimeText(event.unix_millis()), event.type(), event.result(), event.pod_namespace(),
               event.pod_name(), event.container(), WhatText(event)});
  }
  return table.PrintSorted(listing.sort_by, "There are no recent events.\n", out);
}

void PrintLine(const v1::Event& event, std::ostream& out) {
  const std::string pod = event.pod_name().empty()
                              ? std::string()
                              : fmt::format("{}/{}", event.pod_namespace(), event.pod_name());
  Table line({TimeText(event.unix_millis()), event.type(), event.result(), pod, event.container(),
              WhatText(event)});
  line.Print(out);
}

/// A line for each event, as they come.
Status Follow(const CommandLine& line, Question question, std::ostream& out, const Wait& wait) {
  constexpr int64_t kLateMillis = 10'000;  // an event may come after a later one
  const int64_t begin = question.since;
  std::map<std::string, int> shown;  // how often, by the event's bytes
  do {
    QRM_ASSIGN_OR_RETURN(const v1::ListEventsResponse events, Ask(line, question));
    std::map<std::string, int> listed;
    for (const v1::Event& event : events.events()) {
      const std::string bytes = event.SerializeAsString();
      if (++listed[bytes] > shown[bytes]) {
        PrintLine(event, out);
      }
      question.since = std::max({begin, question.since, event.unix_millis() - kLateMillis});
    }
    shown = std::move(listed);
    out << std::flush;
  } while (wait(out));
  return OkStatus();
}

/// The types in `list`, as "pool,reload". Errors: kInvalidArgument for another word.
StatusOr<std::set<std::string>> TypesOf(const std::string& list) {
  std::set<std::string> types;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    if (std::find(checkpoint::kEventTypes.begin(), checkpoint::kEventTypes.end(), word) ==
        checkpoint::kEventTypes.end()) {
      return Errorf(StatusCode::kInvalidArgument, "\"{}\" is not a type of events; choose from {}",
                    word, fmt::join(checkpoint::kEventTypes, ", "));
    }
    types.insert(word);
  }
  return types;
}

}  // namespace

int RunEvents(const Args& args, std::ostream& out, std::ostream& err) {
  Question question;
  std::string since = kEver;
  std::string types;
  bool follow = false;
  CommandLine line(
      "events",
      "Lists what changed on the node, oldest first: decisions about containers,\n"
      "removals, pools, classes, the configuration, plugins, drivers, drift, the disk\n"
      "and restarts; -f continues with new events. qrmctl explain POD shows reasons.",
      "qrmctl events -f --since 10m");
  line.Output()
      .ControlSocket()
      .Listed()
      .Flag("-f,--follow", follow, "continue with new events until interrupted")
      .Option("--since", since, "only events of this last time (default: all)", "DURATION")
      .Option("--type", types, "only events of these types, such as pool,reload", "TYPES")
      .Optional("POD", question.pod, "a name, NAMESPACE/NAME or a UID");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const std::optional<int64_t> from = SinceOf(since);
  if (!from.has_value()) {
    return line.Misuse(fmt::format("\"{}\" is not a duration; write one such as 10m or 2h", since),
                       err);
  }
  auto chosen = TypesOf(types);
  if (!chosen.ok()) {
    return line.Misuse(MessageOf(chosen.status()), err);
  }
  question.types = *std::move(chosen);
  question.since = *from;
  if (follow) {
    const Status followed = Follow(line, question, out, WaitTwoSeconds);
    return followed.ok() ? kDone : line.Fail(followed, err);
  }
  return Show(line, Ask(line, question), out, err, [&](const v1::ListEventsResponse& events) {
    return PrintTable(events, line.listing(), out);
  });
}

}  // namespace qrm::manager::cli
