// How pods that come and go delay each other, through a real qrmd with its reconciler: an admission
// right after a removal beside one after another admission, and many clients beside one.
//   churn_bench [--containers N] [--smoke]
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_dir.h"
#include "bench/command_line.h"
#include "bench/real_node.h"
#include "bench/target.h"

namespace qrm::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kAfterRemoval = 1.2;  ///< times an admission after an admission
constexpr double kThroughput = 1.3;    ///< of many clients, times that of one
constexpr double kSlowest = 20;        ///< p99 of many clients, times the p50 of one
constexpr std::size_t kClients = 16;
/// As many pinned pods as the node takes beside its pool.
constexpr std::size_t kBatch = 11;
/// Numbers of pods that come and go, so that none has the name of a resident.
constexpr std::size_t kFirstGuest = 1'000'000;

struct Sizes {
  std::vector<std::size_t> containers = {100, 1000, 5000};  ///< on the node all the time
  std::size_t admissions = 240;                             ///< of each kind
  std::size_t pods = 400;                                   ///< of one client, and of all of many
  std::size_t rounds = 21;                                  ///< of one and of many, in turns
};

class Churn {
 public:
  Churn(const std::string& bin_dir, PluginsIn plugins_in, std::size_t residents, const Sizes& sizes)
      : sizes_(sizes),
        where_(fmt::format("{} containers, {}", residents,
                           plugins_in == PluginsIn::kDaemon ? "built in" : "plugin processes")),
        node_(dir_.path(), bin_dir, plugins_in, "3s") {
    node_.Start(0);
    for (std::size_t i = 0; i < residents; ++i) {
      node_.Run(i, Kind::kPooled);
    }
    node_.Reconcile();
  }
  ~Churn() { node_.Stop(); }
  Churn(const Churn&) = delete;
  Churn& operator=(const Churn&) = delete;

  bool CompareRemovals() {
    std::vector<double> in_a_row;
    std::vector<double> after_removal;
    while (in_a_row.size() < sizes_.admissions) {
      TakeTurn(in_a_row, after_removal);
    }
    const double alone = Median(in_a_row);
    const double after = Median(after_removal);
    fmt::print(
        "{}: admission p50 {:.0f} us, p90 {:.0f} us; after a removal p50 {:.0f} us, p90 {:.0f} "
        "us\n",
        where_, alone, Quantile(in_a_row, 0.9), after, Quantile(after_removal, 0.9));
    return Judge(fmt::format("admission after a removal, {}, p50", where_), kAfterRemoval,
                 after / alone, "x in a row");
  }

  bool CompareClients() {
    Load one;
    Load many;
    for (std::size_t i = 0; i < sizes_.rounds; ++i) {
      Play(1, one);
      Play(kClients, many);
    }
    const double of_one = Median(one.pods_per_second);
    const double of_many = Median(many.pods_per_second);
    const double p50 = Median(one.p50);
    const double p99 = Median(many.p99);
    fmt::print(
        "{}: 1 client {:.0f} pods/s, p50 {:.0f} us; {} clients {:.0f} pods/s, p99 {:.0f} us, in "
        "the worst round {:.0f} us\n",
        where_, of_one, p50, kClients, of_many, p99, Quantile(many.p99, 1));
    const bool faster =
        Judge(fmt::format("pods a second of one client, {}", where_), 1 / kThroughput,
              of_one / of_many, fmt::format("x {} clients", kClients));
    return Judge(fmt::format("a pod of {} clients, {}, p99", kClients, where_), kSlowest, p99 / p50,
                 "x p50 of one") &&
           faster;
  }

 private:
  /// The times of each round. A pod's time is from its sandbox to its start. Units: microseconds.
  struct Load {
    std::vector<double> pods_per_second;
    std::vector<double> p50;
    std::vector<double> p99;
  };

  /// A batch in a row, then pods each of which comes right after another went.
  void TakeTurn(std::vector<double>& in_a_row, std::vector<double>& after_removal) {
    const std::size_t first = next_;
    for (std::size_t i = 0; i < kBatch; ++i) {
      in_a_row.push_back(Microseconds(node_.Run(next_++, Kind::kPinned)));
    }
    for (std::size_t i = 0; i < kBatch; ++i) {
      node_.Remove(first + i);
      after_removal.push_back(Microseconds(node_.Run(next_++, Kind::kPinned)));
    }
    for (std::size_t number = next_ - kBatch; number < next_; ++number) {
      node_.Remove(number);
    }
    node_.Reconcile();
  }

  /// One round, after which its pods go.
  void Play(std::size_t clients, Load& load) {
    const std::size_t pods_of_client = sizes_.pods / clients;
    std::vector<std::vector<double>> took(clients);
    std::vector<std::thread> threads;
    const auto begin = Clock::now();
    for (std::size_t client = 0; client < clients; ++client) {
      const std::size_t first = next_;
      next_ += pods_of_client;
      threads.emplace_back([this, first, pods_of_client, &took = took[client]] {
        for (std::size_t i = 0; i < pods_of_client; ++i) {
          const auto start = Clock::now();
          node_.Run(first + i, Kind::kPooled);
          took.push_back(Microseconds(Clock::now() - start));
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    load.pods_per_second.push_back(static_cast<double>(sizes_.pods) * 1e6 /
                                   Microseconds(Clock::now() - begin));
    std::vector<double> all;
    for (const std::vector<double>& of_client : took) {
      all.insert(all.end(), of_client.begin(), of_client.end());
    }
    load.p50.push_back(Median(all));
    load.p99.push_back(Quantile(all, 0.99));
    for (std::size_t i = 0; i < sizes_.pods; ++i) {
      node_.Remove(next_ - 1 - i);
    }
    node_.Reconcile();
  }

  const Sizes& sizes_;
  const BenchDir dir_;
  const std::string where_;
  RealNode node_;
  std::size_t next_ = kFirstGuest;
};

bool Measure(const std::string& bin_dir, const Sizes& sizes) {
  bool held = true;
  for (const PluginsIn plugins_in : {PluginsIn::kDaemon, PluginsIn::kProcesses}) {
    for (const std::size_t containers : sizes.containers) {
      Churn churn(bin_dir, plugins_in, containers, sizes);
      held = churn.CompareRemovals() && held;
      if (containers == sizes.containers.front()) {
        held = churn.CompareClients() && held;
      }
    }
  }
  return held;
}

int Main(const CommandLine& options) {
  Sizes sizes;
  if (options.smoke) {
    sizes = {.containers = {10}, .admissions = kBatch, .pods = 2 * kClients, .rounds = 1};
  }
  if (options.values.contains("--containers")) {
    sizes.containers = {options.Number<std::size_t>("--containers", 0)};
  }
  return options.StatusOf(Measure(BinDir(), sizes));
}

}  // namespace
}  // namespace qrm::bench

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  return qrm::bench::Main(qrm::bench::ReadCommandLine(argc, argv, {"--containers"}));
}
