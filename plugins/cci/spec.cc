// Reads specifications from pods, which may be hostile, and from the operator's policies.
#include "plugins/cci/spec.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/number.h"
#include "api/base/text.h"

namespace qrm::cci {
namespace {

constexpr std::size_t kMostLines = 1024;
constexpr std::size_t kMostBytes = 16 << 10;
constexpr int kMostCpus = 8192;
constexpr char kDefaultPolicy[] = "default";
constexpr std::string_view kCpu = "cpu:";
constexpr char kContainer[] = "container_attributes";

/// The lines of `text`, without blank lines at its end.
std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.emplace_back(Trimmed(line));
  }
  while (!lines.empty() && lines.back().empty()) {
    lines.pop_back();
  }
  return lines;
}

/// The number in "4", "*4", or 1 for "*"; nothing for any other text.
std::optional<int> CountOf(std::string_view line) {
  const std::string_view number = Trimmed(line.substr(line.starts_with('*') ? 1 : 0));
  const bool is_one = number.empty() && !line.empty();
  const auto count = is_one ? std::optional<int>(1) : ParseNumber<int>(number);
  return count.has_value() && *count >= 1 && *count <= kMostCpus ? count : std::nullopt;
}

StatusOr<SpecLine> ParseCores(std::string_view line) {
  if (const std::optional<int> any = CountOf(line); any.has_value()) {
    return SpecLine{.any = *any, .is_bare = !line.starts_with('*')};
  }
  const bool has_prefix = line.starts_with(kCpu);
  const StatusOr<CpuSet> named = CpuSet::Parse(Trimmed(line.substr(has_prefix ? kCpu.size() : 0)));
  const bool is_list = has_prefix || line.find_first_of(",-") != std::string_view::npos;
  if (!is_list || !named.ok() || named->Empty() || named->Last() >= kMostCpus) {
    return Errorf(StatusCode::kInvalidArgument,
                  "column 1: '{}' is neither a number of CPUs nor a set of CPUs; write 4 for any "
                  "four, cpu:4 for the CPU with this number, or a list such as cpu:6-8",
                  Quoted(line));
  }
  return SpecLine{.named = *named};
}

std::string LineName(const char* key, std::size_t index) {
  return fmt::format("{}, line {}", key, index + 1);
}

/// "exclusive", the default for a line without attributes.
std::vector<Attribute> Unsaid() {
  return {{.kind = AttributeKind::kExclusive, .text = "exclusive"}};
}

StatusOr<std::vector<std::string>> ReadLines(const config::Section& section, const char* key) {
  if (!section.IsScalar(key)) {
    return section.Words(key);
  }
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, ""));
  return LinesOf(text);
}

StatusOr<std::vector<Attribute>> ReadContainer(const config::Section& section) {
  if (!section.Has(kContainer)) {
    return std::vector<Attribute>();
  }
  QRM_ASSIGN_OR_RETURN(const std::vector<std::string> lines, ReadLines(section, kContainer));
  if (lines.size() != 1) {
    return Errorf(StatusCode::kInvalidArgument,
                  "{} has {} lines; write one line, separated by commas", kContainer, lines.size());
  }
  auto attributes = ParseAttributes(lines.front(), AttributeScope::kContainer);
  QRM_RETURN_IF_ERROR(Annotate(attributes.status(), kContainer));
  return attributes;
}

std::string NamesOf(const Policies& policies) {
  std::vector<std::string> names;
  for (const auto& [name, spec] : policies) {
    names.push_back(name);
  }
  return names.empty() ? "none defined" : fmt::format("{}", fmt::join(names, ", "));
}

/// `spec` for a container that requests `cpus`.
ComputeSpec Counted(ComputeSpec spec, int cpus) {
  for (SpecLine& line : spec.lines) {
    line.any = line.Count() == 0 ? cpus : line.any;
  }
  return spec;
}

}  // namespace

StatusOr<SpecLines> ParseSpec(const std::vector<std::string>& cores,
                              const std::vector<std::string>& attributes) {
  const auto wrong = [](const std::string& text) {
    return Status(StatusCode::kInvalidArgument, text);
  };
  if (cores.size() > kMostLines) {
    return wrong(fmt::format("cores has {} lines; write 1 to {}", cores.size(), kMostLines));
  }
  if (attributes.size() > 1 && attributes.size() != cores.size()) {
    return wrong(fmt::format(
        "compute_attributes has {} lines, but cores has {}; write as many, or one for all",
        attributes.size(), cores.size()));
  }
  SpecLines spec;
  CpuSet named;
  for (std::size_t i = 0; i < std::max<std::size_t>(cores.size(), 1); ++i) {
    StatusOr<SpecLine> line = cores.empty() ? SpecLine() : ParseCores(Trimmed(cores[i]));
    QRM_RETURN_IF_ERROR(Annotate(line.status(), LineName("cores", i)));
    if (named.Intersects(line->named)) {
      return wrong(fmt::format("{}: CPUs {} are also in another line; list each CPU once",
                               LineName("cores", i), ToString(named & line->named)));
    }
    named |= line->named;
    line->attributes = Unsaid();
    if (!attributes.empty()) {
      const std::size_t of = attributes.size() == 1 ? 0 : i;
      auto parsed = ParseAttributes(attributes[of]);
      QRM_RETURN_IF_ERROR(Annotate(parsed.status(), LineName("compute_attributes", of)));
      line->attributes = *std::move(parsed);
    }
    spec.push_back(*std::move(line));
  }
  return spec;
}

StatusOr<ComputeSpec> ReadSpec(const config::Section& section) {
  QRM_RETURN_IF_ERROR(section.AllowKeys(
      {"cores", "compute_attributes", "attributes", "cpu attributes", kContainer}));
  QRM_ASSIGN_OR_RETURN(const std::vector<std::string> cores, ReadLines(section, "cores"));
  std::vector<std::string> attributes;
  for (const char* key : {"compute_attributes", "attributes", "cpu attributes"}) {
    if (section.Has(key) && !attributes.empty()) {
      return section.Error(key, "is another name of a key that is also set", "keep one of them");
    }
    if (section.Has(key)) {
      QRM_ASSIGN_OR_RETURN(attributes, ReadLines(section, key));
    }
  }
  StatusOr<SpecLines> lines = ParseSpec(cores, attributes);
  QRM_RETURN_IF_ERROR(Annotate(lines.status(), "cannot read " + section.file()));
  StatusOr<std::vector<Attribute>> container = ReadContainer(section);
  QRM_RETURN_IF_ERROR(Annotate(container.status(), "cannot read " + section.file()));
  return ComputeSpec{.lines = *std::move(lines), .container = *std::move(container)};
}

StatusOr<ComputeSpec> ReadPodSpec(const std::string& text, const Policies& policies, int cpus) {
  if (text.size() > kMostBytes) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot read the spec: it has {} bytes, the maximum is {}", text.size(),
                  kMostBytes);
  }
  const std::string word(Trimmed(text));
  const auto policy = policies.find(word.empty() ? kDefaultPolicy : word);
  if (policy != policies.end()) {
    return Counted(policy->second, cpus);
  }
  if (word.empty()) {
    return ComputeSpec{.lines = {{.any = cpus, .attributes = Unsaid()}}, .container = {}};
  }
  const StatusOr<YAML::Node> document = config::ParseYaml(word, "the spec", config::kForeignYaml);
  if (!document.ok()) {
    return Errorf(StatusCode::kInvalidArgument, "{}; quote a star: {{cores: \"*4\"}}",
                  MessageOf(document.status()));
  }
  if (!document->IsMap()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "'{}' is not a policy of this node ({}); name one, or write {{cores: ..., "
                  "compute_attributes: ...}}",
                  Quoted(word), NamesOf(policies));
  }
  QRM_ASSIGN_OR_RETURN(const config::Section section,
                       config::Section::Parse(word, "the spec", config::kForeignYaml));
  QRM_ASSIGN_OR_RETURN(ComputeSpec spec, ReadSpec(section));
  return Counted(std::move(spec), cpus);
}

StatusOr<Policies> ParseConfig(const config::Section& file) {
  QRM_RETURN_IF_ERROR(file.AllowKeys({"policies"}));
  Policies policies;
  QRM_ASSIGN_OR_RETURN(const auto sections, file.Children("policies"));
  QRM_ASSIGN_OR_RETURN(const config::Section names, file.Child("policies"));
  for (const auto& [name, section] : sections) {
    StatusOr<ComputeSpec> spec = ReadSpec(section);
    if (!spec.ok()) {
      return names.Error(name, "is not a specification", MessageOf(spec.status()));
    }
    policies.emplace(name, *std::move(spec));
  }
  return policies;
}

}  // namespace qrm::cci
