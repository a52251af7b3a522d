// Kills, damages, starts, and lets pods come and go.
#include "test/crash/damaged_node.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <sys/stat.h>

#include "api/base/errorf.h"
#include "api/id_set.h"
#include "test/support/await.h"

namespace qrm::test {
namespace {

constexpr std::chrono::milliseconds kReadyWithin{2000};
constexpr std::chrono::milliseconds kReconcilePeriod{1000};
constexpr std::size_t kOwners = 5;
constexpr std::size_t kSharers = 2;
constexpr int kOwnCpus = 3;
constexpr std::size_t kPlugins = 2;
constexpr char kOwning[] = "database";
constexpr char kSharing[] = "";

}  // namespace

DamagedNode::DamagedNode(PluginsRun plugins, const std::string& configs, FileDamage& damage)
    : plugins_(plugins),
      configs_(configs + "/"),
      damage_(damage),
      runtime_(dir_.path()),
      node_({.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
             .work_dir = dir_ / "node",
             .config = configs_ + (plugins == PluginsRun::kInside ? "builtin.yaml" : "qrmd.yaml"),
             .nri_socket = runtime_.nri_socket(),
             .cri_socket = runtime_.cri_socket(),
             .builtin_plugins = plugins == PluginsRun::kInside ? "cpu,memory" : "",
             .reconcile_period = fmt::format("{}ms", kReconcilePeriod.count())}) {}

std::string DamagedNode::LogEnd() const {
  constexpr std::size_t kEnd = 6000;
  std::ifstream file(dir_ / "node/logs/qrmd.log");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return text.substr(text.size() > kEnd ? text.size() - kEnd : 0);
}

Status DamagedNode::Start() {
  QRM_RETURN_IF_ERROR(node_.Start(plugins_ == PluginsRun::kInside ? kPlugins : 0));
  if (plugins_ == PluginsRun::kAsProcesses) {
    QRM_RETURN_IF_ERROR(node_.StartPlugin("cpu", "cpu", configs_ + "cpu.yaml"));
    QRM_RETURN_IF_ERROR(node_.StartPlugin("memory", "memory", configs_ + "memory.yaml"));
  }
  for (std::size_t i = 0; i < kOwners; ++i) {
    QRM_RETURN_IF_ERROR(AddPod(kOwning));
  }
  for (std::size_t i = 0; i < kSharers; ++i) {
    QRM_RETURN_IF_ERROR(AddPod(kSharing));
  }
  return OkStatus();
}

StatusOr<std::string> DamagedNode::DamageCheckpoint(int round) {
  QRM_RETURN_IF_ERROR(Replace());  // so that the log holds the latest commits
  // A pending update is found by reading cgroups, which this runtime does not have.
  QRM_RETURN_IF_ERROR(node_.Reconcile());
  const Pins before = OwnersRunning();
  node_.KillDaemon();
  QRM_ASSIGN_OR_RETURN(const DamageReport done,
                       damage_.Apply(dir_ / "node/state/qrmd/checkpoint.db", round));
  const auto held = [&]() -> Status {
    QRM_RETURN_IF_ERROR(StartOnDamage());
    if (done.forbidden) {
      QRM_RETURN_IF_ERROR(ExpectNothingAdmitted());
      QRM_RETURN_IF_ERROR(damage_.Undo());
    } else {
      QRM_RETURN_IF_ERROR(node_.Reconcile());  // containers that are on record no more are placed
    }
    QRM_RETURN_IF_ERROR(ExpectAdmissions());
    return ExpectAgreement();
  };
  QRM_RETURN_IF_ERROR(Annotate(held(), done.what + " of the checkpoint"));
  QRM_RETURN_IF_ERROR(Annotate(ExpectUnmoved(before), done.what + " of the checkpoint"));
  QRM_RETURN_IF_ERROR(Replace());
  TidyUp();
  return done.what + " of the checkpoint";
}

StatusOr<std::string> DamagedNode::DamagePlugin(int round) {
  const std::string plugin = round % 2 == 0 ? "cpu" : "memory";
  const Pins before = OwnersRunning();
  node_.KillPlugin(plugin);
  QRM_ASSIGN_OR_RETURN(const DamageReport done,
                       damage_.Apply(dir_ / ("node/state/" + plugin + "_plugin.db"), round));
  std::string what = fmt::format("{} of the {} plugin", done.what, plugin);
  const auto held = [&]() -> Status {
    const Inodes files = FilesOfState();
    QRM_RETURN_IF_ERROR(damage_.Undo());  // qrmd does not start if it cannot read its database
    QRM_RETURN_IF_ERROR(node_.StartPlugin(plugin, plugin, configs_ + plugin + ".yaml"));
    QRM_RETURN_IF_ERROR(node_.Reconcile());  // which restores its allocations
    QRM_RETURN_IF_ERROR(ExpectFiles(files));
    QRM_RETURN_IF_ERROR(ExpectAdmissions());
    return ExpectAgreement();
  };
  QRM_RETURN_IF_ERROR(Annotate(held(), what));
  QRM_RETURN_IF_ERROR(Annotate(ExpectUnmoved(before), what));
  QRM_RETURN_IF_ERROR(Replace());
  TidyUp();
  return what;
}

Status DamagedNode::ExpectUnmoved(const Pins& before) const {
  const Pins after = OwnersRunning();
  for (const auto& [uid, pinned] : before) {
    const auto runs = after.find(uid);
    if (runs != after.end() && !(runs->second == pinned)) {
      return Errorf(StatusCode::kInternal, "containers were moved: {} ran, {} run",
                    ToString(before), ToString(after));
    }
  }
  return OkStatus();
}

Status DamagedNode::AddPod(const std::string& role) {
  const std::string name = "pod" + std::to_string(next_pod_++);
  PodSpec pod = {
      .name = name,
      .uid = "uid-" + name,
      .container = {.milli_cpus = int64_t{kOwnCpus} * 1000, .memory_bytes = int64_t{1} << 30}};
  if (!role.empty()) {
    pod.labels["katalyst.kubewharf.io/pod_role"] = role;
  }
  QRM_RETURN_IF_ERROR(runtime_.RunPod(pod));
  (role == kOwning ? owners_ : sharers_)[pod.uid] = name;
  return OkStatus();
}

// Removes pods of either kind, as long as there are more than at the start.
Status DamagedNode::RemoveOldest() {
  for (StringMap* pods : {&owners_, &sharers_}) {
    while (pods->size() > (pods == &owners_ ? kOwners : kSharers)) {
      const std::string name = pods->begin()->second;
      pods->erase(pods->begin());
      QRM_RETURN_IF_ERROR(runtime_.RemovePod(name));
    }
  }
  return OkStatus();
}

Status DamagedNode::Replace() {
  QRM_RETURN_IF_ERROR(AddPod(kOwning));
  QRM_RETURN_IF_ERROR(AddPod(kSharing));
  return RemoveOldest();
}

Pins DamagedNode::OwnersRunning() const {
  return RunningPins(runtime_, owners_);
}

Pins DamagedNode::Running() const {
  StringMap all = owners_;
  all.insert(sharers_.begin(), sharers_.end());
  return RunningPins(runtime_, all);
}

DamagedNode::Inodes DamagedNode::FilesOfState() const {
  Inodes inodes;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_ / "node/state")) {
    struct stat file = {};
    const std::string name = entry.path().string();
    const bool lasts = !name.ends_with("-shm") && name.find("/decisions.") == std::string::npos;
    if (lasts && ::lstat(name.c_str(), &file) == 0) {
      inodes[file.st_ino] = name;
    }
  }
  return inodes;
}

Status DamagedNode::ExpectFiles(const Inodes& before) const {
  const Inodes after = FilesOfState();
  for (const auto& [inode, name] : before) {
    if (!after.contains(inode)) {
      return Errorf(StatusCode::kInternal, "what was at {} is gone", name);
    }
  }
  return OkStatus();
}

// While the disk fails no pod is admitted, which ExpectNothingAdmitted checks.
bool DamagedNode::IsReadyButForTheDisk(const v1::GetStatusResponse& status) {
  return std::all_of(status.not_ready_reasons().begin(), status.not_ready_reasons().end(),
                     [](const std::string& reason) {
                       return reason.find("while the disk accepts no writes") != std::string::npos;
                     });
}

Status DamagedNode::StartOnDamage() {
  const Inodes before = FilesOfState();
  const auto begin = std::chrono::steady_clock::now();
  QRM_RETURN_IF_ERROR(node_.Start(kPlugins));
  QRM_ASSIGN_OR_RETURN(const v1::GetStatusResponse status, node_.GetStatus());
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  slowest_ = std::max(slowest_, took);
  if (!IsReadyButForTheDisk(status) || took > kReadyWithin) {
    return Errorf(StatusCode::kInternal, "not ready after {} ms: {}", took.count(),
                  status.ShortDebugString());
  }
  return ExpectFiles(before);
}

Status DamagedNode::ExpectNothingAdmitted() {
  const Pins before = Running();
  const Status refused = AddPod(kOwning);
  const std::string message = MessageOf(refused);
  if (refused.ok() || message.find('\n') != std::string::npos ||
      message.find("Permission denied") == std::string::npos) {
    return Errorf(StatusCode::kInternal, "admitted without a right to the disk, or said: {}",
                  message);
  }
  return Running() == before
             ? OkStatus()
             : Errorf(StatusCode::kInternal,
                      "containers were moved while the records were unknown: {} ran, {} run",
                      ToString(before), ToString(Running()));
}

// Whatever was lost, a pod with exclusive CPUs and a pod that shares CPUs are admitted, and neither
// takes CPUs of running pods; as on a node, others go.
Status DamagedNode::ExpectAdmissions() {
  for (const char* role : {kOwning, kSharing}) {
    QRM_RETURN_IF_ERROR(AddPod(role));
    QRM_RETURN_IF_ERROR(ExpectOneOwner(OwnersRunning()));
  }
  return RemoveOldest();
}

Status DamagedNode::ExpectOwners() const {
  const Pins owners = OwnersRunning();
  QRM_RETURN_IF_ERROR(ExpectOneOwner(owners));
  CpuSet owned;
  for (const auto& [uid, pinned] : owners) {
    QRM_ASSIGN_OR_RETURN(const CpuSet cpus, CpuSet::Parse(pinned.cpus));
    if (cpus.Count() != kOwnCpus) {
      return Errorf(StatusCode::kInternal, "{} is to have {} exclusive CPUs and has {}", uid,
                    kOwnCpus, pinned.cpus);
    }
    owned |= cpus;
  }
  for (const auto& [uid, pinned] : RunningPins(runtime_, sharers_)) {
    QRM_ASSIGN_OR_RETURN(const CpuSet cpus, CpuSet::Parse(pinned.cpus));
    if (cpus.Empty() || cpus.Intersects(owned)) {
      return Errorf(StatusCode::kInternal, "{} shares CPUs {} of which others own some of {}", uid,
                    pinned.cpus, ToString(owned));
    }
  }
  return OkStatus();
}

Status DamagedNode::ExpectAgreement() {
  std::map<std::string, std::function<StatusOr<Pins>()>> others = {
      {"checkpoint has", [this] { return CheckpointedPins(dir_ / "node/state/qrmd"); }}};
  if (plugins_ == PluginsRun::kAsProcesses) {
    others["plugins have"] = [this] { return GrantedPins(node_); };
  }
  QRM_RETURN_IF_ERROR(AwaitAgreement([this] { return Running(); }, others, 3 * kReconcilePeriod));
  return ExpectOwners();
}

// Files that were moved aside would fill the disk in two thousand rounds.
void DamagedNode::TidyUp() const {
  for (const auto& [inode, name] : FilesOfState()) {
    if (name.find(".aside-") != std::string::npos) {
      std::filesystem::remove_all(name);
    }
  }
}

}  // namespace qrm::test
