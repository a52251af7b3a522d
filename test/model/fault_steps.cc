// The faults of the node.
#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "test/model/model_machine.h"
#include "test/model/player.h"
#include "test/model/records.h"
#include "test/support/await.h"

namespace qrm::test {
std::string Player::DrawResource(Random& random, const std::vector<std::string>& among) {
  std::string resource = among[static_cast<std::size_t>(DrawBelow(random, among.size()))];
  Note(resource);
  return resource;
}

Status Player::RuntimeRestarted(Random&) {
  if (away_for_ > 0 || observed_for_ > 0 || dying_) {
    runtime_.Restart();
    return OkStatus();
  }
  const int before = runtime_.synchronizations();
  runtime_.Restart();
  settled_ = false;
  books_.NoteRestart(std::chrono::steady_clock::now());
  return runtime_.WaitForConnection(before)
             ? OkStatus()
             : Errorf(StatusCode::kInternal, "qrmd did not connect again within 10 s");
}

// The runtime leaves some containers out of its next list, and perhaps out of the list that qrmd
// asks for. An owner that comes meanwhile makes sharers move.
Status Player::LeftOut(Random& random) {
  constexpr std::chrono::seconds kFollowed{20};
  QRM_RETURN_IF_ERROR(BringBack());
  std::set<std::string> ids;
  for (const Box& box : runtime_.Boxes()) {
    if (Lives(box) && random() % 2 == 0) {
      ids.insert(box.id);
    }
  }
  const int times = 1 + DrawBelow(random, 2);
  Note(fmt::format("{} containers, {} times", ids.size(), times));
  const int before = runtime_.synchronizations();
  runtime_.LeaveOut(std::move(ids), times);
  runtime_.Restart();
  settled_ = false;
  books_.NoteRestart(std::chrono::steady_clock::now());
  if (!runtime_.WaitForConnection(before)) {
    return Errorf(StatusCode::kInternal, "qrmd did not connect again within 10 s");
  }
  QRM_RETURN_IF_ERROR(
      AdmitPod(MakePlan(PodKind::kStatic, FreshName(random), ++next_serial_, random)));
  const bool followed = Await([this] { return !runtime_.AnyUnheard(); }, kFollowed);
  runtime_.LeaveOut({}, 0);
  return followed ? OkStatus()
                  : Errorf(StatusCode::kInternal,
                           "qrmd did not ask for containers that the runtime left out within 20 s");
}

Status Player::Observer(Random& random) {
  QRM_RETURN_IF_ERROR(BringBack());
  runtime_.CloseNri();
  observed_for_ = 3 + DrawBelow(random, 10);
  settled_ = false;
  const bool observes = Await([this] {
    const StatusOr<v1::GetStatusResponse> status = node_.daemon().GetStatus();
    return status.ok() && status->runtime().mode() == "observer";
  });
  return observes ? OkStatus()
                  : Errorf(StatusCode::kInternal,
                           "qrmd does not follow the runtime over CRI 10 s after NRI went");
}

// Half of the time, what was not seen by then is left to the connection.
Status Player::EndObserver() {
  constexpr std::chrono::seconds kTimeToSee{6};
  if (steps_ % 2 == 0 && CanSettle()) {
    Note("(observed)");
    QRM_RETURN_IF_ERROR(Settle(kTimeToSee));
  }
  settled_ = false;
  const int before = runtime_.synchronizations();
  runtime_.OpenNri();
  books_.NoteRestart(std::chrono::steady_clock::now());
  return away_for_ > 0 || dying_ || runtime_.WaitForConnection(before)
             ? OkStatus()
             : Errorf(StatusCode::kInternal, "qrmd did not connect again within 10 s");
}

// What the runtime writes is older than qrmd's values, while an update is pending.
Status Player::WrittenAgain(Random&) {
  constexpr std::chrono::seconds kCorrected{6};  // one, if the machine does not stall
  for (const Box& box : runtime_.Boxes()) {
    runtime_.WriteAgain(box.id);
  }
  if (!settled_ || !CanSettle() || !AllPluginsLive()) {
    settled_ = false;
    return OkStatus();
  }
  Status held;
  Await(
      [&] {
        held = books_.CheckApart(runtime_.Boxes());
        return held.ok();
      },
      kCorrected);
  settled_ = false;  // a run gives back what others lack
  return held;
}

Status Player::Kill(Random& random) {
  node_.Kill();
  killer_.reset();
  dying_ = false;
  away_for_ = 1 + DrawBelow(random, 12);
  return OkStatus();
}

Status Player::KillSoon(Random& random) {
  QRM_RETURN_IF_ERROR(BringBack());
  dying_ = true;
  killer_ =
      std::make_unique<Killer>(node_.pid(), std::chrono::microseconds(DrawBelow(random, 20000)));
  return OkStatus();
}

Status Player::DieAtWrite(Random& random) {
  QRM_RETURN_IF_ERROR(BringBack());
  node_.Kill();
  dying_ = true;
  settled_ = false;
  Status started = node_.Start(DrawBelow(random, 100));
  if (started.ok() || !node_.Runs()) {
    Note(started.ok() ? "later" : "while it starts");
    return OkStatus();
  }
  return started;
}

Status Player::ReadOnly(Random& random) {
  read_only_for_ = 1 + DrawBelow(random, 15);
  node_.SetReadOnly(true);
  settled_ = false;
  return OkStatus();
}

Status Player::UpdatesFail(Random& random) {
  updates_fail_for_ = 1 + DrawBelow(random, 15);
  settled_ = false;
  runtime_.SetUpdates(random() % 2 == 0 ? ModelRuntime::Updates::kFail
                                        : ModelRuntime::Updates::kFailLate);
  return OkStatus();
}

Status Player::PluginLost(Random& random) {
  std::vector<std::string> processes;
  for (const char* resource : {"cpu", "memory", "NIC"}) {
    if (node_.home(resource) == Home::kProcess && node_.PluginRuns(resource)) {
      processes.emplace_back(resource);
    }
  }
  if (processes.empty()) {
    return OkStatus();
  }
  const std::string resource = DrawResource(random, processes);
  node_.KillPlugin(resource);
  lost_[resource] = 1 + DrawBelow(random, 20);
  settled_ = false;
  return OkStatus();
}

Status Player::PluginEmptied(Random& random) {
  QRM_RETURN_IF_ERROR(BringBack());
  const std::string resource = DrawResource(random, {"cpu", "memory", "NIC"});
  if (node_.home(resource) == Home::kProcess) {
    node_.KillPlugin(resource);
    node_.EraseStateOf(resource);
    return StartPlugin(resource);
  }
  node_.Kill();
  node_.EraseStateOf(resource);
  return RestartDaemon();
}

Status Player::PluginReplaced(Random& random) {
  QRM_RETURN_IF_ERROR(BringBack());
  const std::string resource = DrawResource(random, {"cpu", "memory", "NIC"});
  if (node_.home(resource) != Home::kProcess) {
    return OkStatus();
  }
  node_.KillPlugin(resource);
  return StartPlugin(resource, ModelNode::Socket::kOther);
}

// Moves a plugin from qrmd to a process, with its old database or none, and back.
Status Player::PluginMoved(Random& random) {
  QRM_RETURN_IF_ERROR(BringBack());
  const std::string resource = DrawResource(random, {"cpu", "memory", "NIC"});
  if (node_.home(resource) == Home::kOff) {
    return OkStatus();
  }
  const Home home = node_.home(resource) == Home::kInside ? Home::kProcess : Home::kInside;
  Note(home == Home::kInside ? "inside" : "outside");
  node_.Kill();
  lost_.erase(resource);
  node_.SetHome(resource, home);
  return RestartDaemon();
}

Status Player::PluginOff(Random& random) {
  QRM_RETURN_IF_ERROR(BringBack());
  const std::string resource = DrawResource(random, {"memory", "NIC"});
  if (node_.home(resource) == Home::kOff) {
    return OkStatus();
  }
  off_[resource] = {.steps = 5 + DrawBelow(random, 40), .home = node_.home(resource)};
  node_.Kill();
  lost_.erase(resource);
  node_.SetHome(resource, Home::kOff);
  return RestartDaemon();
}

// A peer's file has no labels: no container is in a pool by them then.
Status Player::Import(Random&) {
  QRM_RETURN_IF_ERROR(BringBack());
  std::vector<std::string> pooled;
  for (auto& [uid, pod] : books_.pods()) {
    pod.imported = true;
    if (pod.plan.is_pooled()) {
      pooled.push_back(uid);
    }
  }
  for (const std::string& uid : pooled) {
    RemovePod(uid);
  }
  node_.Kill();
  QRM_RETURN_IF_ERROR(node_.ExportAndImport());
  return RestartDaemon();
}

// A core goes offline, or all are online again.
Status Player::Cpus(Random& random) {
  QRM_RETURN_IF_ERROR(BringBack());
  CpuSet offline;
  if (node_.offline().Empty()) {
    const int first = DrawBelow(random, kModelNodes) * kCpusPerNode +
                      2 * (1 + DrawBelow(random, kCpusPerNode / 2 - 1));
    offline = {first, first + 1};
  }
  Note("offline: " + ToString(offline));
  node_.Kill();
  lost_.clear();
  node_.SetOffline(offline);
  books_.SetOnline(AllCpus() - offline, runtime_.Boxes());
  return RestartDaemon();
}

}  // namespace qrm::test
