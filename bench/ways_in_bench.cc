// How long admissions take while a way into qrmd is attacked, beside admissions in peace, in turns.
//   ways_in_bench [--way NAME] [--smoke]      NAME: as docs/ways-in.md lists it
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "api/base/check.h"
#include "bench/real_node.h"
#include "bench/target.h"
#include "test/ways_in/attacked_node.h"

namespace qrm::bench {
namespace {

constexpr double kTimesPeace = 2;
constexpr double kMoreThanPeace = 20;  // milliseconds

struct Sizes {
  std::string way;               // empty: all
  std::size_t pairs = 5;         // of peace and attack
  std::size_t admissions = 200;  // of each
};

/// The p99 of so many admissions. Units: milliseconds.
double P99(test::AttackedNode& node, std::size_t admissions) {
  std::vector<double> took;
  while (took.size() < admissions) {
    const auto creation = node.Admit();
    Must(creation.status());
    took.push_back(std::chrono::duration<double, std::milli>(*creation).count());
  }
  return Quantile(took, 0.99);
}

/// The same, while the attack is repeated.
double P99UnderAttack(test::AttackedNode& node, std::size_t admissions) {
  std::atomic<bool> over = false;
  std::thread attacker([&] {
    while (!over) {
      node.Attack();
    }
  });
  const double p99 = P99(node, admissions);
  over = true;
  attacker.join();
  return p99;
}

bool JudgeWay(const std::string& way, const test::DaemonAttack& attack, const std::string& bin_dir,
              const Sizes& sizes) {
  test::AttackedNode node(attack, bin_dir);
  Must(node.Start());
  std::vector<double> peace;
  std::vector<double> attacked;
  for (std::size_t pair = 0; pair < sizes.pairs; ++pair) {
    peace.push_back(P99(node, sizes.admissions));
    attacked.push_back(P99UnderAttack(node, sizes.admissions));
  }
  QRM_CHECK(node.DaemonRuns());
  fmt::print("{}: p99 of an admission in peace {:.2f} ms, under attack {:.2f} ms\n", way,
             Median(peace), Median(attacked));
  return Judge(fmt::format("admission while {} is attacked, p99", way),
               kTimesPeace * Median(peace) + kMoreThanPeace, Median(attacked), "ms");
}

int Main(const std::vector<std::string>& words) {
  Sizes sizes;
  bool smoke = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--smoke") {
      smoke = true;
      sizes = {.way = "control-socket", .pairs = 1, .admissions = 10};
    } else if (words[i] == "--way" && i + 1 < words.size()) {
      sizes.way = words[++i];
    } else {
      fmt::print(stderr, "usage: ways_in_bench [--way NAME] [--smoke]\n");
      return 2;
    }
  }
  const std::string bin_dir =
      std::filesystem::canonical("/proc/self/exe").parent_path().parent_path() / "bin";
  bool reached = true;
  for (const auto& [way, attack] : test::DaemonAttacks()) {
    if (sizes.way.empty() || sizes.way == way) {
      reached = JudgeWay(way, attack, bin_dir, sizes) && reached;
    }
  }
  return reached || smoke ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace qrm::bench

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  return qrm::bench::Main({argv, argv + argc});
}
