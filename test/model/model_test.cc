// A node's life of many random steps, checked against a model of it after each; a failure names its
// seed, and is played again with ever fewer steps.
//   test_model [--steps=N] [--seed=N] [--without=kill,import] [--replay=admit:17,kill:3]
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "test/model/player.h"
#include "test/model/shrink.h"
#include "test/model/step.h"

namespace qrm::test {
namespace {

using std::chrono::steady_clock;

constexpr int kProgressEvery = 10000;

struct Options {
  int steps = 2000;
  uint32_t seed = 1;
  std::string without;
  std::string replay;
  int shrink_seconds = 60;
};

std::vector<Step> DrawSteps(const Options& options, const std::set<StepKind>& without) {
  std::mt19937 random(options.seed);
  std::vector<Step> steps;
  steps.reserve(static_cast<std::size_t>(options.steps));
  for (int i = 0; i < options.steps; ++i) {
    steps.push_back(DrawStep(random, without));
  }
  return steps;
}

std::string Listed(const std::vector<Step>& steps) {
  std::vector<std::string> words;
  words.reserve(steps.size());
  for (const Step& step : steps) {
    words.push_back(ToString(step));
  }
  return fmt::format("{}", fmt::join(words, ","));
}

/// Plays all; `played` is the number of steps, including one that failed.
Status PlayAll(Player& player, const std::vector<Step>& steps, std::size_t& played) {
  const auto begin = steady_clock::now();
  QRM_RETURN_IF_ERROR(player.Start());
  for (const Step& step : steps) {
    ++played;
    QRM_RETURN_IF_ERROR(player.Play(step));
    if (played % kProgressEvery == 0) {
      const std::chrono::duration<double> took = steady_clock::now() - begin;
      std::cout << fmt::format("{} steps in {:.0f} s\n", played, took.count()) << std::flush;
    }
  }
  return player.Finish();
}

void Shrink(const Options& options, std::vector<Step> steps, const std::string& failure) {
  if (options.shrink_seconds == 0) {
    return;
  }
  const auto fails = [&](const std::vector<Step>& fewer) {
    Player player;
    std::size_t played = 0;
    const Status held = PlayAll(player, fewer, played);
    return !held.ok() && IsLike(failure, MessageOf(held));
  };
  const auto until = steady_clock::now() + std::chrono::seconds(options.shrink_seconds);
  const std::vector<Step> fewest = ShrinkSteps(std::move(steps), fails, until);
  std::cerr << "the same with " << fewest.size() << " steps: --replay=" << Listed(fewest) << "\n";
}

Status Run(const Options& options) {
  QRM_ASSIGN_OR_RETURN(const std::set<StepKind> without, ParseKinds(options.without));
  QRM_ASSIGN_OR_RETURN(std::vector<Step> steps, ParseSteps(options.replay));
  if (steps.empty()) {
    steps = DrawSteps(options, without);
  }
  std::size_t played = 0;
  Status held;
  {
    Player player;
    held = PlayAll(player, steps, played);
    std::cout << player.Summary() << std::flush;
    if (!held.ok()) {  // before the log, which is long: outputs of tests are cut in their middle
      std::cerr << fmt::format("after {} steps with seed {}: {}\n", played, options.seed,
                               MessageOf(held));
      const std::string holdings = player.Holdings();
      std::cerr << player.LogEnd() << player.Trace() << holdings;
    }
  }
  if (!held.ok()) {
    steps.resize(played);
    Shrink(options, std::move(steps), MessageOf(held));
  }
  return held;
}

}  // namespace
}  // namespace qrm::test

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  CLI::App app("Plays random steps on a node and checks them against a model.");
  qrm::test::Options options;
  app.add_option("--steps", options.steps, "how many");
  app.add_option("--seed", options.seed, "which");
  app.add_option("--without", options.without, "kinds of steps that are left out");
  app.add_option("--replay", options.replay, "exactly these steps");
  app.add_option("--shrink-seconds", options.shrink_seconds,
                 "how long a failure is made shorter; 0: not at all");
  CLI11_PARSE(app, argc, argv);
  const qrm::Status status = qrm::test::Run(options);
  if (!status.ok()) {
    std::cerr << "model test failed: " << qrm::MessageOf(status) << "\n";
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
