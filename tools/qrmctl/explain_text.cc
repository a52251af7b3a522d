// Prints a decision with one function per part, without assuming the document's shape.
#include "tools/qrmctl/explain_text.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "api/base/foreign_text.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/table.h"
#include "tools/qrmctl/text.h"

namespace qrm::manager::cli {
namespace {

/// A hint list longer than this is cut: a machine of many nodes has thousands.
constexpr std::size_t kMaxHintsShown = 8;

const Document& PartOf(const Document& document, const char* name) {
  static const Document nothing = Document::object();
  const auto found = document.is_object() ? document.find(name) : document.end();
  return document.is_object() && found != document.end() ? *found : nothing;
}

/// Text of pods and plugins, which must not reach the terminal as it is.
std::string TextOf(const Document& value) {
  return value.is_string()
             ? Escaped(value.get<std::string>())
             : value.dump(-1, ' ', /*ensure_ascii=*/true, Document::error_handler_t::replace);
}

double NumberOf(const Document& value) {
  return value.is_number() ? value.get<double>() : 0;
}

std::string HintText(const Document& hint) {
  std::string nodes;
  for (const Document& node : PartOf(hint, "nodes")) {
    nodes += (nodes.empty() ? "" : ",") + TextOf(node);
  }
  const bool preferred = PartOf(hint, "preferred") == true;
  const std::string where = nodes.empty() ? "any node" : "node " + nodes;
  return preferred ? where + " preferred" : where;
}

std::string HintsText(const Document& hints) {
  if (!hints.is_array()) {
    return TextOf(hints);
  }
  std::string text;
  for (std::size_t i = 0; i < hints.size() && i < kMaxHintsShown; ++i) {
    text += (i == 0 ? "" : "; ") + HintText(hints[i]);
  }
  return hints.size() <= kMaxHintsShown
             ? text
             : fmt::format("{}; and {} more", text, hints.size() - kMaxHintsShown);
}

std::string RequestText(const std::string& resource, const Document& request) {
  const Document& mapped = PartOf(request, "as");
  const Document& times = PartOf(request, "times");
  return fmt::format("{} (from {}{}{})", AmountOf(resource, NumberOf(PartOf(request, "amount"))),
                     TextOf(PartOf(request, "source")),
                     mapped.is_string() ? ", asked for as " + TextOf(mapped) : "",
                     times.is_number() ? fmt::format(", times {}", NumberOf(times)) : "");
}

void AppendPairs(const Document& values, std::string& text) {
  for (const auto& [key, value] : values.items()) {
    text += fmt::format(" {}={}", Escaped(key), TextOf(value));
  }
}

std::string AllocationText(const std::string& resource, const Document& allocation) {
  std::string text;
  if (const Document& quantity = PartOf(allocation, "quantity"); quantity.is_number()) {
    text += " " + AmountOf(resource, NumberOf(quantity));
  }
  if (const Document& property = PartOf(allocation, "property"); property.is_string()) {
    text += fmt::format(" {}={}", TextOf(property), TextOf(PartOf(allocation, "value")));
  }
  if (PartOf(allocation, "exclusive") == true) {
    text += " (exclusive)";
  }
  AppendPairs(PartOf(allocation, "envs"), text);
  AppendPairs(PartOf(allocation, "annotations"), text);
  text = text.empty() ? "nothing" : text.substr(1);
  if (const Document& rule = PartOf(allocation, "decided_by"); rule.is_string()) {
    text += ", by " + TextOf(rule);
  }
  return text;
}

/// A class and what asked for it.
std::string ClassText(const std::string& /*type*/, const Document& chosen) {
  const std::string name = TextOf(PartOf(chosen, "class"));
  return fmt::format("{}, by {}", name.empty() ? "none" : name, TextOf(PartOf(chosen, "by")));
}

std::string StepsText(const Document& steps) {
  std::string text;
  for (const Document& step : steps) {
    text += fmt::format("{}{} {} us", text.empty() ? "" : ", ", TextOf(PartOf(step, "step")),
                        AmountText(NumberOf(PartOf(step, "microseconds"))));
  }
  return text;
}

std::string WordsText(const Document& words) {
  std::string text;
  for (const Document& word : words) {
    text += (text.empty() ? "" : ", ") + TextOf(word);
  }
  return text;
}

/// "  Title" and below it one line for each entry of an object.
template <typename TextOfEntry>
void PrintByName(const std::string& title, const Document& entries, std::ostream& out,
                 TextOfEntry text_of_entry) {
  if (!entries.is_object() || entries.empty()) {
    return;
  }
  out << "  " << title << '\n';
  Sheet sheet;
  for (const auto& [name, entry] : entries.items()) {
    sheet.Add(name, text_of_entry(name, entry));
  }
  sheet.Print(out, 4);
}

void PrintLines(const std::string& title, const Document& lines, std::ostream& out) {
  if (!lines.is_array() || lines.empty()) {
    return;
  }
  out << "  " << title << '\n';
  for (const Document& line : lines) {
    out << "    " << TextOf(line) << '\n';
  }
}

/// One thing about a compute driver; unmet wishes and warnings are lists.
std::string DriverText(const std::string& /*name*/, const Document& value) {
  if (!value.is_array()) {
    return TextOf(value);
  }
  std::vector<std::string> texts;
  for (const Document& item : value) {
    texts.push_back(item.is_object() ? fmt::format("{}: {}", TextOf(PartOf(item, "wish")),
                                                   TextOf(PartOf(item, "reason")))
                                     : TextOf(item));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

Document ParseDecision(const std::string& json) {
  Document parsed = Document::parse(json, nullptr, /*allow_exceptions=*/false);
  return parsed.is_object() ? parsed : Document{{"text", json}};
}

Document InnerDocument(const v1::Decision& decision) {
  Document document = ParseDecision(decision.json());
  if (decision.commit_micros() != 0 && document["steps"].is_array()) {
    document["steps"].push_back({{"step", "commit"}, {"microseconds", decision.commit_micros()}});
  }
  return document;
}

Document DecisionsDocument(const google::protobuf::RepeatedPtrField<v1::Decision>& decisions) {
  Document documents = Document::array();
  for (const v1::Decision& decision : decisions) {
    Document document = ToDocument(decision);
    document.erase("json");
    document.erase("commit_micros");
    document["decision"] = InnerDocument(decision);
    documents.push_back(std::move(document));
  }
  return documents;
}

void PrintDecision(const Document& decision, std::ostream& out) {
  for (const char* name : {"message", "text"}) {
    if (const Document& text = PartOf(decision, name); text.is_string()) {
      out << "  " << TextOf(text) << '\n';
    }
  }
  if (const Document& before = PartOf(decision, "equal_ones_before"); before.is_number()) {
    out << "  After " << CountText(before.get<uint64_t>(), "equal one");
    const Document& first = PartOf(decision, "first_unix_millis");
    out << (first.is_number() ? " since " + TimeText(first.get<int64_t>()) : "") << '\n';
  }
  if (const Document& moment = PartOf(decision, "moment"); moment == "after the fact") {
    out << "  Decided after the container was there\n";
  } else if (moment == "resize") {
    out << "  Decided for a resize of the running container\n";
  }
  PrintLines("Placed together with", PartOf(decision, "together_with"), out);
  PrintByName("Asked", PartOf(decision, "requests"), out, RequestText);
  PrintLines("No effect of annotation keys", PartOf(decision, "annotation_keys_without_effect"),
             out);
  PrintLines("No plugin for", PartOf(decision, "requests_without_plugin"), out);
  PrintLines("Plugin away for", PartOf(decision, "requests_awaiting_plugin"), out);
  PrintLines("Too late for, since the container was made without it",
             PartOf(decision, "too_late_for"), out);
  PrintLines("Answered from the record", PartOf(decision, "answered_from_record"), out);
  PrintByName("Hints", PartOf(decision, "hints"), out,
              [](const std::string&, const Document& hints) { return HintsText(hints); });
  const Document& policy = PartOf(decision, "policy");
  PrintByName("Merged" + (policy.is_string() ? " by policy " + TextOf(policy) : "") +
                  (PartOf(decision, "scope") == "pod" ? " for the whole pod" : ""),
              PartOf(decision, "merged"), out,
              [](const std::string&, const Document& hint) { return HintText(hint); });
  PrintLines("Reasons", PartOf(decision, "merge_reasons"), out);
  PrintByName("Compute driver", PartOf(decision, "driver"), out, DriverText);
  PrintByName("Given", PartOf(decision, "allocations"), out, AllocationText);
  PrintByName("Classes", PartOf(decision, "classes"), out, ClassText);
  PrintLines("Conflicts", PartOf(decision, "conflicts"), out);
  PrintLines("Too long to keep", PartOf(decision, "left_out"), out);
  if (const Document& steps = PartOf(decision, "steps"); steps.is_array() && !steps.empty()) {
    out << "  Took\n    " << StepsText(steps) << '\n';
  }
  if (const Document& left_out = PartOf(decision, "steps_not_done"); left_out.is_array()) {
    out << "  Not done\n    " << WordsText(left_out) << '\n';
  }
}

}  // namespace qrm::manager::cli
