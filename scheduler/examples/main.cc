// A scheduler extension with the proposal's resources, beside those of qrm-scheduler.
#include "disk_io_resource.h"
#include "fake_resource.h"
#include "scheduler/extender/scheduler_main.h"
#include "scheduler/topology/resource_types.h"

int main(int argc, char** argv) {
  using namespace qrm::scheduler;
  HandleFactories factories = ResourceFactories();
  factories.emplace(kFakeResource, MakeFakeHandle);
  factories.emplace(kDiskIo, MakeDiskIoHandle);
  return SchedulerMain(factories, argc, argv);
}
