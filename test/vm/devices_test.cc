// CPUs and memory near the devices of claims, which are PCI functions on the buses of their NUMA
// nodes.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/proto/core/v1/pod.pb.h"
#include "test/support/await.h"
#include "test/support/fake_api_server.h"
#include "test/support/fake_pod_resources.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_kubelet.h"
#include "test/vm/machine_test.h"

namespace qrm::test::devices_test {
namespace {

constexpr int kPods = 60;

/// An NVMe disk, and the NUMA node that its bus is on.
struct Disk {
  std::string name;  ///< such as "nvme0n1"
  int node = -1;
};

std::vector<Disk> Disks() {
  std::vector<Disk> disks;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/block")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("nvme")) {
      disks.push_back(
          {name, std::stoi(ReadLine("/sys/block/" + name + "/device/device/numa_node"))});
    }
  }
  return disks;
}

/// Whether the machine has PCI functions that are NVMe disks.
bool HasDisks() {
  for (const auto& device : std::filesystem::directory_iterator("/sys/bus/pci/devices")) {
    if (ReadLine(device.path().string() + "/class").starts_with("0x0108")) {
      return true;
    }
  }
  return false;
}

/// qrmd beside containerd; kubelet's sockets and the API server are the test's.
class DevicesTest : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    if (!HasDisks()) {
      GTEST_SKIP() << "this machine has no NVMe disks; run scripts/vm.sh --machine q35";
    }
    // NOLINTNEXTLINE(bugprone-command-processor): what an administrator would type
    ASSERT_EQ(std::system("modprobe nvme"), 0);
    ASSERT_TRUE(Await([] { return Disks().size() == 4; }, std::chrono::seconds(60)));
    disks_ = Disks();
    pods_ = std::make_unique<ScriptedKubelet>(work_dir_ + "/pods.sock");
    devices_ = std::make_unique<FakeKubelet>(work_dir_ + "/devices.sock");
  }

  void Start(const std::string& keys) {
    StartNode("topology-policy: single-numa-node\nkubelet-pods-socket: " + work_dir_ +
              "/pods.sock\nkubelet-pod-resources-socket: " + work_dir_ +
              "/devices.sock\nplugins: {cpu: {static: true, reserved-cpus: \"0\"}, memory: "
              "{static: true}}\n" +
              keys);
    ASSERT_TRUE(Await([&] { return node_->HasFollowedKubelet(); }, std::chrono::seconds(60)));
  }

  /// Pods of one CPU, each with a claim of one of the disks in turn: how many have CPUs and memory
  /// on the node of their disk.
  int RunPods() {
    int near = 0;
    for (int i = 0; i < kPods; ++i) {
      const Disk& disk = disks_[static_cast<std::size_t>(i) % disks_.size()];
      PodSpec spec = Guaranteed(fmt::format("p{}", i), 1, 16);
      ::k8s::io::api::core::v1::Pod pod;
      pod.ParseFromString(PodMessage(spec.uid, spec.name, "1"));
      auto& container = *pod.mutable_spec()->mutable_containers(0);
      container.set_name(spec.container.name);
      for (auto* amounts : {container.mutable_resources()->mutable_requests(),
                            container.mutable_resources()->mutable_limits()}) {
        (*amounts)["cpu"].set_string("1");
        (*amounts)["memory"].set_string("16Mi");
      }
      container.mutable_resources()->add_claims()->set_name("disk");
      pods_->Put(spec.uid, pod.SerializeAsString());
      devices_->AddClaim(
          {spec.pod_namespace, spec.name, spec.container.name},
          {"disk", "disk.qrm.test", "node", disk.name, {"qrm.test/disk=" + disk.name}});
      auto running = Run(spec);
      EXPECT_TRUE(IsOk(running.status()));
      if (!running.ok()) {
        continue;
      }
      const manager::CgroupCpuset cpuset = CpusetOf(*running);
      const bool is_near =
          cpuset.cpus.IsSubsetOf(CpusOfNode(disk.node)) && cpuset.mems == NumaMask({disk.node});
      near += is_near ? 1 : 0;
      if (!is_near) {
        std::cout << spec.name << ": " << disk.name << " on node " << disk.node << ", cpus "
                  << ToString(cpuset.cpus) << " mems " << ToString(cpuset.mems) << "\n";
      }
      running_.push_back(*std::move(running));
      if (running_.size() == 8) {  // two on each node of four CPUs
        for (const RunningPod& old : running_) {
          EXPECT_TRUE(IsOk(kubelet_.RemovePod(old)));
        }
        running_.clear();
      }
    }
    return near;
  }

  std::vector<Disk> disks_;
  std::vector<RunningPod> running_;
  std::unique_ptr<ScriptedKubelet> pods_;
  std::unique_ptr<FakeKubelet> devices_;
};

TEST_F(DevicesTest, EachDiskIsOnANodeOfItsOwn) {
  NumaMask nodes;
  for (const Disk& disk : disks_) {
    nodes.Add(disk.node);
  }
  EXPECT_EQ(nodes, NumaMask({0, 1, 2, 3}));
}

TEST_F(DevicesTest, AllPodsAreOnTheNodesOfTheirDisksByCdiSpecificationsAndTheKernel) {
  const std::string dir = work_dir_ + "/cdi";
  std::filesystem::create_directories(dir);
  for (const Disk& disk : disks_) {
    std::ofstream(dir + "/" + disk.name + ".json") << fmt::format(
        R"({{"cdiVersion": "0.6.0", "kind": "qrm.test/disk", "devices": [{{"name": "{0}",
            "containerEdits": {{"deviceNodes": [{{"path": "/dev/{0}"}}]}}}}]}})",
        disk.name);
  }
  Start("cdi-directories: [" + dir + "]\n");
  EXPECT_EQ(RunPods(), kPods);
}

TEST_F(DevicesTest, AllPodsAreOnTheNodesOfTheirDisksByResourceSlices) {
  FakeApiServer server;
  for (const Disk& disk : disks_) {
    const std::string address =
        std::filesystem::canonical("/sys/block/" + disk.name + "/device/device").filename();
    server.Put(
        "/apis/resource.k8s.io/v1/resourceslices",
        {{"metadata", {{"name", disk.name}}},
         {"spec",
          {{"driver", "disk.qrm.test"},
           {"nodeName", "n1"},
           {"pool", {{"name", "node"}, {"generation", 1}}},
           {"devices",
            {{{"name", disk.name},
              {"attributes", {{"resource.kubernetes.io/pciBusID", {{"string", address}}}}}}}}}}});
  }
  Start("cdi-directories: []\nresource-slices: true\nnode-name: n1\nkubeconfig: " +
        server.WriteKubeconfig(work_dir_) + "\n");
  ASSERT_TRUE(Await([&] { return server.requests().size() > 1; }, std::chrono::seconds(60)));
  EXPECT_EQ(RunPods(), kPods);
}

}  // namespace
}  // namespace qrm::test::devices_test
