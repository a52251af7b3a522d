// Rows about CPUs, read into the values of the topology engine.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "test/vector_check/report.h"
#include "topology/cpu_layout.h"
#include "topology/static_cpu_policy.h"

namespace qrm::vectors {

/// The CPUs that a row lists; none for null.
CpuSet CpusOf(const Json& list);

/// A machine of the file, with the sizes that it declares for kubelet's algorithm.
struct DeclaredMachine {
  explicit DeclaredMachine(const Json& topology);

  Machine machine;
  CpuLayout layout;
};

/// The machines of a file, each made once.
class DeclaredMachines {
 public:
  explicit DeclaredMachines(const Json& topologies) : topologies_(topologies) {}
  const DeclaredMachine& Of(const Json& row);

 private:
  const Json& topologies_;
  std::map<std::string, std::unique_ptr<DeclaredMachine>> machines_;
};

/// Whether the row sets an option of kubelet's static policy, by kubelet's name.
bool Option(const Json& row, const char* name);
CpuAssignmentOptions OptionsOf(const Json& row);

/// A container of a row's pod, in the order in which kubelet places them.
struct PodContainer {
  std::string name;
  ContainerType type = ContainerType::kMain;
  int index = 0;    ///< position among the pod's (init) containers
  double cpus = 0;  ///< as requested
};

std::vector<PodContainer> ContainersOf(const Json& row);
bool IsGuaranteed(const Json& row);

/// The position in its pod of the container that a step allocates for.
ContainerType TypeOfStep(const Json& step);

Difference CompareCpus(const StatusOr<CpuSet>& taken, const Json& expected);

/// Compares the exclusive CPUs of the pod's containers, and the result, with the row's.
Difference ComparePod(const Json& row, const Machine& machine, std::map<std::string, CpuSet> owned,
                      const std::string& error);

/// The rows' checks by the functions that the cpu plugin calls.
Difference TakeByFunction(const DeclaredMachine& on, const Json& row, const Json& expected);
Difference TakeNearByFunction(const DeclaredMachine& on, const Json& row);
Difference AllocatePodByFunction(const DeclaredMachine& on, const Json& row);
Difference HintsByFunction(const DeclaredMachine& on, const Json& row);

/// Rows about the plugin's state, which no function of the engine has.
void CheckCpuState(const Json& file, Report& report);

}  // namespace qrm::vectors
