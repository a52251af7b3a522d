// The table of attributes, and the forms of their values.
#include "plugins/cci/attribute.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/nearest_word.h"
#include "api/base/number.h"
#include "api/base/text.h"
#include "plugins/kernel/knob.h"
#include "plugins/kernel/tunable_machine.h"

namespace qrm::cci {
namespace {

constexpr int kThousandthDigits = 3;

/// The form of an attribute's value.
struct Form {
  std::string_view example;  ///< empty: the attribute has no value
  bool (*read)(std::string_view value, Attribute& attribute) = nullptr;
};

using kernel::ParseDecimal;
using kernel::ParseFrequency;

bool ReadRange(std::string_view value, Attribute& attribute) {
  const auto dash = value.find('-');
  const auto least = ParseFrequency(Trimmed(value.substr(0, dash)));
  const auto most = dash == std::string_view::npos
                        ? std::optional<int64_t>(0)
                        : ParseFrequency(Trimmed(value.substr(dash + 1)));
  if (!least.has_value() || !most.has_value() || (*most != 0 && *most < *least)) {
    return false;
  }
  attribute.least = *least;
  attribute.most = *most;
  attribute.text +=
      *most == 0 ? fmt::format("={}kHz", *least) : fmt::format("={}kHz-{}kHz", *least, *most);
  return true;
}

bool ReadMostFrequency(std::string_view value, Attribute& attribute) {
  const auto most = ParseFrequency(value);
  attribute.most = most.value_or(0);
  attribute.text += fmt::format("={}kHz", attribute.most);
  return most.has_value();
}

bool ReadNodes(std::string_view value, Attribute& attribute) {
  const StatusOr<NumaMask> nodes = NumaMask::Parse(value);
  if (!nodes.ok() || nodes->Empty()) {
    return false;
  }
  attribute.nodes = *nodes;
  attribute.text += "=" + ToString(*nodes);
  return true;
}

bool ReadPriority(std::string_view value, Attribute& attribute) {
  constexpr int64_t kMost = 1000;
  const auto thousandths = ParseDecimal(value, kThousandthDigits);
  if (!thousandths.has_value() || *thousandths > kMost) {
    return false;
  }
  attribute.least = *thousandths;
  attribute.text += fmt::format("={}.{:03}", *thousandths / kMost, *thousandths % kMost);
  return true;
}

bool ReadMicroseconds(std::string_view value, Attribute& attribute) {
  constexpr int64_t kMost = 1000000;
  value = Trimmed(value.substr(0, value.size() - (value.ends_with("us") ? 2 : 0)));
  const auto microseconds = ParseNumber<int64_t>(value);
  if (!microseconds.has_value() || *microseconds < 0 || *microseconds > kMost) {
    return false;
  }
  attribute.least = *microseconds;
  attribute.text += fmt::format("={}us", *microseconds);
  return true;
}

/// Reads one word of a list.
template <const auto& kWords>
bool ReadChoice(std::string_view value, Attribute& attribute) {
  attribute.word = value;
  attribute.text += "=" + attribute.word;
  return std::find(std::begin(kWords), std::end(kWords), value) != std::end(kWords);
}

/// Reads a name that the kernel uses.
bool ReadWord(std::string_view value, Attribute& attribute) {
  const bool good = !value.empty() && std::ranges::all_of(value, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
  attribute.word = value;
  attribute.text += "=" + attribute.word;
  return good;
}

/// Reads a value by the table of thread attributes.
bool ReadThreadKnob(const char* name, const std::string& value, Attribute& attribute) {
  for (const kernel::KnobType& type : kernel::KnobTypes()) {
    for (const kernel::Knob& knob : type.knobs) {
      if (knob.place == kernel::KnobPlace::kThreads && knob.name == name) {
        attribute.word = kernel::ShownValue(knob, value, 1).value_or("");
      }
    }
  }
  return !attribute.word.empty();
}

bool ReadSchedule(std::string_view value, Attribute& attribute) {
  std::string words(value);
  std::ranges::replace(words, ':', ' ');
  const bool good = value.find(' ') == std::string_view::npos &&
                    ReadThreadKnob(kernel::kPolicy, words, attribute);
  std::string text = attribute.word;
  std::ranges::replace(text, ' ', ':');
  attribute.text += "=" + text;
  return good;
}

bool ReadNice(std::string_view value, Attribute& attribute) {
  const bool good = ReadThreadKnob(kernel::kNice, std::string(value), attribute);
  attribute.text += "=" + attribute.word;
  return good;
}

constexpr std::string_view kCoreTypes[] = {"performance", "efficiency"};
constexpr std::string_view kMemories[] = {"bind", "preferred", "interleave"};

const Form kNoValue;
const Form kLatency{"idle-latency=20", ReadMicroseconds};

struct Row {
  std::string_view name;
  AttributeKind kind;
  Form form;
  std::string_view excludes;  ///< attributes with the same text here exclude each other
  AttributeScope scope = AttributeScope::kCpus;
};

const std::vector<Row>& Rows() {
  using Kind = AttributeKind;
  static const std::vector<Row> rows = {
      {"exclusive", Kind::kExclusive, kNoValue, "exclusive and shared"},
      {"shared", Kind::kShared, kNoValue, "exclusive and shared"},
      {"smt-sibling-required", Kind::kSmtRequired, kNoValue, "the smt-sibling words"},
      {"smt-sibling-preferred", Kind::kSmtPreferred, kNoValue, "the smt-sibling words"},
      {"smt-sibling-denied", Kind::kSmtDenied, kNoValue, "the smt-sibling words"},
      {"core-type", Kind::kCoreType, {"core-type=performance", ReadChoice<kCoreTypes>}, ""},
      {"numa", Kind::kNuma, {"numa=0", ReadNodes}, ""},
      {"numa-single", Kind::kNumaSingle, kNoValue, ""},
      {"mem", Kind::kMemory, {"mem=bind", ReadChoice<kMemories>}, ""},
      {"freq", Kind::kFrequency, {"freq=2.1GHz or freq=2GHz-3GHz", ReadRange}, ""},
      {"freq-max", Kind::kMostFrequency, {"freq-max=3GHz", ReadMostFrequency}, ""},
      {"governor", Kind::kGovernor, {"governor=performance", ReadWord}, ""},
      {"epp", Kind::kEnergyPreference, {"epp=performance", ReadWord}, ""},
      {"priority", Kind::kPriority, {"priority=1.0", ReadPriority}, ""},
      {"no-irq", Kind::kNoIrq, kNoValue, ""},
      {"idle-latency", Kind::kIdleLatency, kLatency, "idle-latency and no-idle"},
      {"no-idle", Kind::kIdleLatency, kNoValue, "idle-latency and no-idle"},
      {"no-balance", Kind::kNoBalance, kNoValue, ""},
      {"sched", Kind::kSchedule, {"sched=fifo:10", ReadSchedule}, "", AttributeScope::kContainer},
      {"nice", Kind::kNice, {"nice=5", ReadNice}, "", AttributeScope::kContainer},
      {"no-quota", Kind::kOther, kNoValue, ""},
      {"uncore", Kind::kOther, {"uncore=2GHz-3GHz", ReadRange}, ""},
  };
  return rows;
}

const Row* FindRow(std::string_view name) {
  const auto row =
      std::ranges::find_if(Rows(), [&](const Row& candidate) { return candidate.name == name; });
  return row == Rows().end() ? nullptr : &*row;
}

template <typename... Args>
Status Wrong(std::size_t column, std::string_view token, fmt::format_string<Args...> format,
             Args&&... args) {
  return Errorf(StatusCode::kInvalidArgument, "column {}: '{}' {}", column, Quoted(token),
                fmt::format(format, std::forward<Args>(args)...));
}

Status Unknown(std::size_t column, std::string_view token, std::string_view name,
               AttributeScope scope) {
  std::vector<std::string> names;
  for (const Row& row : Rows()) {
    if (row.scope == scope) {
      names.emplace_back(row.name);
    }
  }
  const std::string near = NearestWord(name, names);
  return near.empty()
             ? Wrong(column, token, "is not an attribute; write one of {}", fmt::join(names, ", "))
             : Wrong(column, token, "is not an attribute; did you mean {}?", near);
}

/// "2.1ghz" as "freq=2.1ghz", and "1.0 priority" as "priority=1.0".
std::string WithoutLegacy(const std::string& token) {
  constexpr std::string_view kPriority = "priority";
  const bool begins_with_digit =
      !token.empty() && std::isdigit(static_cast<unsigned char>(token.front())) != 0;
  if (!begins_with_digit || token.find('=') != std::string::npos) {
    return token;
  }
  const std::string_view text = token;
  return text.ends_with(kPriority)
             ? fmt::format("priority={}", Trimmed(text.substr(0, text.size() - kPriority.size())))
             : "freq=" + token;
}

/// Reads one attribute; `token` has no blanks around it.
StatusOr<Attribute> ParseOne(std::string_view token, std::size_t column, AttributeScope scope) {
  const bool is_wish = token.ends_with('?');
  const std::string written =
      WithoutLegacy(Lower(Trimmed(token.substr(0, token.size() - (is_wish ? 1 : 0)))));
  const auto equals = written.find('=');
  const bool has_value = equals != std::string_view::npos;
  const std::string value(has_value ? Trimmed(std::string_view(written).substr(equals + 1)) : "");
  std::string name(Trimmed(std::string_view(written).substr(0, equals)));
  if (name.find('/') != std::string::npos) {
    return Attribute{.is_wish = is_wish, .text = written};
  }
  std::ranges::replace(name, '_', '-');
  const Row* const row = FindRow(name);
  if (row == nullptr) {
    return Unknown(column, token, name, scope);
  }
  if (row->scope != scope) {
    return scope == AttributeScope::kCpus
               ? Wrong(column, token,
                       "applies to the whole container; write it in container_attributes")
               : Wrong(column, token, "applies to CPUs; write it in compute_attributes");
  }
  Attribute attribute{.kind = row->kind, .is_wish = is_wish, .text = name};
  if (row->form.read == nullptr) {
    return has_value ? Wrong(column, token, "takes no value; write {}", name)
                     : StatusOr<Attribute>(attribute);
  }
  if (!has_value || !row->form.read(value, attribute)) {
    return Wrong(column, token, "has {}; write {}", has_value ? "an impossible value" : "no value",
                 row->form.example);
  }
  return attribute;
}

/// OK if `attribute` is compatible with the attributes before it on its line.
Status CheckWith(const std::vector<Attribute>& before, const Attribute& attribute,
                 std::string_view token, std::size_t column) {
  const auto name_of = [](const Attribute& of) { return of.text.substr(0, of.text.find('=')); };
  const Row* const row = FindRow(name_of(attribute));
  for (const Attribute& other : before) {
    if (name_of(other) == name_of(attribute)) {
      return Wrong(column, token, "is listed twice; write it once");
    }
    const Row* const other_row = FindRow(name_of(other));
    if (row != nullptr && other_row != nullptr && !row->excludes.empty() &&
        row->excludes == other_row->excludes) {
      return Wrong(column, token, "excludes '{}'; write one of {}", other.text, row->excludes);
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<Attribute>> ParseAttributes(std::string_view line, AttributeScope scope) {
  std::vector<Attribute> attributes;
  std::size_t begin = 0;
  while (begin <= line.size()) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    const std::string_view token = Trimmed(line.substr(begin, end - begin));
    if (token.empty()) {
      return Wrong(begin + 1, token, "is not an attribute; write an attribute between commas");
    }
    const std::size_t column = static_cast<std::size_t>(token.data() - line.data()) + 1;
    QRM_ASSIGN_OR_RETURN(Attribute attribute, ParseOne(token, column, scope));
    QRM_RETURN_IF_ERROR(CheckWith(attributes, attribute, token, column));
    attributes.push_back(std::move(attribute));
    begin = end + 1;
  }
  return attributes;
}

std::string ToString(const std::vector<Attribute>& attributes) {
  std::vector<std::string> words;
  words.reserve(attributes.size());
  for (const Attribute& attribute : attributes) {
    words.push_back(attribute.text + (attribute.is_wish ? "?" : ""));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace qrm::cci
