// qrm-cci-driver: the reference compute driver.
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "api/base/clock.h"
#include "api/base/log.h"
#include "plugins/cci/cci_driver.h"
#include "plugins/cci/cpu_knobs.h"
#include "plugins/cci/spec.h"
#include "plugins/kernel/interrupts.h"
#include "plugins/kernel/kernel_files.h"
#include "plugins/kernel/kernel_values.h"
#include "plugins/programs/plugin_program.h"
#include "plugins/sdk/compute_driver.h"
#include "plugins/sdk/plugin.h"
#include "plugins/sdk/running_plugin.h"

namespace {

struct Flags {
  qrm::programs::InputFlags input;
  std::string root = "/";
  bool check = false;
  bool undo = false;
};

struct Parts {
  qrm::Machine machine;
  qrm::cci::Policies policies;
};

qrm::StatusOr<Parts> Read(const Flags& flags) {
  QRM_ASSIGN_OR_RETURN(qrm::programs::Input input, qrm::programs::ReadInput(flags.input));
  Parts parts{.machine = std::move(input.machine), .policies = {}};
  QRM_ASSIGN_OR_RETURN(parts.policies, qrm::cci::ParseConfig(input.section));
  for (const std::string& warning : parts.machine.parts().warnings) {
    qrm::log::Warning("warning about the machine's description", {{"warning", warning}});
  }
  return parts;
}

/// In the directory of the driver's state.
std::string JournalOf(const qrm::sdk::PluginSettings& settings) {
  return std::filesystem::path(qrm::sdk::StatePath(settings)).replace_extension(".knobs.json");
}

int Failed(const qrm::Status& error) {
  qrm::log::Error("driver failed", {{"error", qrm::MessageOf(error)}});
  return EXIT_FAILURE;
}

int Run(const Flags& flags, const qrm::sdk::PluginSettings& settings, Parts parts) {
  qrm::kernel::SystemFiles system(flags.root);
  const qrm::SystemClock clock;
  qrm::kernel::BalancerFiles files(system, flags.root, clock);
  auto knobs = qrm::kernel::KernelValues::Open(files, JournalOf(settings));
  if (knobs.ok() && flags.undo) {
    qrm::kernel::RepeatBans(files, (*knobs)->records());
    const qrm::Status undone = (*knobs)->KeepOnly({});
    return undone.ok() ? EXIT_SUCCESS : Failed(undone);
  }
  if (!knobs.ok()) {
    return Failed(knobs.status());
  }
  qrm::cci::CciDriver driver(std::move(parts.machine), std::move(parts.policies), files,
                             *std::move(knobs),
                             qrm::cci::FindScheduling(flags.root + "/sys/fs/cgroup"));
  return qrm::sdk::DriverMain(settings, driver);
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  const auto settings = qrm::sdk::ParseSettings(
      qrm::sdk::DriverResource(qrm::cci::kDriverName), argc, argv,
      flags.input.With(
          "driver",
          {{.name = "check-config",
            .help = "read the configuration and exit: 0 if it is valid, else 2",
            .present = &flags.check},
           {.name = "host-root",
            .help = "directory with the machine's proc and sys, where attributes are set",
            .value = &flags.root},
           {.name = "undo",
            .help =
                "restore all values that attributes changed on the machine and exit; the driver "
                "must not run",
            .present = &flags.undo}}));
  if (!settings.ok()) {
    return qrm::programs::Misused(settings.status());
  }
  auto parts = Read(flags);
  if (!parts.ok()) {
    return qrm::programs::Misused(parts.status());
  }
  return flags.check ? EXIT_SUCCESS : Run(flags, *settings, *std::move(parts));
}
