// Reads /proc/self.
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

#include "manager/observability/node_collector.h"

namespace qrm::manager {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Families = std::vector<MetricFamily>;

void Add(Families& families, MetricType type, const char* name, const char* help, double value) {
  ClientMetric metric;
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  families.push_back({name, help, type, {std::move(metric)}});
}

struct Stat {
  double cpu_seconds = 0;
  double threads = 0;
  double start_ticks = 0;  ///< since the boot
  double virtual_bytes = 0;
  double resident_pages = 0;
};

/// Reads fields of /proc/self/stat, by their numbers in proc(5), from the field after the state.
std::optional<Stat> ReadStat() {
  constexpr std::size_t kState = 3;
  constexpr std::size_t kUserTicks = 14;
  constexpr std::size_t kSystemTicks = 15;
  constexpr std::size_t kThreads = 20;
  constexpr std::size_t kStart = 22;
  constexpr std::size_t kVirtual = 23;
  constexpr std::size_t kResident = 24;
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) {
    return std::nullopt;
  }
  std::istringstream rest(text.substr(name_end + 1));
  std::string state;
  rest >> state;
  std::vector<double> fields(kState + 1, 0);
  for (double field = 0; fields.size() <= kResident && rest >> field;) {
    fields.push_back(field);
  }
  if (fields.size() <= kResident) {
    return std::nullopt;
  }
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return Stat{.cpu_seconds = (fields[kUserTicks] + fields[kSystemTicks]) / ticks,
              .threads = fields[kThreads],
              .start_ticks = fields[kStart],
              .virtual_bytes = fields[kVirtual],
              .resident_pages = fields[kResident]};
}

/// The boot time in seconds since 1970.
std::optional<double> BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    double seconds = 0;
    if (words >> name >> seconds && name == "btime") {
      return seconds;
    }
  }
  return std::nullopt;
}

void AddFiles(Families& families) {
  std::error_code error;
  std::filesystem::directory_iterator at("/proc/self/fd", error);
  double open = -1;  // does not count the descriptor that lists the directory
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    ++open;
  }
  if (open >= 0) {
    Add(families, MetricType::Gauge, "process_open_fds", "Number of open file descriptors.", open);
  }
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    Add(families, MetricType::Gauge, "process_max_fds", "Maximum number of open file descriptors.",
        static_cast<double>(limit.rlim_cur));
  }
}

}  // namespace

void AddProcess(Families& families) {
  AddFiles(families);
  const std::optional<Stat> stat = ReadStat();
  if (!stat.has_value()) {
    return;
  }
  Add(families, MetricType::Counter, "process_cpu_seconds_total",
      "Total user and system CPU time spent in seconds.", stat->cpu_seconds);
  Add(families, MetricType::Gauge, "process_threads", "Number of threads.", stat->threads);
  Add(families, MetricType::Gauge, "process_virtual_memory_bytes", "Virtual memory size in bytes.",
      stat->virtual_bytes);
  Add(families, MetricType::Gauge, "process_resident_memory_bytes",
      "Resident memory size in bytes.",
      stat->resident_pages * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  if (const std::optional<double> boot = BootTime(); boot.has_value()) {
    Add(families, MetricType::Gauge, "process_start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
        *boot + stat->start_ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  }
}

}  // namespace qrm::manager
