// qrm-scheduler: the cluster's side of qrm.
#include "scheduler/extender/scheduler_main.h"
#include "scheduler/simulate/simulate_command.h"
#include "scheduler/topology/resource_types.h"

int main(int argc, char** argv) {
  using namespace qrm::scheduler;
  return SchedulerMain({.name = "qrm-scheduler",
                        .version = QRM_VERSION,
                        .factories = ResourceFactories(),
                        .resources = {kStandardResource},
                        .commands = {{"simulate",
                                      {"plays a trace of nodes and pods through the cache and "
                                       "filters, without an API server",
                                       RunSimulate}}}},
                       argc, argv);
}
