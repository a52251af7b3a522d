// Takes the few fields that an event needs from the JSON documents of decisions.
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/proto/qrm/v1/control.pb.h"
#include "manager/control/control_answers.h"

namespace qrm::manager {
namespace {

using nlohmann::json;

std::string TextOf(const json& document, const char* name) {
  const auto found = document.find(name);
  return found != document.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// "cpu: CpusetCpus=0-3, example.com/lane".
std::string GivenText(const json& allocations) {
  std::string text;
  for (const auto& [resource, given] : allocations.items()) {
    const std::string property = given.is_object() ? TextOf(given, "property") : std::string();
    text += fmt::format("{}{}", text.empty() ? "" : ", ", resource);
    if (!property.empty()) {
      text += fmt::format(": {}={}", property, TextOf(given, "value"));
    }
  }
  return text;
}

void FillEvent(const checkpoint::DecisionTrace& trace, v1::Event& event) {
  const json document = json::parse(trace.json, nullptr, /*allow_exceptions=*/false);
  event.set_pod_uid(trace.key.pod_uid);
  event.set_pod_namespace(trace.pod_namespace);
  event.set_pod_name(trace.pod_name);
  event.set_container(trace.key.container);
  event.set_type(trace.IsDecision() ? checkpoint::kAdmissionEvent : trace.type);
  if (trace.IsDecision()) {
    event.set_result(trace.admitted ? "admitted" : "rejected");
  }
  if (!document.is_object()) {
    return;
  }
  if (trace.IsDecision() && TextOf(document, "moment") == checkpoint::kResizeEvent) {
    event.set_type(checkpoint::kResizeEvent);
  }
  event.set_by(TextOf(document, "by"));
  if (const std::string result = TextOf(document, "result"); !result.empty()) {
    event.set_result(result);
  }
  event.set_message(TextOf(document, "message"));
  const auto allocations = document.find("allocations");
  if (event.message().empty() && allocations != document.end() && allocations->is_object()) {
    event.set_message(GivenText(*allocations));
  }
}

}  // namespace

v1::ListEventsResponse EventsAnswer(const std::vector<checkpoint::DecisionTrace>& traces,
                                    std::chrono::system_clock::time_point since) {
  v1::ListEventsResponse response;
  for (const checkpoint::DecisionTrace& trace : traces) {
    if (trace.time < since) {
      continue;
    }
    v1::Event& event = *response.add_events();
    event.set_unix_millis(UnixMillis(trace.time));
    FillEvent(trace, event);
  }
  return response;
}

}  // namespace qrm::manager
