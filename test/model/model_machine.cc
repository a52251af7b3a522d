// Lets hwloc make the machine and take CPUs from it.
#include "test/model/model_machine.h"

#include <hwloc.h>

#include <fmt/format.h>

#include "api/base/errorf.h"

namespace qrm::test {

Status WriteMachine(const std::string& file, const CpuSet& offline) {
  hwloc_topology_t topology = nullptr;
  hwloc_bitmap_t online = hwloc_bitmap_alloc();
  for (const int cpu : AllCpus() - offline) {
    hwloc_bitmap_set(online, static_cast<unsigned>(cpu));
  }
  const std::string description =
      fmt::format("package:{} [numa] core:{} pu:2", kModelNodes, kCpusPerNode / 2);
  bool written = hwloc_topology_init(&topology) == 0;
  written = written && hwloc_topology_set_synthetic(topology, description.c_str()) == 0 &&
            hwloc_topology_load(topology) == 0 &&
            hwloc_topology_restrict(topology, online, 0) == 0 &&
            hwloc_topology_export_xml(topology, file.c_str(), 0) == 0;
  if (topology != nullptr) {
    hwloc_topology_destroy(topology);
  }
  hwloc_bitmap_free(online);
  return written ? OkStatus()
                 : Errorf(StatusCode::kInternal, "cannot write the machine to {}; check the disk",
                          file);
}

}  // namespace qrm::test
