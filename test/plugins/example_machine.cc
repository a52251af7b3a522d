// Builds the example machine without hwloc.
#include "test/plugins/example_machine.h"

#include <utility>

namespace qrm::test {

Machine ExampleMachine(int threads_per_core, int cpus_per_l3) {
  MachineParts parts;
  for (int cpu = 0; cpu < 80; ++cpu) {
    parts.cpus.push_back({.id = cpu,
                          .core = cpu - cpu % threads_per_core,
                          .l3 = cpu - cpu % cpus_per_l3,
                          .node = cpu / 40,
                          .package = cpu / 40});
  }
  parts.nodes = {{.id = 0, .package = 0, .memory_bytes = 237706936320},
                 {.id = 1, .package = 1, .memory_bytes = 237806551040}};
  parts.nics = {{.name = "eth0", .node = 0}, {.name = "eth1", .node = 1}};
  return Machine(std::move(parts));
}

ContainerRequest Request(const std::string& pod, const std::string& role,
                         const std::string& resource, double amount) {
  return {.key = {.pod_uid = pod + "-uid", .container = "c0"},
          .pod_namespace = "default",
          .pod_name = pod,
          .pod_role = role,
          .resource = resource,
          .requests = {{resource, amount}}};
}

}  // namespace qrm::test
