// A scheduler extension with the proposal's resources.
#include "disk_io_resource.h"
#include "fake_resource.h"
#include "scheduler/extender/scheduler_main.h"

int main(int argc, char** argv) {
  using namespace qrm::scheduler;
  return SchedulerMain({{kFakeResource, MakeFakeHandle}, {kDiskIo, MakeDiskIoHandle}}, argc, argv);
}
