// What a run of the model test is made of: steps that mean the same wherever they stand.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"

namespace qrm::test {

enum class StepKind {
  kAdmit,
  kRemove,
  kFinish,
  kRestart,
  kRecreate,
  kResize,
  kTellLate,
  kRuntimeRestarted,
  kLeftOut,
  kObserver,
  kWrittenAgain,
  kKill,
  kKillSoon,
  kDieAtWrite,
  kReadOnly,
  kUpdatesFail,
  kPluginLost,
  kPluginEmptied,
  kPluginReplaced,
  kPluginMoved,
  kPluginOff,
  kImport,
  kCpus,
  kDrain,
};
inline constexpr int kStepKinds = 24;

/// `word` decides everything about it that is drawn, so that a step of a run can be left out and
/// the others stay what they were.
struct Step {
  StepKind kind = StepKind::kAdmit;
  uint32_t word = 0;
};

std::string_view ToString(StepKind kind);
/// "admit:17"
std::string ToString(const Step& step);
/// "admit:17,remove:3". Errors: kInvalidArgument with what cannot be read.
StatusOr<std::vector<Step>> ParseSteps(std::string_view text);
/// "kill,import". Errors: likewise.
StatusOr<std::set<StepKind>> ParseKinds(std::string_view text);

/// The next step of a run, of a kind that is not in `without`.
Step DrawStep(std::mt19937& random, const std::set<StepKind>& without);

}  // namespace qrm::test
