// Writes configurations, starts programs and damages their databases.
#include "test/model/model_node.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "test/e2e/process.h"
#include "test/model/model_machine.h"

namespace qrm::test {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kResources = {"cpu", "memory", "NIC"};

/// The name of the plugin's program and section.
std::string ProgramOf(const std::string& resource) {
  return resource == "NIC" ? "nic" : resource;
}

std::string Lines(const std::vector<std::string>& lines, const std::string& indent) {
  std::string text;
  for (const std::string& line : lines) {
    text += indent + line + "\n";
  }
  return text;
}

std::vector<std::string> KeysOf(const std::string& resource) {
  const std::string role =
      fmt::format("roles: {{{}: {{numa: one, share-numa-with: [\"*\"]}}}}", kBoundRole);
  if (resource == "cpu") {
    return {fmt::format("reserved-cpus: \"{}\"", ToString(ReservedCpus())), role, "static: true",
            fmt::format("pools: {{{0}: {{roles: [{0}], size: {{max: {1}, per: limit, shrink-after: "
                        "0s}}}}}}",
                        kPoolRole, kMostInPool)};
  }
  if (resource == "memory") {
    return {role};
  }
  std::vector<std::string> nics;
  nics.reserve(kModelNodes);
  for (int node = 0; node < kModelNodes; ++node) {
    nics.push_back(
        fmt::format("{{interface: eth{0}, numa-node: {0}, ipv4: \"{1}\", speed-mbps: {2}}}", node,
                    NicAddress(node), kNicMbps));
  }
  return {"request: mbps", fmt::format("nics: [{}]", fmt::join(nics, ", "))};
}

Node::Options OptionsOf(const std::string& directory, const std::string& programs) {
  return {.bin_dir = programs, .work_dir = directory, .config = directory + "/qrmd.yaml"};
}

}  // namespace

ModelNode::ModelNode(std::string directory, ModelRuntime& runtime, std::string kubelet_socket)
    : directory_(std::move(directory)),
      runtime_(runtime),
      kubelet_socket_(std::move(kubelet_socket)),
      programs_(fs::canonical("/proc/self/exe").parent_path()),
      plugins_(OptionsOf(directory_, programs_)) {
  homes_ = {{"cpu", Home::kInside}, {"memory", Home::kInside}, {"NIC", Home::kProcess}};
  for (const std::string& resource : kResources) {
    registered_by_[resource] = RegisterBy::kDirectory;
  }
  fs::create_directories(Path("state/qrmd"));
}

Status ModelNode::WriteConfig() const {
  QRM_RETURN_IF_ERROR(WriteMachine(Path("machine.xml"), offline_));
  const std::string machine = fmt::format("machine: \"xml:{}\"\nnuma-memory: {{0: {}, 1: {}}}\n",
                                          Path("machine.xml"), kBytesPerNode, kBytesPerNode);
  std::ofstream config(Path("qrmd.yaml"));
  config << machine
         << "topology-policy: best-effort\n"
            "realtime-priority: 0\n"
            "pod-ended-after: 1s\n"
            "adoption-grace: 1s\n"  // plugins are moved inside and out, and switched off
            "observer-grace: 500ms\n"
            "observer-gone-after: 1s\n"
            "nri-retry-max: 500ms\n"
            "admission-deadline: 1800ms\n"  // of a machine that others use too
            "plugin-call-deadline: 1500ms\n"
            "kubelet-state-dir: \"\"\n"
            "cgroup-root: "
         << runtime_.cgroup_root() << "\n"
         << "resource-names-map: {" << kNicRequest << ": NIC}\n"
         << "kubelet-pods-socket: " << kubelet_socket_ << "\nplugins:\n";
  for (const std::string& resource : kResources) {
    if (home(resource) == Home::kInside) {
      config << "  " << ProgramOf(resource) << ":\n" << Lines(KeysOf(resource), "    ");
    }
    std::ofstream(Path(ProgramOf(resource) + ".yaml")) << machine << Lines(KeysOf(resource), "");
  }
  return config.flush()
             ? OkStatus()
             : Errorf(StatusCode::kInternal, "cannot write {}; check the disk", Path("qrmd.yaml"));
}

Status ModelNode::StartDaemon(int die_at_write) {
  std::vector<std::string> inside;
  std::size_t plugins = running_.size();
  for (const auto& [resource, home] : homes_) {
    if (home == Home::kInside) {
      inside.push_back(ProgramOf(resource));
      ++plugins;
    }
  }
  Node::Options options = OptionsOf(directory_, programs_);
  options.nri_socket = runtime_.nri_socket();
  options.cri_socket = runtime_.cri_socket();
  options.builtin_plugins = fmt::format("{}", fmt::join(inside, ","));
  options.reconcile_period = "1s";
  daemon_ = std::make_unique<Node>(options);
  ::setenv("QRM_READ_ONLY_WHILE", Path("read-only").c_str(), 1);
  ::setenv("QRM_DIE_AT_WRITE", std::to_string(die_at_write).c_str(), 1);
  const std::string preloaded =
      programs_ + "/libqrm-read-only.so:" + programs_ + "/libqrm-die-at-write.so";
  ::setenv("LD_PRELOAD", preloaded.c_str(), 1);
  const Status started = daemon_->Start(plugins);
  ::unsetenv("LD_PRELOAD");
  return started;
}

Status ModelNode::Start(int die_at_write) {
  QRM_RETURN_IF_ERROR(WriteConfig());
  QRM_RETURN_IF_ERROR(StartDaemon(die_at_write));
  for (const std::string& resource : kResources) {
    if (home(resource) == Home::kProcess && !PluginRuns(resource) && !killed_.contains(resource)) {
      QRM_RETURN_IF_ERROR(StartPlugin(resource));
    }
  }
  return OkStatus();
}

void ModelNode::Kill() {
  if (daemon_ != nullptr) {
    daemon_->KillDaemon();
  }
}

bool ModelNode::Runs() {
  return daemon_ != nullptr && daemon_->DaemonRuns();
}

void ModelNode::SetHome(const std::string& resource, Home home) {
  KillPlugin(resource);
  killed_.erase(resource);
  homes_[resource] = home;
}

void ModelNode::SetOffline(const CpuSet& cpus) {
  for (const std::string& resource : kResources) {
    KillPlugin(resource);
  }
  killed_.clear();
  offline_ = cpus;
}

void ModelNode::KillPlugin(const std::string& resource) {
  if (running_.erase(resource) > 0) {
    plugins_.KillPlugin(ProgramOf(resource));
    killed_.insert(resource);
  }
}

Status ModelNode::StartPlugin(const std::string& resource, Socket socket) {
  RegisterBy& by = registered_by_.at(resource);
  if (socket == Socket::kOther) {
    by = by == RegisterBy::kDirectory ? RegisterBy::kSocket : RegisterBy::kDirectory;
  }
  const std::string program = ProgramOf(resource);
  running_.insert(resource);
  killed_.erase(resource);
  return plugins_.StartPlugin(program, resource, Path(program + ".yaml"), by);
}

void ModelNode::EraseStateOf(const std::string& resource) const {
  for (const std::string& directory : {Path("state"), Path("state/qrmd")}) {
    for (const char* suffix : {"", "-wal", "-shm"}) {
      fs::remove(fmt::format("{}/{}_plugin.db{}", directory, resource, suffix));
    }
  }
}

void ModelNode::SetReadOnly(bool read_only) const {
  if (read_only) {
    std::ofstream(Path("read-only")) << "now";
  } else {
    fs::remove(Path("read-only"));
  }
}

Status ModelNode::ExportAndImport() {
  const std::string state = "--state-dir=" + Path("state/qrmd");
  const std::string file = Path("kubelet_qrm_checkpoint");
  const std::string qrmctl = programs_ + "/qrmctl";
  QRM_RETURN_IF_ERROR(RunCommand({qrmctl, "checkpoint", "export", file, state}).status());
  fs::remove_all(Path("state/qrmd"));
  fs::create_directories(Path("state/qrmd"));
  return RunCommand({qrmctl, "checkpoint", "import", file, state}).status();
}

std::string ModelNode::Holdings() const {
  const auto text = [](const StatusOr<std::string>& answer) {
    return answer.ok() ? *answer : MessageOf(answer.status());
  };
  std::string all = "on record:\n" + text(daemon_->Qrmctl({"pods"}));
  for (const std::string& resource : running_) {
    all += fmt::format("the {} plugin: {}\n", resource, text(plugins_.ExportState(resource)));
  }
  return all;
}

std::string ModelNode::LogEnd() const {
  constexpr std::size_t kEnd = 60000;
  std::ifstream file(Path("logs/qrmd.log"));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return text.substr(text.size() > kEnd ? text.size() - kEnd : 0);
}

}  // namespace qrm::test
