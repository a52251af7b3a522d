// Takes the fields that the page shows from the JSON documents of decisions. Fields may be missing.
#include "manager/control/page_decisions.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/foreign_text.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "manager/control/control_answers.h"

namespace qrm::manager {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostEntries = 16;
constexpr std::size_t kMostHints = 8;
constexpr std::size_t kMostMessageBytes = 1000;

const Json& PartOf(const Json& document, const char* name) {
  static const Json nothing;
  const auto found = document.is_object() ? document.find(name) : document.end();
  return document.is_object() && found != document.end() ? *found : nothing;
}

std::string TextOf(const Json& value) {
  return value.is_string() ? Cut(value.get<std::string>(), kMostMessageBytes) : std::string();
}

std::string ToText(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A hint as text: "node 0,1 preferred".
std::string HintText(const Json& hint) {
  std::string nodes;
  for (const Json& node : PartOf(hint, "nodes")) {
    nodes += (nodes.empty() ? "" : ",") + ToText(node);
  }
  const std::string where = nodes.empty() ? "any node" : "node " + nodes;
  return PartOf(hint, "preferred") == Json(true) ? where + " preferred" : where;
}

std::string HintsText(const Json& hints) {
  if (!hints.is_array()) {
    return hints.is_object() ? HintText(hints) : TextOf(hints);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(hints.size(), kMostHints); ++i) {
    text += (i == 0 ? "" : "; ") + HintText(hints[i]);
  }
  return hints.size() <= kMostHints
             ? text
             : fmt::format("{}; and {} more", text, hints.size() - kMostHints);
}

/// The first kMostEntries of an object, as [[name, text], ...].
template <typename TextOfEntry>
Json Entries(const Json& object, TextOfEntry text_of_entry) {
  Json entries = Json::array();
  for (const auto& [name, value] : object.items()) {
    if (object.is_object() && entries.size() < kMostEntries) {
      entries.push_back({Quoted(name), text_of_entry(value)});
    }
  }
  return entries;
}

std::string RequestText(const Json& request) {
  const Json& amount = PartOf(request, "amount");
  return fmt::format("{} (from {})", amount.is_number() ? ToText(amount) : "?",
                     TextOf(PartOf(request, "source")));
}

std::string GivenText(const Json& given) {
  std::string text = TextOf(PartOf(given, "value"));
  if (const Json& quantity = PartOf(given, "quantity"); text.empty() && quantity.is_number()) {
    text = ToText(quantity);
  }
  text += PartOf(given, "exclusive") == Json(true) ? " (exclusive)" : "";
  if (const std::string rule = TextOf(PartOf(given, "decided_by")); !rule.empty()) {
    text += ", by " + rule;
  }
  return text;
}

Json Sentences(const Json& list) {
  Json sentences = Json::array();
  for (const Json& sentence : list) {
    if (list.is_array() && sentences.size() < kMostEntries) {
      sentences.push_back(TextOf(sentence));
    }
  }
  return sentences;
}

std::string WhyText(const checkpoint::DecisionTrace& trace) {
  const Json decision = Json::parse(trace.json, nullptr, /*allow_exceptions=*/false);
  Json why = {{"container", Quoted(trace.pod_namespace) + "/" + Quoted(trace.pod_name) + "/" +
                                Quoted(trace.key.container)},
              {"time", UnixMillis(trace.time)},
              {"result", trace.admitted ? "admitted" : "rejected"}};
  if (const std::string result = TextOf(PartOf(decision, "result")); !result.empty()) {
    why["result"] = result;
  }
  why["message"] = TextOf(PartOf(decision, "message"));
  why["moment"] = TextOf(PartOf(decision, "moment"));
  why["policy"] = TextOf(PartOf(decision, "policy"));
  why["asked"] = Entries(PartOf(decision, "requests"), RequestText);
  why["hints"] = Entries(PartOf(decision, "hints"), HintsText);
  why["merged"] = Entries(PartOf(decision, "merged"), HintsText);
  why["reasons"] = Sentences(PartOf(decision, "merge_reasons"));
  why["given"] = Entries(PartOf(decision, "allocations"), GivenText);
  for (const char* longest : {"hints", "given", "asked", "reasons", "merged"}) {
    if (ToText(why).size() > kMostWhyBytes) {
      why[longest] = Json::array();
    }
  }
  return ToText(why);
}

std::string LatestText(const std::vector<checkpoint::DecisionTrace>& traces) {
  const std::size_t count = std::min(traces.size(), kMostPageDecisions);
  const std::vector<checkpoint::DecisionTrace> latest(
      traces.end() - static_cast<std::ptrdiff_t>(count), traces.end());
  const v1::ListEventsResponse events = EventsAnswer(latest, {});
  Json list = Json::array();
  for (auto event = events.events().rbegin(); event != events.events().rend(); ++event) {
    list.push_back({{"time", event->unix_millis()},
                    {"id", PageIdOf({event->pod_uid(), event->container()})},
                    {"container", Quoted(event->pod_namespace()) + "/" + Quoted(event->pod_name()) +
                                      "/" + Quoted(event->container())},
                    {"result", event->result()},
                    {"message", Cut(event->message(), kMostMessageBytes)}});
  }
  return ToText(list);
}

}  // namespace

std::string PageIdOf(const ContainerKey& key) {
  return fmt::format("{:016x}", std::hash<std::string>()(key.pod_uid + "/" + key.container));
}

PageDecisions ReadForPage(const std::vector<checkpoint::DecisionTrace>& traces) {
  PageDecisions decisions{.latest = LatestText(traces), .why = {}};
  for (auto trace = traces.rbegin(); trace != traces.rend(); ++trace) {
    const auto [at, is_latest] = decisions.why.try_emplace(PageIdOf(trace->key));
    if (is_latest) {
      at->second = WhyText(*trace);
    }
  }
  return decisions;
}

}  // namespace qrm::manager
