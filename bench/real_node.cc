// Wires qrmd's options, the plugins' configurations and the pods together.
#include "bench/real_node.h"

#include <utility>

#include <fmt/format.h>

#include "api/base/check.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"

namespace qrm::bench {
namespace {

test::PodSpec PodOf(std::size_t number, Kind kind) {
  const placement::ContainerDemand demand = BenchNode::DemandOf(number, kind);
  const int64_t milli_cpus = kind == Kind::kPinned ? 4000 : 500;
  return {.name = demand.pod.name,
          .uid = demand.pod.uid,
          .pod_namespace = demand.pod.pod_namespace,
          .labels = demand.pod.labels,
          .annotations = demand.pod.annotations,
          .container = {.milli_cpus = milli_cpus, .memory_bytes = 1 << 20, .cpu_limit = true}};
}

}  // namespace

void Must(const Status& status) {
  if (!status.ok()) {
    fmt::print(stderr, "{}\n", MessageOf(status));
  }
  QRM_CHECK(status.ok());
}

RealNode::RealNode(const std::string& directory, const std::string& bin_dir, PluginsIn plugins_in,
                   const std::string& reconcile_period)
    : directory_(directory),
      plugins_in_(plugins_in),
      runtime_(std::make_unique<test::SimulatedRuntime>(directory)),
      node_(new test::Node(
          {.bin_dir = bin_dir,
           .work_dir = directory,
           .config = WriteDaemonConfig(directory),
           .nri_socket = runtime_->nri_socket(),
           .cri_socket = runtime_->cri_socket(),
           .builtin_plugins = plugins_in == PluginsIn::kDaemon ? "cpu,memory,nic" : "",
           .reconcile_period = reconcile_period,
           .metrics_address = "127.0.0.1:0"})) {}

RealNode::~RealNode() = default;

void RealNode::Stop() {
  Must(node_->Stop());
}

void RealNode::Reconcile() {
  Must(node_->Reconcile());
}

pid_t RealNode::pid() const {
  return node_->daemon_pid();
}

void RealNode::Start(std::size_t containers) {
  Must(node_->Start(plugins_in_ == PluginsIn::kDaemon ? 3 : 0));
  if (plugins_in_ == PluginsIn::kProcesses) {
    for (const auto& [name, resource] : PluginResources()) {
      Must(node_->StartPlugin(name, resource, WritePluginConfig(directory_, name)));
    }
  }
  QRM_CHECK(test::Await([&] {
    const auto status = node_->GetStatus();
    return status.ok() && status->ready() && status->containers() == containers;
  }));
}

void RealNode::StartUnasked() {
  const int before = runtime_->synchronizations();
  Must(node_->Launch());
  QRM_CHECK(runtime_->WaitForSynchronizations(before + 1));
}

std::chrono::nanoseconds RealNode::Run(std::size_t number, Kind kind) {
  Must(runtime_->RunPod(PodOf(number, kind)));
  return runtime_->last_creation();
}

void RealNode::Remove(std::size_t number) {
  Must(runtime_->RemovePod(BenchNode::DemandOf(number, Kind::kPinned).pod.name));
}

}  // namespace qrm::bench
