// Reads the kernel's cpufreq files.
#include "plugins/host/cpu_frequency.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "api/base/number.h"

namespace qrm::host {
namespace {

constexpr char kPolicies[] = "sys/devices/system/cpu/cpufreq";

std::string_view Trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

FrequencyPolicy ReadPolicy(const HostFiles& files, const std::string& directory) {
  FrequencyPolicy policy{
      .directory = directory,
      .least = NumberOf(files, directory + "/cpuinfo_min_freq"),
      .most = NumberOf(files, directory + "/cpuinfo_max_freq"),
      .base = NumberOf(files, directory + "/base_frequency"),
      .governors = WordsOf(files, directory + "/scaling_available_governors"),
      .preferences = WordsOf(files, directory + "/energy_performance_available_preferences")};
  for (const std::string& cpu : WordsOf(files, directory + "/affected_cpus")) {
    if (const auto id = ParseNumber<int>(cpu);
        id.has_value() && *id >= 0 && *id < CpuSet::kMaxIds) {
      policy.cpus.Add(*id);
    }
  }
  return policy;
}

}  // namespace

std::vector<std::string> WordsOf(const HostFiles& files, const std::string& path) {
  std::istringstream text(files.Read(path).value_or(""));
  std::vector<std::string> words;
  for (std::string word; text >> word;) {
    words.push_back(word);
  }
  return words;
}

int64_t NumberOf(const HostFiles& files, const std::string& path) {
  return ParseNumber<int64_t>(files.Read(path).value_or("")).value_or(0);
}

std::vector<FrequencyPolicy> ReadFrequencyPolicies(const HostFiles& files) {
  std::vector<FrequencyPolicy> policies;
  for (const std::string& name : files.List(kPolicies)) {
    FrequencyPolicy policy = ReadPolicy(files, fmt::format("{}/{}", kPolicies, name));
    if (!policy.cpus.Empty() && files.MayWrite(policy.directory + "/scaling_min_freq")) {
      policies.push_back(std::move(policy));
    }
  }
  return policies;
}

std::string WakeUpFile(int cpu) {
  return fmt::format("sys/devices/system/cpu/cpu{}/power/pm_qos_resume_latency_us", cpu);
}

std::optional<int64_t> ParseDecimal(std::string_view text, int digits) {
  const auto point = text.find('.');
  std::string whole(text.substr(0, point));
  std::string part(point == std::string_view::npos ? "" : text.substr(point + 1));
  if (whole.empty() || (point != std::string_view::npos && part.empty())) {
    return std::nullopt;
  }
  part.resize(part.find_last_not_of('0') + 1);  // size 0 if there are only zeros
  if (part.size() > static_cast<std::size_t>(digits)) {
    return std::nullopt;
  }
  part.resize(static_cast<std::size_t>(digits), '0');
  const auto number = ParseNumber<int64_t>(whole + part);
  return number.has_value() && *number >= 0 ? number : std::nullopt;
}

std::optional<int64_t> ParseFrequency(std::string_view text) {
  constexpr std::pair<std::string_view, int> kUnits[] = {{"ghz", 6}, {"mhz", 3}, {"khz", 0}};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string_view all = lower;
  for (const auto& [unit, digits] : kUnits) {
    if (all.ends_with(unit)) {
      const auto khz = ParseDecimal(Trimmed(all.substr(0, all.size() - unit.size())), digits);
      const bool fits = khz.has_value() && *khz > 0 && *khz <= std::numeric_limits<int32_t>::max();
      return fits ? khz : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace qrm::host
