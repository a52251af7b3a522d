// qrmctl on a control server with a sample node.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "manager/control/control_server.h"
#include "manager/observability/subsystems.h"
#include "test/support/fake_node_services.h"
#include "test/support/fake_plugins.h"
#include "test/support/fake_snapshots.h"
#include "test/support/sample_node.h"
#include "test/support/temp_dir.h"
#include "test/tools/qrmctl/typed.h"

namespace qrm::manager::cli {

class QrmctlTest : public testing::Test, protected Typed {
 protected:
  void Serve() {
    const Status started = server_.Start(socket_);
    ASSERT_TRUE(started.ok()) << started;
  }

  /// Runs qrmctl with its socket; the exit code.
  int Run(Args args) {
    args.insert(args.end(), {"--control-socket", socket_});
    return RunAsTyped(args);
  }

  /// Two pods: one with exclusive CPUs, memory and a NIC, one in a pool.
  void AdmitTwoPods() {
    checkpoint::PodMeta db = test::SamplePod("db", "shop");
    db.role = "storage";
    checkpoint::Change change =
        test::Admit(db, "main",
                    {{"cpu", test::OwnCpus("1-2")},
                     {"memory", test::NodeMemory({{0, 2 * test::kGiB}})},
                     {"nic", ResourceAllocation{.quantity = 10,
                                                .envs = {{"AFFINITY_NIC_ADDR_IPV4", "10.0.0.1"}},
                                                .mounts = {{"/etc/nic", "/run/nic/eth0", true}},
                                                .devices = {{"/dev/vf0", "/dev/vfio/7", "rw"}}}}});
    change.put_containers[0].record.requests = {{"cpu", 2},
                                                {"memory", static_cast<double>(2 * test::kGiB)}};
    change.put_containers[0].record.request_source = "estimate";
    change.put_containers[0].record.applied = {{"CpusetCpus", "1-2"}, {"CpusetMems", "0"}};
    snapshots_.Apply(change);
    snapshots_.Apply(test::Admit(test::SamplePod("web", "shop"), "main",
                                 {{"cpu", test::SharedCpus("3-7", 0.5)}}));
    node_.runtime_ids = {{{"uid-db", "main"}, "4f3c2b1a"}};
  }

  void SetUsualStatus() {
    const auto now = std::chrono::steady_clock::now();
    NodeStatus status;
    status.version = "1.2.3";
    status.started = now - std::chrono::hours(4) - std::chrono::minutes(7);
    status.runtime = {.mode = RuntimeMode::kNri,
                      .runtime = {.name = "containerd", .version = "v1.7.24"},
                      .nri_connected = true,
                      .nri_connects = 1,
                      .last_sync = now - std::chrono::minutes(5) - std::chrono::seconds(12),
                      .cri_reachable = true};
    status.reconcile = {.period = std::chrono::milliseconds(3000),
                        .last = now - std::chrono::seconds(2),
                        .runs = 4920,
                        .updates = 3,
                        .failures = 1,
                        .last_problem = "cannot update container x: busy; will try again"};
    status.topology_policy = "best-effort";
    status.state_path = "/var/lib/qrm/state";
    status.warnings = {"node 1 has lost CPU 7: its containers moved"};
    status.requests.source = "kubelet's Pods API";
    SetStatus(status);
  }

  /// `status` with its subsystems, since the start of qrmd.
  void SetStatus(NodeStatus status) {
    status.subsystems = SubsystemsOf(
        status, {.plugins = plugins_.infos, .classes = {}, .pods = 2, .containers = 2});
    for (SubsystemStatus& subsystem : status.subsystems) {
      subsystem.since = status.started;
    }
    node_.SetStatus(status);
  }

  test::TempDir dir_;
  const std::string socket_ = dir_ / "control.sock";
  test::FakeSnapshots snapshots_;
  test::FakePlugins plugins_;
  test::FakeNodeServices node_;
  const Machine machine_ = test::SampleMachine();
  ControlServer server_{snapshots_, plugins_, machine_, node_};
};

}  // namespace qrm::manager::cli
