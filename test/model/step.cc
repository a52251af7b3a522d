// The kinds of steps, their names and how often they come.
#include "test/model/step.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include "api/base/errorf.h"

namespace qrm::test {
namespace {

struct Row {
  StepKind kind;
  std::string_view name;
  uint32_t weight;
};

// Steps that restart a program take a hundred times as long as the others.
constexpr std::array<Row, kStepKinds> kRows = {{
    {StepKind::kAdmit, "admit", 3800},
    {StepKind::kRemove, "remove", 2400},
    {StepKind::kFinish, "finish", 500},
    {StepKind::kRestart, "restart", 1500},
    {StepKind::kRecreate, "recreate", 400},
    {StepKind::kResize, "resize", 900},
    {StepKind::kTellLate, "tell-late", 150},
    {StepKind::kRuntimeRestarted, "runtime-restarted", 10},
    {StepKind::kLeftOut, "left-out", 3},
    {StepKind::kObserver, "observer", 5},
    {StepKind::kWrittenAgain, "written-again", 20},
    {StepKind::kKill, "kill", 6},
    {StepKind::kKillSoon, "kill-soon", 6},
    {StepKind::kDieAtWrite, "die-at-write", 5},
    {StepKind::kReadOnly, "read-only", 10},
    {StepKind::kUpdatesFail, "updates-fail", 10},
    {StepKind::kPluginLost, "plugin-lost", 6},
    {StepKind::kPluginEmptied, "plugin-emptied", 4},
    {StepKind::kPluginReplaced, "plugin-replaced", 4},
    {StepKind::kPluginMoved, "plugin-moved", 3},
    {StepKind::kPluginOff, "plugin-off", 2},
    {StepKind::kImport, "import", 3},
    {StepKind::kCpus, "cpus", 3},
    {StepKind::kDrain, "drain", 4},
}};

std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

StatusOr<StepKind> ParseKind(std::string_view name) {
  const auto* const row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& one) { return one.name == name; });
  if (row == kRows.end()) {
    std::string names;
    for (const Row& one : kRows) {
      names += fmt::format(" {}", one.name);
    }
    return Errorf(StatusCode::kInvalidArgument, "\"{}\" is not a step; write one of{}", name,
                  names);
  }
  return row->kind;
}

constexpr uint32_t SumOfWeights() {
  uint32_t sum = 0;
  for (const Row& row : kRows) {
    sum += row.weight;
  }
  return sum;
}

}  // namespace

std::string_view ToString(StepKind kind) {
  return kRows[static_cast<std::size_t>(kind)].name;
}

std::string ToString(const Step& step) {
  return fmt::format("{}:{}", ToString(step.kind), step.word);
}

StatusOr<std::vector<Step>> ParseSteps(std::string_view text) {
  std::vector<Step> steps;
  for (const std::string_view word : Split(text)) {
    const std::size_t colon = word.find(':');
    Step step;
    QRM_ASSIGN_OR_RETURN(step.kind, ParseKind(word.substr(0, colon)));
    const std::string_view number =
        colon == std::string_view::npos ? std::string_view() : word.substr(colon + 1);
    const auto [stop, error] =
        std::from_chars(number.data(), number.data() + number.size(), step.word);
    if (error != std::errc() || stop != number.data() + number.size()) {
      return Errorf(StatusCode::kInvalidArgument,
                    "\"{}\" is not a step; write one such as admit:17", word);
    }
    steps.push_back(step);
  }
  return steps;
}

StatusOr<std::set<StepKind>> ParseKinds(std::string_view text) {
  std::set<StepKind> kinds;
  for (const std::string_view word : Split(text)) {
    QRM_ASSIGN_OR_RETURN(const StepKind kind, ParseKind(word));
    kinds.insert(kind);
  }
  return kinds;
}

Step DrawStep(std::mt19937& random, const std::set<StepKind>& without) {
  constexpr uint32_t kSum = SumOfWeights();
  for (;;) {
    uint32_t place = static_cast<uint32_t>(random()) % kSum;
    const auto* row = kRows.begin();
    for (; place >= row->weight; ++row) {
      place -= row->weight;
    }
    const Step step{row->kind, static_cast<uint32_t>(random() % 1000000)};
    if (!without.contains(step.kind)) {
      return step;
    }
  }
}

}  // namespace qrm::test
