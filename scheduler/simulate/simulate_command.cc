// Reads the trace and prints the report for people or for programs.
#include "scheduler/simulate/simulate_command.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "scheduler/simulate/simulation.h"
#include "scheduler/simulate/trace.h"
#include "scheduler/topology/resource_types.h"

namespace qrm::scheduler {
namespace {

constexpr int kFailed = 1;
constexpr int kMisuse = 2;

struct Flags {
  std::string file;
  std::vector<std::string> without;
  std::string output = "text";
};

void Declare(CLI::App& app, Flags& flags) {
  app.add_option("TRACE", flags.file, "YAML or JSON; see docs/scheduler.md")->required();
  app.add_option("--without", flags.without,
                 "leave an extended resource out, as a scheduler that knows nothing of it; may be "
                 "repeated")
      ->check(CLI::IsMember(ResourceTypes()))
      ->allow_extra_args(false);
  app.add_option("-o,--output", flags.output, "how to print the report")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.footer(
      "Exit codes: 0 done, 1 the trace cannot be played, 2 misused.\nExample:\n  qrm-scheduler "
      "simulate docs/samples/trace.yaml --without numa");
}

nlohmann::ordered_json ToJson(const SimulationReport& report) {
  nlohmann::ordered_json json = {{"pods", report.pods},
                                 {"placed", report.placed},
                                 {"waiting", report.waiting},
                                 {"bound_by_others", report.bound_by_others},
                                 {"false_accepts", report.false_accepts},
                                 {"refused_others", report.refused_others},
                                 {"mean_wait_seconds", report.mean_wait},
                                 {"longest_wait_seconds", report.longest_wait},
                                 {"duration_seconds", report.duration}};
  const auto over_time = [](const OverTime& value) {
    return nlohmann::ordered_json{{"mean", value.mean}, {"highest", value.highest}};
  };
  for (const auto& [resource, value] : report.utilisation) {
    json["utilisation"][resource] = over_time(value);
  }
  json["fragmentation"] = over_time(report.fragmentation);
  json["reasons"] = report.reasons;
  return json;
}

std::string Percent(const OverTime& value) {
  return fmt::format("{:.1f} % in the mean, {:.1f} % at most", 100 * value.mean,
                     100 * value.highest);
}

void Print(const SimulationReport& report, std::ostream& out) {
  out << fmt::format("pods           {}, {} of them bound by others\n", report.pods,
                     report.bound_by_others)
      << fmt::format("placed         {}, {} wait at the end of {} s\n", report.placed,
                     report.waiting, report.duration)
      << fmt::format("false accepts  {}\n", report.false_accepts);
  if (report.refused_others > 0) {
    out << fmt::format("rejected       {} that others had bound\n", report.refused_others);
  }
  out << fmt::format("waited         {:.1f} s in the mean, {:.1f} s at most\n", report.mean_wait,
                     report.longest_wait);
  for (const auto& [resource, value] : report.utilisation) {
    out << fmt::format("utilisation    {:<6} {}\n", resource, Percent(value));
  }
  out << fmt::format("fragmentation  {}\n", Percent(report.fragmentation));
  for (const auto& [reason, count] : report.reasons) {
    out << fmt::format("why they wait  {} times: {}\n", count, reason);
  }
}

StatusOr<SimulationReport> ReadAndPlay(const Flags& flags) {
  std::ifstream file(flags.file);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.good() && !file.eof()) {
    return Errorf(StatusCode::kNotFound,
                  "cannot read {}: no such file, or no right to; check the path", flags.file);
  }
  QRM_ASSIGN_OR_RETURN(const Trace trace, ReadTrace(text, flags.file));
  return Simulate(trace, {.without = {flags.without.begin(), flags.without.end()}});
}

}  // namespace

int RunSimulate(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CLI::App app(
      "Plays a trace of nodes and pods through the scheduler's cache and filters, without "
      "an API server.",
      "qrm-scheduler simulate");
  Flags flags;
  Declare(app, flags);
  try {
    std::vector<std::string> reversed(args.rbegin(), args.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    out << app.help();
    return EXIT_SUCCESS;
  } catch (const CLI::ParseError& error) {
    err << "qrm-scheduler simulate: " << error.what() << "; try: qrm-scheduler simulate --help\n";
    return kMisuse;
  }
  const StatusOr<SimulationReport> report = ReadAndPlay(flags);
  if (!report.ok()) {
    err << "qrm-scheduler simulate: " << MessageOf(report.status()) << '\n';
    return kFailed;
  }
  if (flags.output == "json") {
    out << ToJson(*report).dump(2) << '\n';
  } else {
    Print(*report, out);
  }
  return EXIT_SUCCESS;
}

}  // namespace qrm::scheduler
