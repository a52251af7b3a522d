// How long admissions, and calls of kube-scheduler, take while a way in is attacked, beside the
// same in peace, in turns.
//   ways_in_bench [--way NAME] [--smoke]      NAME: as docs/ways-in.md lists it
#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "api/base/check.h"
#include "bench/command_line.h"
#include "bench/real_node.h"
#include "bench/target.h"
#include "test/ways_in/attacked_program.h"

namespace qrm::bench {
namespace {

constexpr double kTimesPeace = 2;
constexpr double kMoreThanPeace = 20;  // milliseconds

struct Sizes {
  std::size_t pairs = 5;      // of peace and attack
  std::size_t answers = 200;  // of each, at least
};

/// The p99 of the answers until there are enough and `over` holds. Units: milliseconds.
double P99(test::AttackedProgram& program, std::size_t answers, const std::atomic<bool>& over) {
  std::vector<double> took;
  while (took.size() < answers || !over) {
    const auto answer = program.Serve();
    Must(answer.status());
    took.push_back(Microseconds(*answer) / 1000);
  }
  return Quantile(took, 0.99);
}

/// The same, during one attack at least.
double P99UnderAttack(test::AttackedProgram& program, std::size_t answers) {
  std::atomic<bool> enough = false;
  std::atomic<bool> attacked = false;
  std::thread attacker([&] {
    do {
      Must(program.Attack());
      attacked = true;
    } while (!enough);
  });
  const double p99 = P99(program, answers, attacked);
  enough = true;
  attacker.join();
  return p99;
}

bool JudgeWay(const test::WayIn& way, const Sizes& sizes) {
  const auto program = way.attack(BinDir());
  Must(program->Start());
  std::vector<double> peace;
  std::vector<double> attacked;
  for (std::size_t pair = 0; pair < sizes.pairs; ++pair) {
    peace.push_back(P99(*program, sizes.answers, true));
    attacked.push_back(P99UnderAttack(*program, sizes.answers));
  }
  QRM_CHECK(program->Runs());
  fmt::print("{} of {}: p99 in peace {:.2f} ms, under attack {:.2f} ms\n", way.name, way.program,
             Median(peace), Median(attacked));
  return Judge(fmt::format("answers of {} while {} is attacked, p99", way.program, way.name),
               kTimesPeace * Median(peace) + kMoreThanPeace, Median(attacked), "ms");
}

int Main(const CommandLine& options) {
  const Sizes sizes = options.smoke ? Sizes{.pairs = 1, .answers = 10} : Sizes();
  const std::string only = options.smoke ? "control-socket" : options.Text("--way");
  bool reached = true;
  for (const test::WayIn& way : test::AttackedWays()) {
    if (only.empty() || only == way.name) {
      reached = JudgeWay(way, sizes) && reached;
    }
  }
  return options.StatusOf(reached);
}

}  // namespace
}  // namespace qrm::bench

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  return qrm::bench::Main(qrm::bench::ReadCommandLine(argc, argv, {"--way"}));
}
