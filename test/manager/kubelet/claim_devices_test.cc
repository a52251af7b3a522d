// Where the devices of claims are: each source by itself, absent, late and wrong, and all in their
// order.
#include "manager/kubelet/claim_devices.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/mutex.h"
#include "manager/kubelet/cdi_nodes.h"
#include "manager/kubelet/slice_nodes.h"
#include "manager/kubelet/sysfs_nodes.h"
#include "test/support/await.h"
#include "test/support/fake_api_server.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::claim_devices_test {
namespace {

namespace fs = std::filesystem;

using nlohmann::json;
using test::Await;
using test::FakeApiServer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

constexpr char kSlices[] = "/apis/resource.k8s.io/v1/resourceslices";
constexpr char kClaims[] = "/apis/resource.k8s.io/v1/resourceclaims";

void Write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

/// A sysfs as the kernel lays it out: an NVMe disk, a GPU and a NIC, each behind a bridge.
class FakeSysfs {
 public:
  FakeSysfs() {
    AddPci("0000:41:00.0", "1\n");
    AddPci("0000:81:00.0", "2\n");
    AddPci("0000:c1:00.0", "-1\n");
    Write(In("devices/pci0000:40/0000:41:00.0/nvme/nvme0/nvme0n1/size"), "1");
    Link("dev/block/259:0", "devices/pci0000:40/0000:41:00.0/nvme/nvme0/nvme0n1");
    Write(In("devices/pci0000:40/0000:81:00.0/gpu/gpu0/dev"), "195:0");
    Link("dev/char/195:0", "devices/pci0000:40/0000:81:00.0/gpu/gpu0");
    Link("class/net/eth7/device", "devices/pci0000:40/0000:81:00.0");
    Link("kernel/iommu_groups/12/devices/0000:41:00.0", "devices/pci0000:40/0000:41:00.0");
    Write(In("devices/virtual/mem/null/dev"), "1:3");
    Link("dev/char/1:3", "devices/virtual/mem/null");
  }

  std::string path() const { return dir_.path(); }
  SysfsNodes nodes() const { return SysfsNodes(path()); }

 private:
  void AddPci(const std::string& address, const std::string& node) {
    Write(In("devices/pci0000:40/" + address + "/numa_node"), node);
    Link("bus/pci/devices/" + address, "devices/pci0000:40/" + address);
  }
  void Link(const std::string& from, const std::string& to) {
    fs::create_directories(In(from).parent_path());
    fs::create_directory_symlink(fs::path(path()) / to, In(from));
  }

  fs::path In(const std::string& name) const { return fs::path(path()) / name; }

  test::TempDir dir_;
};

TEST(SysfsNodesTest, ADeviceFileIsOnTheNodeOfThePciDeviceAboveIt) {
  const FakeSysfs sysfs;
  EXPECT_THAT(sysfs.nodes().OfDeviceFile("/dev/nvme0n1", true, 259, 0), Optional(1));
  EXPECT_THAT(sysfs.nodes().OfDeviceFile("/dev/gpu0", false, 195, 0), Optional(2));
  EXPECT_THAT(sysfs.nodes().OfDeviceFile("/dev/vfio/12", false, 240, 3), Optional(1));
}

TEST(SysfsNodesTest, WhatTheFirmwareDoesNotTellIsUnknownAndNeverNodeZero) {
  const FakeSysfs sysfs;
  EXPECT_EQ(sysfs.nodes().OfPciDevice("0000:c1:00.0"), std::nullopt);
  EXPECT_EQ(sysfs.nodes().OfPciDevice("0000:ff:00.0"), std::nullopt);
  EXPECT_EQ(sysfs.nodes().OfPciDevice("../../../devices/pci0000:40/0000:41:00.0"), std::nullopt);
  EXPECT_EQ(sysfs.nodes().OfDeviceFile("/dev/null", false, 1, 3), std::nullopt);
  EXPECT_EQ(sysfs.nodes().OfInterface("lo"), std::nullopt);
}

ClaimDevice Gpu(const std::string& device = "gpu-0") {
  return {.claim_namespace = "ml",
          .claim = "engine-gpu",
          .driver = "gpu.example.com",
          .pool = "node1",
          .device = device,
          .cdi_ids = {"example.com/gpu=claim-1"}};
}

NearNodes Ask(NearNodesSource& source, const ClaimDevice& device) {
  std::optional<NearNodes> answer;
  source.Find(device, [&](const NearNodes& nodes) { answer = nodes; });
  return answer.value_or(NearNodes{-99});
}

json Slice(const json& attributes, int generation = 1, const std::string& device = "gpu-0") {
  return {{"metadata", {{"name", "slice-" + std::to_string(generation) + device}}},
          {"spec",
           {{"driver", "gpu.example.com"},
            {"nodeName", "node1"},
            {"pool", {{"name", "node1"}, {"generation", generation}, {"resourceSliceCount", 1}}},
            {"devices", json::array({{{"name", device}, {"attributes", attributes}}})}}}};
}

class SliceNodesTest : public testing::Test {
 protected:
  NearNodes After(const std::vector<json>& slices) {
    nodes_.OnListBegin();
    for (const json& slice : slices) {
      nodes_.OnItem(slice);
    }
    nodes_.OnListEnd("1");
    return Ask(nodes_, Gpu());
  }

  const FakeSysfs sysfs_;
  SliceNodes nodes_{{"dra.net/numaNode", "numaNode"}, sysfs_.nodes()};
};

TEST_F(SliceNodesTest, ThePhysicalNodeOfAListIsFirst) {
  EXPECT_THAT(After({Slice({{kNumaNodeAttribute, {{"int", 3}}}})}), ElementsAre(3));
  EXPECT_THAT(After({Slice({{kNumaNodeAttribute, {{"ints", {5, 4, 6}}}}})}), ElementsAre(5, 4, 6));
}

TEST_F(SliceNodesTest, VendorsNamesCountWhereTheStandardOneIsAbsent) {
  EXPECT_THAT(After({Slice({{"dra.net/numaNode", {{"int", 1}}}})}), ElementsAre(1));
  EXPECT_THAT(After({Slice({{"numaNode", {{"int", 2}}}})}), ElementsAre(2));
  EXPECT_THAT(After({Slice({{"gpu.example.com/numaNode", {{"int", 2}}}})}), ElementsAre(2));
  EXPECT_THAT(After({Slice({{"numaNode", {{"int", 2}}}, {kNumaNodeAttribute, {{"int", 0}}}})}),
              ElementsAre(0));
}

TEST_F(SliceNodesTest, ThePciAddressIsLookedUpWhereNoAttributeTellsTheNode) {
  EXPECT_THAT(After({Slice({{"resource.kubernetes.io/pciBusID", {{"string", "0000:81:00.0"}}}})}),
              ElementsAre(2));
}

TEST_F(SliceNodesTest, OfAPoolOnlyTheHighestGenerationCounts) {
  const json old = Slice({{kNumaNodeAttribute, {{"int", 0}}}}, 1);
  const json now = Slice({{kNumaNodeAttribute, {{"int", 1}}}}, 2);
  EXPECT_THAT(After({old, now}), ElementsAre(1));
  EXPECT_THAT(After({now, old}), ElementsAre(1));
  EXPECT_THAT(After({old, Slice({}, 2, "another")}), IsEmpty());
  nodes_.OnSet(now);
  EXPECT_THAT(Ask(nodes_, Gpu()), ElementsAre(1));
  nodes_.OnDelete(now);
  EXPECT_THAT(Ask(nodes_, Gpu("another")), IsEmpty());
}

TEST_F(SliceNodesTest, ValuesOfOtherTypesAreUnknown) {
  EXPECT_THAT(After({Slice({{kNumaNodeAttribute, {{"string", "1"}}}})}), IsEmpty());
  EXPECT_THAT(After({Slice({{kNumaNodeAttribute, {{"int", -1}}}})}), IsEmpty());
  EXPECT_THAT(After({Slice({{kNumaNodeAttribute, {{"ints", 3}}}})}), IsEmpty());
  EXPECT_THAT(After({json::array(), {{"spec", 3}}, {{"spec", {{"devices", {1, 2}}}}}}), IsEmpty());
}

class CdiNodesTest : public testing::Test {
 protected:
  NearNodes With(const std::string& file, const std::string& text) {
    Write(fs::path(dir_.path()) / "cdi" / file, text);
    CdiNodes nodes({dir_ / "none", dir_ / "cdi"}, sysfs_.nodes());
    return Ask(nodes, Gpu());
  }

  const FakeSysfs sysfs_;
  test::TempDir dir_;
};

TEST_F(CdiNodesTest, DeviceFilesOfASpecificationTellTheNode) {
  EXPECT_THAT(With("a.json", R"({"cdiVersion": "0.6.0", "kind": "example.com/gpu", "devices": [
      {"name": "other", "containerEdits": {"deviceNodes": [{"path": "/dev/a", "major": 259, "minor": 0, "type": "b"}]}},
      {"name": "claim-1", "containerEdits": {"deviceNodes": [
        {"path": "/dev/null", "major": 1, "minor": 3}, {"path": "/dev/gpu0", "major": 195, "minor": 0}]}}]})"),
              ElementsAre(2));
}

TEST_F(CdiNodesTest, SpecificationsMayBeYamlAndNameInterfaces) {
  EXPECT_THAT(With("a.yaml",
                   "kind: example.com/gpu\n"
                   "devices:\n"
                   "- name: claim-1\n"
                   "  containerEdits: {netDevices: [{hostInterfaceName: eth7, name: eth1}]}\n"),
              ElementsAre(2));
}

TEST_F(CdiNodesTest, SpecificationsThatAreWrongAreUnknown) {
  for (const char* text :
       {"", "{", "[]", "kind: [example.com/gpu]", "{kind: example.com/gpu, devices: 3}",
        "{kind: example.com/gpu, devices: {name: claim-1}}",
        "{kind: example.com/gpu, devices: [{name: claim-1, containerEdits: {deviceNodes: {major: "
        "195}, netDevices: {a: b}}}]}",
        "{kind: example.com/gpu, devices: [3, {name: claim-1, containerEdits: 7}]}",
        "{kind: example.com/gpu, devices: [{name: claim-1, containerEdits: {deviceNodes: [9, "
        "{major: x, path: []}]}}]}",
        "{kind: other.com/gpu, devices: [{name: claim-1, containerEdits: {deviceNodes: [{major: "
        "195, minor: 0}]}}]}"}) {
    EXPECT_THAT(With("a.json", text), IsEmpty()) << text;
  }
}

class ClaimDevicesTest : public testing::Test {
 protected:
  void Start(bool with_api) {
    ClaimDevicesOptions options{.node_name = "node1",
                                .attributes = {"numaNode"},
                                .cdi_dirs = {dir_ / "cdi"},
                                .sysfs = sysfs_.path()};
    if (with_api) {
      options.access = [this]() -> StatusOr<cluster::ClusterAccess> { return server_.access(); };
    }
    devices_ = std::make_unique<ClaimDevices>(std::move(options));
    devices_->Start();
  }

  std::vector<NearNodes> Locate(const std::vector<ClaimDevice>& devices) {
    Mutex mutex;
    std::optional<std::vector<NearNodes>> answer;
    devices_->Locate(devices, [&](std::vector<NearNodes> nodes) {
      const MutexLock lock(mutex);
      answer = std::move(nodes);
    });
    EXPECT_TRUE(Await([&] {
      const MutexLock lock(mutex);
      return answer.has_value();
    }));
    const MutexLock lock(mutex);
    return answer.value_or(std::vector<NearNodes>());
  }

  void PutCdi() {
    Write(fs::path(dir_.path()) / "cdi/a.json",
          R"({"kind": "example.com/gpu", "devices": [{"name": "claim-1", "containerEdits":
             {"deviceNodes": [{"path": "/dev/nvme0n1", "type": "b", "major": 259, "minor": 0}]}}]})");
  }
  void PutClaim() {
    server_.Put(kClaims,
                {{"metadata", {{"name", "engine-gpu"}, {"namespace", "ml"}}},
                 {"status",
                  {{"devices", json::array({{{"driver", "gpu.example.com"},
                                             {"pool", "node1"},
                                             {"device", "gpu-0"},
                                             {"networkData", {{"interfaceName", "eth7"}}}}})}}}});
  }

  const FakeSysfs sysfs_;
  test::TempDir dir_;
  FakeApiServer server_;
  std::unique_ptr<ClaimDevices> devices_;
};

TEST_F(ClaimDevicesTest, SlicesGoBeforeSpecificationsAndThoseBeforeTheClaimsStatus) {
  PutClaim();
  Start(true);
  ASSERT_TRUE(Await([&] { return Locate({Gpu()}) == std::vector<NearNodes>{{2}}; }));
  PutCdi();
  EXPECT_THAT(Locate({Gpu(), Gpu("gpu-9")}), ElementsAre(ElementsAre(1), ElementsAre(1)));
  server_.Put(kSlices, Slice({{kNumaNodeAttribute, {{"int", 0}}}}));
  EXPECT_TRUE(Await([&] { return Locate({Gpu()}) == std::vector<NearNodes>{{0}}; }));
  EXPECT_EQ(devices_->problem(), "");
}

TEST_F(ClaimDevicesTest, WithoutTheApiServerTheSpecificationsTellTheNode) {
  PutCdi();
  Start(false);
  ClaimDevice unknown = Gpu();
  unknown.cdi_ids = {"example.com/gpu=gone"};
  EXPECT_THAT(Locate({Gpu(), unknown}), ElementsAre(ElementsAre(1), IsEmpty()));
  EXPECT_THAT(server_.requests(), IsEmpty());
}

TEST_F(ClaimDevicesTest, AnApiServerThatCannotBeReachedIsAProblemAndHoldsNobodyUp) {
  PutCdi();
  ClaimDevicesOptions options{
      .node_name = "node1", .attributes = {}, .cdi_dirs = {dir_ / "cdi"}, .sysfs = sysfs_.path()};
  options.access = []() -> StatusOr<cluster::ClusterAccess> {
    return Errorf(StatusCode::kFailedPrecondition, "there is no token");
  };
  devices_ = std::make_unique<ClaimDevices>(std::move(options));
  devices_->Start();
  EXPECT_THAT(Locate({Gpu()}), ElementsAre(ElementsAre(1)));
  EXPECT_TRUE(Await([&] { return !devices_->problem().empty(); }));
  EXPECT_THAT(devices_->problem(), HasSubstr("there is no token"));
}

}  // namespace
}  // namespace qrm::manager::claim_devices_test
