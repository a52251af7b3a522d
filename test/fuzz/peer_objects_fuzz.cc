// What the runtime, kubelet, the API server, DRA drivers, kube-scheduler, advisors and peers'
// checkpoints send: it is read, or rejected with a sentence, and an allocation counts no more than
// its pod requests.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "api/base/check.h"
#include "api/base/foreign_json.h"
#include "api/base/log.h"
#include "api/message_fields.h"
#include "api/proto/cpuadvisor/cpu.pb.h"
#include "api/proto/runtime/v1/api.pb.h"
#include "checkpoint/peer_json.h"
#include "manager/demand/pod_spec.h"
#include "manager/kubelet/cdi_nodes.h"
#include "manager/kubelet/pod_list.h"
#include "manager/kubelet/slice_nodes.h"
#include "manager/kubelet/sysfs_nodes.h"
#include "manager/runtime/cri/cri_client.h"
#include "plugins/cpu/advisor/katalyst_words.h"
#include "plugins/placement/node_model.h"
#include "plugins/rules/device_nodes.h"
#include "scheduler/cache/read_objects.h"
#include "scheduler/extender/messages.h"
#include "scheduler/topology/placement_note.h"
#include "test/fuzz/sentence.h"

namespace {

template <typename Read>
void Check(const Read& read) {
  if (!read.ok()) {
    qrm::fuzz::CheckSentence(read.status());
  }
}

const qrm::placement::NodeModel& Model() {
  static const auto model = qrm::placement::ReadNodeModel(
                                R"({machine: "synthetic:package:2 [numa(memory=8GiB)] core:4 pu:1",
                                    plugins: {cpu: {static: true, reserved-cpus: "0"}}})",
                                "n1")
                                .value();
  return *model;
}

void CheckPlacement(const std::string& text) {
  constexpr double kCpus = 2;
  const qrm::scheduler::Pod pod{
      .uid = "a",
      .pod_namespace = "ns",
      .name = "a",
      .qos_class = "Guaranteed",
      .annotations = {{qrm::scheduler::kPlacement, text}},
      .containers = {{.name = "c", .requests = {{"cpu", kCpus}, {"memory", 1 << 30}}}}};
  const auto placement = qrm::scheduler::ReadPlacement(Model(), pod);
  if (!placement.has_value()) {
    return;
  }
  if (const auto grants = placement->grants.find("cpu"); grants != placement->grants.end()) {
    for (const auto& [key, grant] : grants->second) {
      const auto cpus = qrm::CpuSet::Parse(grant.allocation->value);
      QRM_CHECK(!grant.allocation->exclusive || (cpus.ok() && cpus->Count() <= kCpus));
    }
  }
}

/// A message of kubelet or the runtime, which is cut without being read as a whole.
void CheckMessage(const std::string& text) {
  Check(qrm::manager::ParsePodMessage(text));
  static_cast<void>(qrm::manager::UidOfPodMessage(text));
  const auto rest = qrm::TakeFields(text, [](int, std::string_view) { return false; });
  const auto parts = qrm::PartsOf(text, 16);
  QRM_CHECK(rest.has_value() == parts.has_value());
  if (rest.has_value()) {
    std::string joined;
    for (const std::string_view part : *parts) {
      joined += part;
    }
    QRM_CHECK(*rest == text && joined == text);
  }
}

/// Texts within messages: a container's OCI configuration, devices' NUMA nodes, and headroom.
void CheckTextsInMessages(const std::string& text) {
  ::runtime::v1::ContainerStatusResponse status;
  (*status.mutable_info())["info"] = text;
  qrm::manager::RuntimeContainer container;
  qrm::manager::AddStatus(status, container);
  const auto devices = qrm::rules::ReadDeviceNodes({{qrm::rules::kDeviceNodesAnnotation, text}});
  QRM_CHECK(qrm::rules::ReadDeviceNodes(
                {{qrm::rules::kDeviceNodesAnnotation, qrm::rules::ToText(devices)}}) == devices);
  cpuadvisor::GetAdviceResponse advice;
  auto& values = *advice.add_extra_entries()->mutable_calculation_result()->mutable_values();
  values["cpu_numa_headroom"] = text;
  Check(qrm::cpu::AdviceIn(advice, {}));
}

/// Where DRA drivers say that their devices are: device `vendor.com/gpu=gpu0`, and slice `object`.
void CheckClaimedDevices(const std::string& text, const nlohmann::json* object) {
  for (const auto& node : qrm::manager::ReadCdiDevice(text, "vendor.com/gpu=gpu0").nodes) {
    QRM_CHECK(node.has_number || (node.major == 0 && node.minor == 0));
  }
  if (object == nullptr) {
    return;
  }
  qrm::manager::SliceNodes slices({"numa"}, qrm::manager::SysfsNodes("/nonexistent"));
  slices.OnSet(*object);
  slices.Find({.claim_namespace = {},
               .claim = {},
               .driver = "gpu.vendor.com",
               .pool = "n1",
               .device = "gpu0",
               .cdi_ids = {}},
              [](const qrm::manager::NearNodes& nodes) {
                for (const int node : nodes) {
                  QRM_CHECK(node >= 0 && node < qrm::NumaMask::kMaxIds);
                }
              });
  slices.OnDelete(*object);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  static const bool quiet = [] {
    qrm::log::SetSink([](qrm::log::Level, const std::string&) {});
    return true;
  }();
  static_cast<void>(quiet);
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto pods = qrm::manager::ParsePodList(text);
  Check(pods);
  if (pods.ok()) {
    for (const qrm::Status& unusable : pods->unusable) {
      qrm::fuzz::CheckSentence(unusable);
    }
  }
  Check(qrm::checkpoint::ParsePeerCheckpoint(text));
  const auto object = qrm::ParseJson(text);
  CheckClaimedDevices(text, object.ok() ? &*object : nullptr);
  if (object.ok()) {
    Check(qrm::scheduler::ReadPod(*object));
    Check(qrm::scheduler::ReadNode(*object));
  }
  Check(qrm::scheduler::ParseNodesQuestion(text));
  Check(qrm::scheduler::ParseBindQuestion(text));
  Check(qrm::scheduler::ParsePreemptQuestion(text));
  CheckPlacement(text);
  CheckMessage(text);
  CheckTextsInMessages(text);
  return 0;
}
