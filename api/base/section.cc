// Reads typed values from YAML mappings.
#include "api/base/section.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/number.h"

namespace qrm::config {
namespace {

/// Values and keys that a cause names are foreign where the text comes from a pod or a node.
constexpr std::size_t kMostCauseBytes = 600;
constexpr uint64_t kLargestNumber = uint64_t{1} << 53;  // beyond it a double loses whole numbers

struct Suffix {
  std::string_view name;
  double factor;
};
constexpr Suffix kSuffixes[] = {
    {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}, {"Ti", 1099511627776.0},
    {"k", 1e3},     {"M", 1e6},        {"G", 1e9},           {"T", 1e12},
    {"", 1.0},
};

std::string Is(std::string_view value, std::string_view wrong) {
  return fmt::format("is '{}', {}", value, wrong);
}

/// OK when no mapping has a key twice, of which YAML takes one without a word.
Status CheckKeysDiffer(const YAML::Node& node, const std::string& file) {
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const YAML::Node& value = node.IsMap() ? entry.second : entry;
    if (node.IsMap() && entry.first.IsScalar() && !seen.insert(entry.first.Scalar()).second) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot read {}:{}: {} occurs twice; keep one of them", file,
                    entry.first.Mark().line + 1, Quoted(entry.first.Scalar()));
    }
    if (value.IsMap() || value.IsSequence()) {
      QRM_RETURN_IF_ERROR(CheckKeysDiffer(value, file));
    }
  }
  return OkStatus();
}

/// A copy without aliases, which readers of the copy in the API server reject.
YAML::Node WrittenOut(const YAML::Node& node) {
  if (!node.IsMap() && !node.IsSequence()) {
    return YAML::Clone(node);
  }
  YAML::Node copy(node.Type());
  for (const auto& entry : node) {
    if (node.IsMap()) {
      copy.force_insert(WrittenOut(entry.first), WrittenOut(entry.second));
    } else {
      copy.push_back(WrittenOut(entry));
    }
  }
  return copy;
}

}  // namespace

StatusOr<uint64_t> ParseBytes(std::string_view text) {
  for (const Suffix& suffix : kSuffixes) {
    if (!text.ends_with(suffix.name)) {
      continue;
    }
    const std::optional<double> number =
        ParseNumber<double>(text.substr(0, text.size() - suffix.name.size()));
    if (number && *number >= 0 && *number * suffix.factor <= static_cast<double>(kLargestNumber)) {
      return static_cast<uint64_t>(*number * suffix.factor);
    }
  }
  return Errorf(StatusCode::kInvalidArgument,
                "cannot read size '{}': no number with a known unit; write bytes or a number with "
                "Ki, Mi, Gi, Ti, k, M, G or T",
                text);
}

Section::Section(const YAML::Node& node, std::string file, std::string path)
    : node_(std::make_shared<const YAML::Node>(node)),
      file_(std::move(file)),
      path_(std::move(path)) {}

StatusOr<Section> Section::Load(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) {
    return Errorf(StatusCode::kNotFound,
                  "cannot read {}: it is a directory; name an existing YAML file", path);
  }
  std::ifstream stream(path);
  if (!stream.is_open()) {
    return Errorf(StatusCode::kNotFound, "cannot read {}: {}; name an existing YAML file", path,
                  errno != 0 ? std::strerror(errno) : "no such file");
  }
  std::string text(YamlBounds().bytes + 1, '\0');  // one more than is accepted
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return Parse(text, path);
}

StatusOr<Section> Section::Parse(const std::string& text, const std::string& file,
                                 const YamlBounds& bounds) {
  QRM_ASSIGN_OR_RETURN(const YAML::Node root, ParseYaml(text, file, bounds));
  QRM_RETURN_IF_ERROR(CheckKeysDiffer(root, file));
  return FromNode(root, file, "");
}

StatusOr<Section> Section::FromNode(const YAML::Node& node, std::string file, std::string path) {
  if (!node.IsDefined() || node.IsNull()) {
    return Section(YAML::Node(YAML::NodeType::Map), std::move(file), std::move(path));
  }
  if (!node.IsMap()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot read {}:{}: {} is not a mapping; write `key: value` lines", file,
                  node.Mark().line + 1, path.empty() ? "the file" : Quoted(path));
  }
  return Section(node, std::move(file), std::move(path));
}

std::string Section::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

std::optional<YAML::Node> Section::Find(std::string_view key) const {
  for (const auto& entry : *node_) {
    if (entry.first.IsScalar() && entry.first.Scalar() == key) {
      return entry.second;
    }
  }
  return std::nullopt;
}

bool Section::Has(std::string_view key) const {
  return Find(key).has_value();
}

bool Section::IsScalar(std::string_view key) const {
  const std::optional<YAML::Node> node = Find(key);
  return node && node->IsScalar();
}

Status Section::Error(std::string_view key, std::string_view cause, std::string_view remedy) const {
  int line = node_->Mark().line + 1;
  for (const auto& entry : *node_) {
    if (entry.first.IsScalar() && entry.first.Scalar() == key) {
      line = entry.first.Mark().line + 1;
    }
  }
  return Errorf(StatusCode::kInvalidArgument, "cannot read {}:{}: {} {}; {}", file_, line,
                Quoted(PathOf(key)), Escaped(Cut(cause, kMostCauseBytes)), Escaped(remedy));
}

std::string Section::Place() const {
  return fmt::format("{}:{}", file_, node_->Mark().line + 1);
}

std::vector<std::string> Section::Keys() const {
  std::vector<std::string> keys;
  for (const auto& entry : *node_) {
    keys.push_back(entry.first.IsScalar() ? entry.first.Scalar() : "(a key that is not a word)");
  }
  return keys;
}

std::string Section::OneLine() const {
  YAML::Node flow = WrittenOut(*node_);
  flow.SetStyle(YAML::EmitterStyle::Flow);
  return YAML::Dump(flow);
}

Section Section::Without(std::initializer_list<std::string_view> keys) const {
  Section copy = *this;
  copy.read_elsewhere_.insert(copy.read_elsewhere_.end(), keys.begin(), keys.end());
  return copy;
}

Status Section::AllowKeys(std::vector<std::string_view> known) const {
  known.insert(known.end(), read_elsewhere_.begin(), read_elsewhere_.end());
  for (const auto& entry : *node_) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      const std::string value = entry.second.IsScalar() ? entry.second.Scalar() : "...";
      return Error(key, fmt::format("(with value '{}') is not a known key", value),
                   fmt::format("the keys here are {}", fmt::join(known, ", ")));
    }
  }
  return OkStatus();
}

StatusOr<std::optional<std::string>> Section::Scalar(std::string_view key) const {
  const std::optional<YAML::Node> node = Find(key);
  if (!node || node->IsNull()) {
    return std::optional<std::string>();
  }
  if (!node->IsScalar()) {
    return Error(key, "is not a plain value", "write one value after the colon");
  }
  return std::optional<std::string>(node->Scalar());
}

StatusOr<std::string> Section::Text(std::string_view key, std::string fallback) const {
  QRM_ASSIGN_OR_RETURN(const std::optional<std::string> text, Scalar(key));
  return text.value_or(std::move(fallback));
}

StatusOr<bool> Section::Flag(std::string_view key, bool fallback) const {
  QRM_ASSIGN_OR_RETURN(const std::optional<std::string> word, Scalar(key));
  if (!word || *word == "true" || *word == "false") {
    return word ? *word == "true" : fallback;
  }
  return Error(key, Is(*word, "which is not a truth value"), "write true or false");
}

StatusOr<std::size_t> Section::Choice(std::string_view key, std::size_t fallback,
                                      std::initializer_list<std::string_view> words) const {
  QRM_ASSIGN_OR_RETURN(const std::optional<std::string> word, Scalar(key));
  if (!word) {
    return fallback;
  }
  const auto found = std::find(words.begin(), words.end(), *word);
  if (found == words.end()) {
    return Error(key, Is(*word, "which is none of its values"),
                 fmt::format("write {}", fmt::join(words, " or ")));
  }
  return static_cast<std::size_t>(found - words.begin());
}

StatusOr<uint64_t> Section::Number(std::string_view key, uint64_t fallback) const {
  QRM_ASSIGN_OR_RETURN(const std::optional<std::string> text, Scalar(key));
  if (!text) {
    return fallback;
  }
  const auto number = ParseNumber<uint64_t>(*text);
  if (!number.has_value() || *number > kLargestNumber) {
    return Error(key, Is(*text, "which is not a whole number"), "write one from 0 to 2^53");
  }
  return *number;
}

StatusOr<uint64_t> Section::Bytes(std::string_view key, uint64_t fallback) const {
  QRM_ASSIGN_OR_RETURN(const std::optional<std::string> text, Scalar(key));
  if (!text) {
    return fallback;
  }
  const StatusOr<uint64_t> bytes = ParseBytes(*text);
  if (!bytes.ok()) {
    return Error(key, Is(*text, "which is not a size"),
                 "write bytes, or a size such as 512Mi or 1G");
  }
  return *bytes;
}

Status Section::NotParsed(std::string_view key, const std::string& text, std::string_view what,
                          std::string_view example) const {
  return Error(key, Is(text, fmt::format("which is not a {}", what)),
               fmt::format("write one such as {}", example));
}

StatusOr<std::vector<std::string>> Section::Words(std::string_view key) const {
  std::vector<std::string> words;
  const std::optional<YAML::Node> node = Find(key);
  if (!node || node->IsNull()) {
    return words;
  }
  if (!node->IsSequence()) {
    return Error(key, "is not a list", "write one such as [a, b]");
  }
  for (const auto& item : *node) {
    if (!item.IsScalar()) {
      return Error(key, "has an element that is not a word", "write a list such as [a, b]");
    }
    words.push_back(item.Scalar());
  }
  return words;
}

StatusOr<std::vector<std::string>> Section::WordOrWords(std::string_view key) const {
  if (!IsScalar(key)) {
    return Words(key);
  }
  QRM_ASSIGN_OR_RETURN(std::string word, Text(key, ""));
  return std::vector<std::string>{std::move(word)};
}

StatusOr<Section> Section::Child(std::string_view key) const {
  return FromNode(Find(key).value_or(YAML::Node()), file_, PathOf(key));
}

StatusOr<std::vector<std::pair<std::string, Section>>> Section::Children(
    std::string_view key) const {
  QRM_ASSIGN_OR_RETURN(const Section parent, Child(key));
  std::vector<std::pair<std::string, Section>> children;
  for (const std::string& name : parent.Keys()) {
    if (Escaped(name) != name) {  // messages name it
      return Error(
          key,
          fmt::format("has the name '{}' with characters that no terminal shows", Quoted(name)),
          "choose another name");
    }
    QRM_ASSIGN_OR_RETURN(Section child, parent.Child(name));
    children.emplace_back(name, std::move(child));
  }
  return children;
}

StatusOr<std::vector<Section>> Section::Items(std::string_view key) const {
  std::vector<Section> items;
  const std::optional<YAML::Node> node = Find(key);
  if (!node || node->IsNull()) {
    return items;
  }
  if (!node->IsSequence()) {
    return Error(key, "is not a list", "start each entry with a dash");
  }
  for (const auto& item : *node) {
    QRM_ASSIGN_OR_RETURN(Section section,
                         FromNode(item, file_, fmt::format("{}[{}]", PathOf(key), items.size())));
    items.push_back(std::move(section));
  }
  return items;
}

}  // namespace qrm::config
