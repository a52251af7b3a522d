// A node with two pods, served on the pod-resources socket for clients in other languages:
// interop_node SOCKET, until standard input ends.
#include <iostream>
#include <limits>
#include <map>
#include <string>

#include "manager/observability/metrics.h"
#include "manager/podresources/pod_resources_server.h"
#include "test/support/fake_plugins.h"
#include "test/support/fake_snapshots.h"
#include "test/support/sample_node.h"

namespace {

using qrm::test::Admit;
using qrm::test::kGiB;

void AdmitPods(qrm::test::FakeSnapshots& snapshots) {
  qrm::checkpoint::PodMeta database = qrm::test::SamplePod("database", "shop");
  database.role = "storage";
  snapshots.Apply(Admit(database, "setup", {}, qrm::ContainerType::kInit));
  snapshots.Apply(Admit(database, "main",
                        {{"cpu", qrm::test::OwnCpus("5,2-3")},
                         {"memory", qrm::test::NodeMemory({{0, kGiB}, {1, 2 * kGiB}})}}));
  snapshots.Apply(Admit(database, "proxy", {}, qrm::ContainerType::kSidecar));
  snapshots.Apply(Admit(qrm::test::SamplePod("web", "shop"), "main",
                        {{"cpu", qrm::test::SharedCpus("0-1", 0.5)}}));
}

qrm::test::FakePlugins::Allocatable Offers() {
  return {{"cpu",
           std::map<std::string, qrm::AllocatableResource>{
               {"cpu",
                {.allocatable = 7, .capacity = 8, .allocatable_cpus = qrm::CpuSet::Range(1, 7)}}}},
          {"memory",
           std::map<std::string, qrm::AllocatableResource>{
               {"memory", {.allocatable_by_node = {{0, 1024}, {1, 2048}}}}}},
          {"broken", qrm::Errorf(qrm::StatusCode::kUnavailable, "away")}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "interop_node: no socket given; try: interop_node /tmp/kubelet.sock\n";
    return 2;
  }
  qrm::test::FakeSnapshots snapshots;
  AdmitPods(snapshots);
  qrm::test::FakePlugins plugins;
  plugins.SetAllocatable(Offers());
  const qrm::Machine machine = qrm::test::SampleMachine();
  qrm::manager::Metrics metrics;
  qrm::manager::PodResourcesServer server(snapshots, plugins, machine, metrics.pod_resources,
                                          [] { return true; });
  if (const qrm::Status started = server.Start(argv[1]); !started.ok()) {
    std::cerr << qrm::MessageOf(started) << '\n';
    return 1;
  }
  std::cout << "serving" << std::endl;
  std::cin.ignore(std::numeric_limits<std::streamsize>::max());
  server.Stop();
  return 0;
}
