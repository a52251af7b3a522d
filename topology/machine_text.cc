// Runs of equal and of counting numbers keep the text short: machines repeat themselves.
#include "topology/machine_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/number.h"

namespace qrm {
namespace {

using Numbers = std::vector<uint64_t>;

constexpr char kCpus[] = "cpus";
constexpr char kCores[] = "cores";
constexpr char kL3s[] = "l3s";
constexpr char kWithoutL3[] = "without-l3";
constexpr char kPackages[] = "packages";
constexpr char kKinds[] = "kinds";
constexpr char kCpuNodes[] = "cpu-nodes";
constexpr char kIsolated[] = "isolated";
constexpr char kNodes[] = "nodes";
constexpr char kNodePackages[] = "node-packages";
constexpr char kMemory[] = "memory";
constexpr char kMemoryKinds[] = "memory-kinds";
constexpr char kHomes[] = "homes-";  // and the number of a node without CPUs
constexpr char kHugepages[] = "hugepages-";
constexpr char kDistances[] = "distances";
constexpr char kTotal[] = "total";

/// The kernel has no more. Source: CONFIG_NODES_SHIFT, at most 10.
constexpr std::size_t kMostNodes = 1024;
/// What a uint64_t has for ids and for bytes without being cut anywhere.
constexpr uint64_t kMostBytes = uint64_t{1} << 60;

/// How many numbers from `begin` on are the one before plus `step`, the first included.
std::size_t RunAt(const Numbers& numbers, std::size_t begin, uint64_t step) {
  std::size_t end = begin + 1;
  while (end < numbers.size() && numbers[end] == numbers[end - 1] + step) {
    ++end;
  }
  return end - begin;
}

std::string RunsText(const Numbers& numbers) {
  constexpr std::size_t kShortestCount = 3;  // "0-1" is not shorter than "0,1"
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    const std::size_t equal = RunAt(numbers, i, 0);
    const std::size_t counting = RunAt(numbers, i, 1);
    text += text.empty() ? "" : ",";
    if (counting >= kShortestCount) {
      text += fmt::format("{}-{}", numbers[i], numbers[i + counting - 1]);
      i += counting;
    } else {
      text += equal == 1 ? std::to_string(numbers[i]) : fmt::format("{}*{}", numbers[i], equal);
      i += equal;
    }
  }
  return text;
}

/// Exactly `count` numbers, none above `most`; absent for anything else.
std::optional<Numbers> ParseRuns(std::string_view text, std::size_t count, uint64_t most) {
  Numbers numbers;
  while (!text.empty()) {
    const std::string_view run = text.substr(0, text.find(','));
    text.remove_prefix(run.size() == text.size() ? run.size() : run.size() + 1);
    const std::size_t sign = run.find_first_of("*-");
    const auto first = ParseNumber<uint64_t>(run.substr(0, sign));
    const auto second = sign == std::string_view::npos
                            ? std::optional<uint64_t>(1)
                            : ParseNumber<uint64_t>(run.substr(sign + 1));
    const bool counts = sign != std::string_view::npos && run[sign] == '-';
    if (!first.has_value() || !second.has_value() || *first > most || (counts && *second > most) ||
        (counts && *second < *first)) {
      return std::nullopt;
    }
    const uint64_t length = counts ? *second - *first + 1 : *second;
    if (length > count - numbers.size()) {
      return std::nullopt;
    }
    for (uint64_t i = 0; i < length; ++i) {
      numbers.push_back(*first + (counts ? i : 0));
    }
  }
  return numbers.size() == count ? std::optional(std::move(numbers)) : std::nullopt;
}

Numbers NumbersOf(const std::vector<Cpu>& cpus, int Cpu::* member) {
  Numbers numbers;
  numbers.reserve(cpus.size());
  for (const Cpu& cpu : cpus) {
    numbers.push_back(static_cast<uint64_t>(cpu.*member));
  }
  return numbers;
}

Numbers NumbersOf(const std::vector<NumaNode>& nodes,
                  const std::function<uint64_t(const NumaNode&)>& number) {
  Numbers numbers;
  numbers.reserve(nodes.size());
  for (const NumaNode& node : nodes) {
    numbers.push_back(number(node));
  }
  return numbers;
}

std::string CpusText(const Machine& machine) {
  CpuSet without_l3;
  for (const Cpu& cpu : machine.cpus()) {
    if (!cpu.has_l3) {
      without_l3.Add(cpu.id);
    }
  }
  const std::vector<Cpu>& cpus = machine.cpus();
  std::string text = fmt::format(
      "{}={} {}={} {}={} {}={} {}={}", kCpus, ToString(machine.cpu_set()), kCores,
      RunsText(NumbersOf(cpus, &Cpu::core)), kL3s, RunsText(NumbersOf(cpus, &Cpu::l3)), kPackages,
      RunsText(NumbersOf(cpus, &Cpu::package)), kCpuNodes, RunsText(NumbersOf(cpus, &Cpu::node)));
  if (!without_l3.Empty()) {
    text += fmt::format(" {}={}", kWithoutL3, ToString(without_l3));
  }
  if (machine.highest_core_kind() > 0) {
    text += fmt::format(" {}={}", kKinds, RunsText(NumbersOf(cpus, &Cpu::core_kind)));
  }
  if (const CpuSet& isolated = machine.parts().isolated; !isolated.Empty()) {
    text += fmt::format(" {}={}", kIsolated, ToString(isolated));
  }
  return text;
}

std::string NodesText(const Machine& machine) {
  const std::vector<NumaNode>& nodes = machine.nodes();
  const auto id = [](const NumaNode& node) { return static_cast<uint64_t>(node.id); };
  const auto package = [](const NumaNode& node) { return static_cast<uint64_t>(node.package); };
  const auto memory = [](const NumaNode& node) { return node.memory_bytes; };
  std::string text =
      fmt::format("{}={} {}={} {}={}", kNodes, RunsText(NumbersOf(nodes, id)), kNodePackages,
                  RunsText(NumbersOf(nodes, package)), kMemory, RunsText(NumbersOf(nodes, memory)));
  if (std::ranges::any_of(
          nodes, [](const NumaNode& node) { return node.memory_kind != MemoryKind::kDram; })) {
    const auto kind = [](const NumaNode& node) { return static_cast<uint64_t>(node.memory_kind); };
    text += fmt::format(" {}={}", kMemoryKinds, RunsText(NumbersOf(nodes, kind)));
  }
  std::set<uint64_t> sizes;
  for (const NumaNode& node : nodes) {
    text += node.cpus.Empty() ? fmt::format(" {}{}={}", kHomes, node.id, ToString(node.homes)) : "";
    for (const auto& [size, pages] : node.hugepages) {
      sizes.insert(size);
    }
  }
  for (const uint64_t size : sizes) {
    const auto pages = [size](const NumaNode& node) {
      const auto found = node.hugepages.find(size);
      return found == node.hugepages.end() ? 0 : found->second;
    };
    text += fmt::format(" {}{}={}", kHugepages, size, RunsText(NumbersOf(nodes, pages)));
  }
  return text;
}

/// The words of a text by their names, and how they are read.
class Words {
 public:
  /// Errors: kInvalidArgument for an unknown word, or a word that occurs twice.
  static StatusOr<Words> Split(std::string_view text) {
    Words words;
    while (!text.empty()) {
      const std::string_view word = text.substr(0, text.find(' '));
      text.remove_prefix(word.size() == text.size() ? word.size() : word.size() + 1);
      const std::size_t sign = word.find('=');
      if (sign == std::string_view::npos ||
          !words.values_.emplace(word.substr(0, sign), word.substr(sign + 1)).second) {
        return Unreadable(word);
      }
    }
    return words;
  }

  bool Has(const std::string& name) const { return values_.contains(name); }
  const std::map<std::string, std::string>& values() const { return values_; }

  StatusOr<CpuSet> List(const std::string& name) const {
    const std::string text = TextOf(name);
    StatusOr<CpuSet> cpus = CpuSet::Parse(text);
    return cpus.ok() ? cpus : Unreadable(fmt::format("{}={}", name, text));
  }
  /// Errors: kInvalidArgument unless there are `count`, none above `most`.
  StatusOr<Numbers> Get(const std::string& name, std::size_t count, uint64_t most) const {
    const std::string text = TextOf(name);
    std::optional<Numbers> numbers = ParseRuns(text, count, most);
    if (!numbers.has_value()) {
      return Unreadable(fmt::format("{}={}", name, text));
    }
    return *std::move(numbers);
  }

  static Status Unreadable(std::string_view word) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot read the machine: '{}' is not what describes one; have its node publish "
                  "it again",
                  Quoted(word));
  }

 private:
  /// Empty for a word that is not there.
  std::string TextOf(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? std::string() : found->second;
  }

  std::map<std::string, std::string> values_;
};

Status ReadCpus(const Words& words, MachineParts& parts) {
  constexpr uint64_t kMost = CpuSet::kMaxIds - 1;
  QRM_ASSIGN_OR_RETURN(const CpuSet cpus, words.List(kCpus));
  QRM_ASSIGN_OR_RETURN(const CpuSet without_l3, words.List(kWithoutL3));
  QRM_ASSIGN_OR_RETURN(parts.isolated, words.List(kIsolated));
  for (const int id : cpus) {
    parts.cpus.push_back({.id = id, .has_l3 = !without_l3.Has(id)});
  }
  const std::pair<const char*, int Cpu::*> members[] = {{kCores, &Cpu::core},
                                                        {kL3s, &Cpu::l3},
                                                        {kPackages, &Cpu::package},
                                                        {kCpuNodes, &Cpu::node},
                                                        {kKinds, &Cpu::core_kind}};
  for (const auto& [name, member] : members) {
    if (name == std::string_view(kKinds) && !words.Has(kKinds)) {
      continue;
    }
    QRM_ASSIGN_OR_RETURN(const Numbers numbers, words.Get(name, parts.cpus.size(), kMost));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      parts.cpus[i].*member = static_cast<int>(numbers[i]);
    }
  }
  return OkStatus();
}

Status ReadNodes(const Words& words, MachineParts& parts) {
  constexpr uint64_t kMost = NumaMask::kMaxIds - 1;
  QRM_ASSIGN_OR_RETURN(const CpuSet ids, words.List(kNodes));  // a list as that of CPUs
  if (static_cast<std::size_t>(ids.Count()) > kMostNodes) {
    return Words::Unreadable(kNodes);
  }
  const auto count = static_cast<std::size_t>(ids.Count());
  QRM_ASSIGN_OR_RETURN(const Numbers packages, words.Get(kNodePackages, count, kMost));
  QRM_ASSIGN_OR_RETURN(const Numbers memory, words.Get(kMemory, count, kMostBytes));
  for (const int id : ids) {
    const std::size_t i = parts.nodes.size();
    parts.nodes.push_back(
        {.id = id, .package = static_cast<int>(packages[i]), .memory_bytes = memory[i]});
    QRM_ASSIGN_OR_RETURN(const CpuSet homes, words.List(fmt::format("{}{}", kHomes, id)));
    for (const int home : homes) {
      parts.nodes[i].homes.Add(home);
    }
  }
  if (words.Has(kMemoryKinds)) {
    constexpr auto kLastKind = static_cast<uint64_t>(MemoryKind::kCpuLess);
    QRM_ASSIGN_OR_RETURN(const Numbers kinds, words.Get(kMemoryKinds, count, kLastKind));
    for (std::size_t i = 0; i < count; ++i) {
      parts.nodes[i].memory_kind = static_cast<MemoryKind>(kinds[i]);
    }
  }
  for (const auto& [name, text] : words.values()) {
    if (!name.starts_with(kHugepages)) {
      continue;
    }
    const auto size = ParseNumber<uint64_t>(std::string_view(name).substr(sizeof(kHugepages) - 1));
    if (!size.has_value() || *size == 0 || *size > kMostBytes) {
      return Words::Unreadable(name);
    }
    QRM_ASSIGN_OR_RETURN(const Numbers pages, words.Get(name, count, kMostBytes / *size));
    for (std::size_t i = 0; i < count; ++i) {
      parts.nodes[i].hugepages[*size] = pages[i];
    }
  }
  return OkStatus();
}

Status ReadDistances(const Words& words, MachineParts& parts) {
  if (words.Has(kDistances)) {
    constexpr uint64_t kMost = 1 << 16;
    const std::size_t count = parts.nodes.size();
    QRM_ASSIGN_OR_RETURN(const Numbers numbers, words.Get(kDistances, count * count, kMost));
    for (auto row = numbers.begin(); row != numbers.end();
         row += static_cast<std::ptrdiff_t>(count)) {
      parts.distances.emplace_back(row, row + static_cast<std::ptrdiff_t>(count));
    }
  }
  if (words.Has(kTotal)) {
    QRM_ASSIGN_OR_RETURN(const Numbers total, words.Get(kTotal, 1, kMostBytes));
    parts.memory_bytes = total.front();
  }
  return OkStatus();
}

}  // namespace

std::string MachineText(const Machine& machine) {
  std::string text = CpusText(machine) + " " + NodesText(machine);
  if (const auto& rows = machine.parts().distances; !rows.empty()) {
    Numbers distances;
    for (const auto& row : rows) {
      distances.insert(distances.end(), row.begin(), row.end());
    }
    text += fmt::format(" {}={}", kDistances, RunsText(distances));
  }
  if (machine.parts().memory_bytes > 0) {
    text += fmt::format(" {}={}", kTotal, machine.parts().memory_bytes);
  }
  return text;
}

StatusOr<Machine> ParseMachineText(std::string_view text) {
  QRM_ASSIGN_OR_RETURN(const Words words, Words::Split(text));
  MachineParts parts;
  QRM_RETURN_IF_ERROR(ReadCpus(words, parts));
  QRM_RETURN_IF_ERROR(ReadNodes(words, parts));
  QRM_RETURN_IF_ERROR(ReadDistances(words, parts));
  std::set<int> nodes;
  for (const NumaNode& node : parts.nodes) {
    nodes.insert(node.id);
  }
  for (const Cpu& cpu : parts.cpus) {
    if (!nodes.contains(cpu.node)) {
      return Words::Unreadable(fmt::format("{} of CPU {}", kCpuNodes, cpu.id));
    }
  }
  for (const NumaNode& node : parts.nodes) {
    for (const int home : node.homes) {
      if (!nodes.contains(home)) {
        return Words::Unreadable(fmt::format("{}{}", kHomes, node.id));
      }
    }
  }
  return Machine(std::move(parts));
}

}  // namespace qrm
