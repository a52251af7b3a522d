// The steps of a run of the model test; a step means the same at any position.
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

/// `word` decides all random parts of the step, so that removing a step of a run does not change
/// the others.
struct Step {
  StepKind kind = StepKind::kAdmit;
  uint32_t word = 0;
};

std::string_view ToString(StepKind kind);
/// "admit:17"
std::string ToString(const Step& step);
/// "admit:17,remove:3". Errors: kInvalidArgument with the part that cannot be read.
StatusOr<std::vector<Step>> ParseSteps(std::string_view text);
/// "kill,import". Errors: likewise.
StatusOr<std::set<StepKind>> ParseKinds(std::string_view text);

/// The next step of a run, of a kind that is not in `without`.
Step DrawStep(std::mt19937& random, const std::set<StepKind>& without);

}  // namespace qrm::test
