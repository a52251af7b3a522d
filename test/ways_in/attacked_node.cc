// Starts qrmd on a simulated runtime.
#include "test/ways_in/attacked_node.h"

#include <fstream>
#include <mutex>
#include <utility>

namespace qrm::test {
namespace {

/// charts/qrm/values.yaml.
constexpr std::size_t kLimitBytes = std::size_t{256} << 20;
constexpr int kResidents = 100;
constexpr int kLabels = 200;

constexpr char kConfig[] = R"(
machine: "synthetic:package:2 [numa] core:32 pu:1"
numa-memory: {0: 64Gi, 1: 64Gi}
)";

}  // namespace

AttackedNode::AttackedNode(DaemonAttack attack, const std::string& bin_dir)
    : attack_(std::move(attack)), limit_(kLimitBytes) {
  DaemonSetup setup{.dir = dir_.path(), .config = kConfig};
  if (attack_.prepare) {
    attack_.prepare(setup);
  }
  std::ofstream(dir_ / "qrmd.yaml") << setup.config;
  peer_ = setup.peer;
  node_ = std::make_unique<Node>(Node::Options{.bin_dir = bin_dir,
                                               .work_dir = dir_ / "node",
                                               .config = dir_ / "qrmd.yaml",
                                               .nri_socket = runtime_.nri_socket(),
                                               .cri_socket = runtime_.cri_socket(),
                                               .builtin_plugins = "cpu,memory",
                                               .flags = setup.flags});
}

Status AttackedNode::Start() {
  QRM_RETURN_IF_ERROR(node_->Start(2));
  limit_.Add(node_->daemon_pid());
  for (int i = 0; i < kResidents; ++i) {
    PodSpec pod{.name = "resident" + std::to_string(i), .uid = "uid-r" + std::to_string(i)};
    for (int label = 0; label < kLabels; ++label) {
      pod.labels["label" + std::to_string(label)] = std::string(60, 'x') + std::to_string(i);
    }
    QRM_RETURN_IF_ERROR(runtime_.RunPod(pod));
  }
  return Serve().status();
}

StatusOr<std::chrono::nanoseconds> AttackedNode::Serve() {
  const std::shared_lock connected(connected_);
  const std::string name = "honest" + std::to_string(++admitted_);
  QRM_RETURN_IF_ERROR(
      runtime_.RunPod({.name = name, .uid = "uid-" + name, .container = {.milli_cpus = 500}}));
  const auto [begin, end] = runtime_.CreationOf(name);
  QRM_RETURN_IF_ERROR(runtime_.RemovePod(name));
  return end - begin;
}

Status AttackedNode::Attack() {
  AttackedDaemon daemon{.dir = dir_.path(),
                        .node = *node_,
                        .runtime = runtime_,
                        .peer = peer_.get(),
                        .connected = connected_};
  attack_.run(daemon);
  return OkStatus();
}

}  // namespace qrm::test
