// Walks a template and the document side by side.
#include "tools/qrmctl/json_path.h"

#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/number.h"
#include "api/base/text.h"

namespace qrm::manager::cli {
namespace {

using Found = std::vector<const Document*>;

Status Wrong(std::string_view part, std::string_view why) {
  return Errorf(StatusCode::kInvalidArgument,
                "cannot read \"{}\" of the jsonpath: {}; write one such as "
                "'{{range .pods[*]}}{{.name}}{{\"\\n\"}}{{end}}'",
                part, why);
}

/// The text between quotes, which may have \n and \t in it; absent when `text` is not quoted.
std::optional<std::string> Unquoted(std::string_view text) {
  if (text.size() < 2 || (text.front() != '"' && text.front() != '\'') ||
      text.back() != text.front()) {
    return std::nullopt;
  }
  std::string plain;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    const bool escaped = text[i] == '\\' && i + 2 < text.size();
    const char c = escaped ? text[++i] : text[i];
    plain += !escaped ? c : c == 'n' ? '\n' : c == 't' ? '\t' : c;
  }
  return plain;
}

void AddMembers(const Document& at, Found& found) {
  if (at.is_array() || at.is_object()) {
    for (const Document& member : at) {
      found.push_back(&member);
    }
  }
}

void AddNamed(const Document& at, const std::string& name, Found& found) {
  if (const auto member = at.is_object() ? at.find(name) : at.end(); member != at.end()) {
    found.push_back(&*member);
  }
}

void AddIndexed(const Document& at, int64_t index, Found& found) {
  const auto size = static_cast<int64_t>(at.is_array() ? at.size() : 0);
  const int64_t place = index < 0 ? size + index : index;
  if (place >= 0 && place < size) {
    found.push_back(&at[static_cast<std::size_t>(place)]);
  }
}

StatusOr<Found> Walk(std::string_view steps, Found from);

/// Whether `element` has what `filter`, such as @.name=="db", asks for.
StatusOr<bool> Passes(const Document& element, std::string_view filter) {
  const auto equals = filter.find("==");
  const std::string_view left = Trimmed(filter.substr(0, equals));
  if (!left.starts_with('@')) {
    return Wrong(filter, "a filter begins with @");
  }
  QRM_ASSIGN_OR_RETURN(const Found found, Walk(left.substr(1), {&element}));
  if (equals == std::string_view::npos) {
    return !found.empty();
  }
  const std::string_view right = Trimmed(filter.substr(equals + 2));
  const std::optional<std::string> text = Unquoted(right);
  const Document wanted =
      text.has_value() ? Document(*text) : Document::parse(right, nullptr, false);
  if (wanted.is_discarded()) {
    return Wrong(filter, "it compares with no text, number or truth value");
  }
  return !found.empty() && *found.front() == wanted;
}

/// The elements that the text in brackets selects.
StatusOr<Found> Select(std::string_view inside, const Found& from) {
  Found found;
  if (inside.starts_with("?(") && inside.ends_with(')')) {
    Found members;
    for (const Document* at : from) {
      AddMembers(*at, members);
    }
    for (const Document* member : members) {
      QRM_ASSIGN_OR_RETURN(const bool passes, Passes(*member, inside.substr(2, inside.size() - 3)));
      if (passes) {
        found.push_back(member);
      }
    }
    return found;
  }
  const std::optional<std::string> name = Unquoted(inside);
  const std::optional<int64_t> index = ParseNumber<int64_t>(std::string(inside));
  if (inside != "*" && !name.has_value() && !index.has_value()) {
    return Wrong(inside, "brackets hold *, a number, a quoted name or a filter");
  }
  for (const Document* at : from) {
    if (inside == "*") {
      AddMembers(*at, found);
    } else if (name.has_value()) {
      AddNamed(*at, *name, found);
    } else {
      AddIndexed(*at, index.value_or(0), found);
    }
  }
  return found;
}

/// Where the bracket or brace that `text` begins with ends; npos when it does not.
std::size_t EndOf(std::string_view text, char closing) {
  char quote = 0;
  int open = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quote != 0 && text[i] == '\\') {
      ++i;
    } else if (quote != 0) {
      quote = text[i] == quote ? '\0' : quote;
    } else if (text[i] == '"' || text[i] == '\'') {
      quote = text[i];
    } else if (text[i] == text.front()) {
      ++open;
    } else if (text[i] == closing && --open == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

StatusOr<Found> Walk(std::string_view steps, Found from) {
  while (!steps.empty()) {
    if (steps.front() == '[') {
      const std::size_t end = EndOf(steps, ']');
      if (end == std::string_view::npos) {
        return Wrong(steps, "a bracket is not closed");
      }
      QRM_ASSIGN_OR_RETURN(from, Select(Trimmed(steps.substr(1, end - 1)), from));
      steps.remove_prefix(end + 1);
      continue;
    }
    if (steps.front() != '.') {
      return Wrong(steps, "a step begins with a dot or a bracket");
    }
    steps.remove_prefix(1);
    const std::string_view name = steps.substr(0, steps.find_first_of(".["));
    steps.remove_prefix(name.size());
    Found found;
    for (const Document* at : from) {
      if (name == "*") {
        AddMembers(*at, found);
      } else if (name.empty()) {
        found.push_back(at);
      } else {
        AddNamed(*at, std::string(name), found);
      }
    }
    from = std::move(found);
  }
  return from;
}

std::string ToText(const Document& document) {
  return document.is_string() ? document.get<std::string>()
                              : document.dump(-1, ' ', false, Document::error_handler_t::replace);
}

// Evaluates a template from its begin; `rest_` is what is left of it.
class Template {
 public:
  explicit Template(std::string_view text) : rest_(text) {}

  /// To the end, or the {end} of the range that it is in.
  Status Run(const Document& at, bool in_range, std::string& out) {
    while (!rest_.empty()) {
      if (rest_.front() != '{') {
        const std::string_view plain = rest_.substr(0, rest_.find('{'));
        out += plain;
        rest_.remove_prefix(plain.size());
        continue;
      }
      const std::size_t end = EndOf(rest_, '}');
      if (end == std::string_view::npos) {
        return Wrong(rest_, "a brace is not closed");
      }
      const std::string_view inside = Trimmed(rest_.substr(1, end - 1));
      rest_.remove_prefix(end + 1);
      if (inside == "end") {
        return in_range ? OkStatus() : Wrong(inside, "no range stands before it");
      }
      QRM_RETURN_IF_ERROR(Part(inside, at, out));
    }
    return in_range ? Wrong("range", "it has no end") : OkStatus();
  }

 private:
  Status Part(std::string_view inside, const Document& at, std::string& out) {
    constexpr std::string_view kRange = "range ";
    if (inside.starts_with(kRange)) {
      return Range(Trimmed(inside.substr(kRange.size())), at, out);
    }
    if (const auto text = Unquoted(inside); text.has_value()) {
      out += *text;
      return OkStatus();
    }
    QRM_ASSIGN_OR_RETURN(const Found found, Walk(WithoutRoot(inside), {&at}));
    std::string joined;
    for (const Document* result : found) {
      joined += (joined.empty() ? "" : " ") + ToText(*result);
    }
    out += joined;
    return OkStatus();
  }

  Status Range(std::string_view steps, const Document& at, std::string& out) {
    QRM_ASSIGN_OR_RETURN(const Found found, Walk(WithoutRoot(steps), {&at}));
    const std::string_view body = rest_;
    std::string unused;
    QRM_RETURN_IF_ERROR(Run(Document(), /*in_range=*/true, unused));
    const std::string_view behind = rest_;
    for (const Document* element : found) {
      rest_ = body;
      QRM_RETURN_IF_ERROR(Run(*element, /*in_range=*/true, out));
    }
    rest_ = behind;
    return OkStatus();
  }

  static std::string_view WithoutRoot(std::string_view steps) {
    return steps.starts_with('$') || steps.starts_with('@') ? steps.substr(1) : steps;
  }

  std::string_view rest_;
};

}  // namespace

StatusOr<std::string> EvaluateJsonPath(std::string_view path, const Document& document) {
  const std::string whole =
      path.find('{') == std::string_view::npos ? fmt::format("{{{}}}", path) : std::string(path);
  std::string out;
  QRM_RETURN_IF_ERROR(Template(whole).Run(document, /*in_range=*/false, out));
  return out;
}

}  // namespace qrm::manager::cli
