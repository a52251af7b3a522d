// qrm-cci-driver: the reference compute driver, in a process of its own.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "api/base/log.h"
#include "api/base/section.h"
#include "plugins/cci/cci_driver.h"
#include "plugins/cci/config.h"
#include "plugins/config/machine_config.h"
#include "plugins/sdk/compute_plugin.h"
#include "plugins/sdk/plugin.h"

namespace {

constexpr int kExitMisused = 2;

struct Flags {
  std::string config;
  std::string machine;
  bool check = false;
};

qrm::StatusOr<std::unique_ptr<qrm::cci::CciDriver>> Make(const Flags& flags) {
  using qrm::config::Section;
  QRM_ASSIGN_OR_RETURN(const Section file, flags.config.empty() ? Section::Parse("", "defaults")
                                                                : Section::Load(flags.config));
  QRM_ASSIGN_OR_RETURN(auto machine_config, qrm::config::ParseMachineConfig(file));
  if (!flags.machine.empty()) {
    machine_config.source = flags.machine;
  }
  QRM_ASSIGN_OR_RETURN(qrm::Machine machine, qrm::config::LoadMachine(machine_config));
  QRM_ASSIGN_OR_RETURN(qrm::cci::Policies policies,
                       qrm::cci::ParseConfig(file.Without({"machine", "numa-memory"})));
  for (const std::string& warning : machine.parts().warnings) {
    qrm::log::Warning("driver's machine is described imperfectly", {{"warning", warning}});
  }
  return std::make_unique<qrm::cci::CciDriver>(std::move(machine), std::move(policies));
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  const auto settings = qrm::sdk::ParseSettings(
      qrm::sdk::DriverResource(qrm::cci::kDriverName), argc, argv,
      {{.name = "config", .help = "YAML file with the driver's keys", .value = &flags.config},
       {.name = "machine",
        .help = "live, synthetic:DESCRIPTION, xml:FILE or fsroot:DIR, in place of the file's key",
        .value = &flags.machine},
       {.name = "check-config",
        .help = "read the configuration and exit: 0 when it is good, else 2",
        .present = &flags.check}});
  const auto driver = settings.ok() ? Make(flags) : settings.status();
  if (!driver.ok()) {
    std::cerr << qrm::MessageOf(driver.status()) << '\n';
    return kExitMisused;
  }
  return flags.check ? EXIT_SUCCESS : qrm::sdk::DriverMain(*settings, **driver);
}
