// qrmctl events
#include <optional>

#include <fmt/format.h>

#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/follow.h"
#include "tools/qrmctl/keep_rows.h"
#include "tools/qrmctl/since.h"
#include "tools/qrmctl/table.h"
#include "tools/qrmctl/text.h"

namespace qrm::manager::cli {
namespace {

struct Question {
  std::string socket;
  std::string pod_namespace;
  int64_t since = 0;  ///< milliseconds since 1970
};

StatusOr<v1::ListEventsResponse> Ask(const Question& question) {
  v1::ListEventsRequest request;
  request.set_since_unix_millis(question.since);
  auto events = ControlClient(question.socket).Ask<v1::ListEventsResponse>(request);
  if (events.ok()) {
    KeepNamespace(question.pod_namespace, *events->mutable_events(),
                  [](const v1::Event& event) { return event.pod_namespace(); });
  }
  return events;
}

Status PrintTable(const v1::ListEventsResponse& response, const Listing& listing,
                  std::ostream& out) {
  Table table({"TIME", "RESULT", "NAMESPACE", "POD", "CONTAINER", "WHAT"});
  for (const v1::Event& event : response.events()) {
    table.Add({TimeText(event.unix_millis()), event.result(), event.pod_namespace(),
               event.pod_name(), event.container(), event.message()});
  }
  QRM_RETURN_IF_ERROR(table.SortBy(listing.sort_by));
  if (table.empty()) {
    out << "There are no recent decisions.\n";
  } else {
    table.Print(out);
  }
  return OkStatus();
}

/// A line for each event, as they come.
Status Follow(Question question, std::ostream& out, const Wait& wait) {
  int64_t latest = question.since;
  int shown_of_latest = 0;  // events of one millisecond may come in two answers
  do {
    QRM_ASSIGN_OR_RETURN(const v1::ListEventsResponse events, Ask(question));
    int of_latest = 0;
    for (const v1::Event& event : events.events()) {
      if (event.unix_millis() == question.since && ++of_latest <= shown_of_latest) {
        continue;
      }
      shown_of_latest = event.unix_millis() == latest ? shown_of_latest + 1 : 1;
      latest = event.unix_millis();
      Table line({TimeText(latest), event.result(),
                  fmt::format("{}/{}", event.pod_namespace(), event.pod_name()), event.container(),
                  event.message()});
      line.Print(out);
    }
    question.since = latest;
    out << std::flush;
  } while (wait(out));
  return OkStatus();
}

}  // namespace

int RunEvents(const Args& args, std::ostream& out, std::ostream& err) {
  OutputFormat format = OutputFormat::kTable;
  Question question;
  std::string since = kEver;
  bool follow = false;
  Listing listing;
  CommandLine line("events",
                   "Lists the decisions of qrmd about containers, oldest first; -f continues with\n"
                   "new decisions. qrmctl explain POD shows the reasons.",
                   "qrmctl events -f --since 10m");
  line.Output(format)
      .ControlSocket(question.socket)
      .Listed(listing)
      .Flag("-f,--follow", follow, "continue with new decisions until interrupted")
      .Option("--since", since, "only decisions of this last time (default: all)", "DURATION");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const std::optional<int64_t> from = SinceOf(since);
  if (!from.has_value()) {
    return line.Misuse(fmt::format("\"{}\" is not a duration; write one such as 10m or 2h", since),
                       err);
  }
  question.since = *from;
  question.pod_namespace = listing.pod_namespace;
  if (follow) {
    const Status followed = Follow(question, out, WaitTwoSeconds);
    return followed.ok() ? kDone : line.Fail(followed, err);
  }
  const auto events = Ask(question);
  if (!events.ok()) {
    return line.Fail(events.status(), err);
  }
  if (!format.IsText()) {
    PrintMessage(*events, format, out);
    return kDone;
  }
  const Status printed = PrintTable(*events, listing, out);
  return printed.ok() ? kDone : line.Misuse(MessageOf(printed), err);
}

}  // namespace qrm::manager::cli
