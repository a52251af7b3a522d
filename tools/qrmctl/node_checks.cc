// Reads the files of a node below its root directory.
#include "tools/qrmctl/node_checks.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/foreign_text.h"
#include "api/base/section.h"
#include "api/base/unix_socket.h"
#include "manager/kubelet/kubelet_policy.h"

namespace qrm::manager::cli {
namespace {

namespace fs = std::filesystem;
using State = NodeCheck::State;

/// The first bytes of a file; empty if it cannot be read.
std::string TextOf(const std::string& file) {
  constexpr std::size_t kMost = 1 << 20;
  std::ifstream stream(file);
  std::string text(kMost, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(kMost));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

std::string LineOf(const std::string& file) {
  const std::string text = TextOf(file);
  return Quoted(text.substr(0, text.find('\n')));
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// The first two numbers of "6.1.0-18" or "v1.7.24".
std::pair<int, int> VersionOf(std::string_view text) {
  std::pair<int, int> version{0, 0};
  text.remove_prefix(std::min(text.size(), text.find_first_of("0123456789")));
  const char* const end = text.end();
  const auto major = std::from_chars(text.begin(), end, version.first);
  if (major.ec == std::errc() && major.ptr != end && *major.ptr == '.') {
    std::from_chars(major.ptr + 1, end, version.second);
  }
  return version;
}

struct Process {
  std::string pid;
  std::string program;  ///< without its directory
};

std::vector<Process> Processes(const std::string& root) {
  std::vector<Process> processes;
  std::error_code error;
  for (fs::directory_iterator at(root + "/proc", error), end; !error && at != end;
       at.increment(error)) {
    const std::string pid = at->path().filename();
    if (pid.find_first_not_of("0123456789") == std::string::npos) {
      const std::string line = TextOf(at->path() / "cmdline");
      processes.push_back({pid, fs::path(line.substr(0, line.find('\0'))).filename()});
    }
  }
  return processes;
}

NodeCheck CheckKernel(const NodePaths& node) {
  const std::string release = LineOf(node.root + "/proc/sys/kernel/osrelease");
  if (release.empty()) {
    return {"kernel", State::kFailing, "not a Linux node: there is no /proc/sys/kernel/osrelease",
            "run qrmctl doctor on the node, or name its root directory with --fsroot"};
  }
  constexpr std::pair kOldest(5, 0);  // cgroup v2 has cpusets
  return VersionOf(release) < kOldest
             ? NodeCheck{"kernel", State::kFailing, release, "update the kernel to 5.0 or newer"}
             : NodeCheck{"kernel", State::kOk, release, ""};
}

NodeCheck CheckCgroups(const NodePaths& node) {
  const std::string root = node.root + node.cgroup_root;
  const std::string controllers = " " + LineOf(root + "/cgroup.controllers") + " ";
  if (controllers.find(" cpuset ") != std::string::npos) {
    return {"cgroups", State::kOk, "cgroup v2 with cpuset", ""};
  }
  if (Exists(root + "/cgroup.controllers")) {
    return {"cgroups", State::kFailing, "cgroup v2 without cpuset",
            "remove cgroup_disable=cpuset from the kernel's command line"};
  }
  if (Exists(root + "/cpuset/cpuset.cpus")) {
    return {"cgroups", State::kOk, "cgroup v1 with cpuset", ""};
  }
  return {"cgroups", State::kFailing, "no cgroups at " + node.cgroup_root,
          "mount cgroup v2 there, or set cgroup-root to its directory"};
}

/// A socket of another runtime that this node has; empty: none.
std::string OtherRuntime(const NodePaths& node) {
  for (const char* socket : {"/run/containerd/containerd.sock", "/run/crio/crio.sock",
                             "/run/k3s/containerd/containerd.sock"}) {
    if (socket != node.cri_socket && Exists(node.root + socket)) {
      return socket;
    }
  }
  return "";
}

NodeCheck CheckCriSocket(const NodePaths& node) {
  NodeCheck check{"runtime", State::kFailing, "nothing listens on " + node.cri_socket, ""};
  switch (const int error = ProbeSocket(node.root + node.cri_socket); error) {
    case 0:
      return {"runtime", State::kOk, "listens on " + node.cri_socket, ""};
    case ENOENT: {
      const std::string other = OtherRuntime(node);
      check.cure = other.empty() ? "install containerd or CRI-O, or set cri-socket to its socket"
                                 : fmt::format("set cri-socket: {}", other);
      return check;
    }
    case ECONNREFUSED:
      check.cure = "start the runtime: systemctl start containerd, or crio";
      return check;
    case EACCES:
    case EPERM:
      return {"runtime", State::kDegraded, "this user may not open " + node.cri_socket,
              "run qrmctl doctor as root"};
    default:
      check.found = fmt::format("{}: {}", node.cri_socket, std::strerror(error));
      check.cure = "set cri-socket to the runtime's socket";
      return check;
  }
}

// The socket is not connected to: the runtime would wait for a plugin's registration.
NodeCheck CheckNri(const NodePaths& node) {
  if (Exists(node.root + node.nri_socket)) {
    return {"NRI", State::kOk, "on: " + node.nri_socket, ""};
  }
  if (node.cri_socket.find("crio") != std::string::npos) {
    return {"NRI", State::kDegraded, "off: no " + node.nri_socket,
            "set enable_nri = true under [crio.nri] in /etc/crio/crio.conf, and restart crio"};
  }
  const bool configured =
      TextOf(node.root + "/etc/containerd/config.toml").find("io.containerd.nri.v1.nri") !=
      std::string::npos;
  return {"NRI", State::kDegraded, "off: no " + node.nri_socket,
          fmt::format("{} disable = false under [plugins.\"io.containerd.nri.v1.nri\"] in "
                      "/etc/containerd/config.toml, and restart containerd",
                      configured ? "set" : "add")};
}

/// A key of kubelet's configuration; empty when it is not there.
std::string KubeletKey(const NodePaths& node, std::string_view parent, std::string_view key) {
  const auto file = config::Section::Load(node.root + node.kubelet_dir + "/config.yaml");
  if (!file.ok()) {
    return "";
  }
  const auto section = parent.empty() ? *file : file->Child(parent).value_or(*file);
  return section.Text(key, "").value_or("");
}

bool HasKubelet(const NodePaths& node) {
  return !node.kubelet_dir.empty() && Exists(node.root + node.kubelet_dir);
}

NodeCheck CheckKubeletPolicies(const NodePaths& node) {
  const std::string name = "kubelet policies";
  if (!HasKubelet(node)) {
    return {name, State::kOk, "no kubelet on this node", ""};
  }
  const std::string dir = node.root + node.kubelet_dir;
  if (const auto conflicts = KubeletPolicy(dir).Conflicts(); !conflicts.empty()) {
    const std::string& text = conflicts.begin()->second;
    const std::size_t end = text.find("; ");
    return {name, State::kFailing, text.substr(0, end), text.substr(end + 2)};
  }
  for (const char* key : {"cpuManagerPolicy", "memoryManagerPolicy"}) {
    const std::string policy = KubeletKey(node, "", key);
    if (policy == "static" || policy == "Static") {
      return {name, State::kFailing, fmt::format("{}: {}", key, policy),
              fmt::format("set {}: {} in kubelet's configuration, remove kubelet's state file and "
                          "restart kubelet",
                          key, policy == "static" ? "none" : "None")};
    }
  }
  const std::string topology = KubeletKey(node, "", "topologyManagerPolicy");
  if (topology == "restricted" || topology == "single-numa-node") {
    return {name, State::kDegraded, "topologyManagerPolicy: " + topology,
            "set topologyManagerPolicy: best-effort, and qrmd's topology-policy instead"};
  }
  return {name, State::kOk, "kubelet does not pin containers", ""};
}

NodeCheck CheckKubeletGates(const NodePaths& node) {
  const std::string name = "kubelet gates";
  if (!node.kubelet_url.empty()) {
    return {name, State::kOk, "kubelet-url reports pod specs", ""};
  }
  if (node.pods_socket.empty()) {
    return {name, State::kOk, "requests are estimated, as configured", ""};
  }
  if (Exists(node.root + node.pods_socket)) {
    return {name, State::kOk, "PodsAPI is on: " + node.pods_socket, ""};
  }
  if (!HasKubelet(node)) {
    return {name, State::kOk, "no kubelet on this node", ""};
  }
  if (KubeletKey(node, "featureGates", "PodsAPI") == "true") {
    return {name, State::kDegraded, "PodsAPI is set, but there is no " + node.pods_socket,
            "update kubelet to 1.36 or newer and restart it, or set kubelet-url"};
  }
  return {name, State::kDegraded, "PodsAPI is off: requests of pods are estimated",
          "set featureGates: {PodsAPI: true} in kubelet's configuration (Kubernetes 1.36), or set "
          "kubelet-url (1.33)"};
}

NodeCheck CheckIrqbalance(const NodePaths& node, const std::vector<Process>& processes) {
  for (const Process& process : processes) {
    if (process.program != "irqbalance") {
      continue;
    }
    const std::string socket = fmt::format("/run/irqbalance/irqbalance{}.sock", process.pid);
    if (Exists(node.root + socket)) {
      return {"irqbalance", State::kOk, "running; qrm asks it to leave out exclusive CPUs", ""};
    }
    return {"irqbalance", State::kDegraded,
            "running without a socket: it moves interrupts to exclusive CPUs",
            "update irqbalance to 1.5 or newer, or stop it: systemctl disable --now irqbalance"};
  }
  return {"irqbalance", State::kOk, "not running", ""};
}

NodeCheck CheckResctrl(const NodePaths& node) {
  if (!node.uses_rdt) {
    return {"resctrl", State::kOk, "not used: class-types has no rdt", ""};
  }
  if (Exists(node.root + "/sys/fs/resctrl/schemata")) {
    return {"resctrl", State::kOk, "mounted", ""};
  }
  const bool known = TextOf(node.root + "/proc/filesystems").find("resctrl") != std::string::npos;
  return {
      "resctrl", State::kDegraded, known ? "not mounted" : "not supported by this machine",
      known ? "mount it: mount -t resctrl resctrl /sys/fs/resctrl" : "remove rdt from class-types"};
}

/// Whether a line of the TOML file sets `key` to true.
bool IsOn(const std::string& toml, std::string_view key) {
  std::istringstream lines(toml);
  for (std::string line; std::getline(lines, line);) {
    std::erase_if(line, [](char c) { return c == ' ' || c == '\t'; });
    if (line.starts_with(fmt::format("{}=true", key))) {
      return true;
    }
  }
  return false;
}

/// Runtimes read some keys themselves, and reject containers whose class they do not know.
NodeCheck CheckClassKeys(const NodePaths& node) {
  const std::string name = "class keys";
  const bool is_crio = node.cri_socket.find("crio") != std::string::npos;
  const std::string toml = TextOf(node.root + "/etc/containerd/config.toml");
  std::vector<std::string> types;
  for (const auto& [type, is_used] :
       {std::pair("rdt", node.uses_rdt), std::pair("blockio", node.uses_blockio && !is_crio)}) {
    const std::string key = fmt::format("ignore_{}_not_enabled_errors", type);
    if (is_used && (is_crio || !IsOn(toml, key))) {
      types.emplace_back(type);
    }
  }
  if (types.empty()) {
    return {name, State::kOk, "the runtime rejects none", ""};
  }
  const std::string cure =
      is_crio ? std::string()
              : fmt::format(
                    ", or set ignore_{}_not_enabled_errors = true in the table containerd of "
                    "its CRI plugin, and restart containerd",
                    fmt::join(types, "_not_enabled_errors and ignore_"));
  return {name, State::kDegraded,
          fmt::format("{} rejects pods with {}.resources.beta.kubernetes.io",
                      is_crio ? "CRI-O" : "containerd",
                      fmt::join(types, ".resources.beta.kubernetes.io and ")),
          fmt::format("ask for classes by the keys with alpha{}", cure)};
}

NodeCheck CheckAppArmor(const NodePaths& node, const std::vector<Process>& processes) {
  if (!LineOf(node.root + "/sys/module/apparmor/parameters/enabled").starts_with('Y')) {
    return {"AppArmor", State::kOk, "off", ""};
  }
  for (const Process& process : processes) {
    const std::string profile =
        LineOf(fmt::format("{}/proc/{}/attr/current", node.root, process.pid));
    if (process.program != "qrmd" || profile.find("(enforce)") == std::string::npos) {
      continue;
    }
    const bool may_deny = node.uses_rdt && !profile.starts_with("qrm ");  // the chart's own
    return {"AppArmor", may_deny ? State::kDegraded : State::kOk, "confines qrmd: " + profile,
            may_deny ? "set appArmorProfile in the chart to {type: Unconfined}, or to {type: "
                       "Localhost, localhostProfile: qrm} with the chart's files/qrm.apparmor: "
                       "profiles of runtimes deny writes to resctrl"
                     : ""};
  }
  return {"AppArmor", State::kOk, "on, and does not confine qrmd", ""};
}

NodeCheck CheckWriters(const NodePaths& node, const std::vector<Process>& processes) {
  constexpr std::array<std::string_view, 6> kWriters = {
      "nri-resource-policy", "cri-resmgr", "katalyst-agent", "koordlet", "dracpu",
      "dra-driver-cpu"};
  for (const Process& process : processes) {
    if (std::any_of(kWriters.begin(), kWriters.end(),
                    [&](std::string_view writer) { return process.program.starts_with(writer); })) {
      return {
          "other writers", State::kFailing,
          fmt::format("{} runs with pid {} and sets cpusets", Quoted(process.program), process.pid),
          "remove it from this node, or do not install qrmd here: only one may set cpusets"};
    }
  }
  std::vector<std::string> plugins;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(node.root + "/opt/nri/plugins", error)) {
    plugins.push_back(Quoted(entry.path().filename().string()));
  }
  std::sort(plugins.begin(), plugins.end());
  if (!plugins.empty()) {
    return {"other writers", State::kDegraded,
            fmt::format("the runtime starts NRI plugins: {}", fmt::join(plugins, ", ")),
            "remove those from /opt/nri/plugins that set cpusets"};
  }
  return {"other writers", State::kOk, "none known", ""};
}

NodeCheck CheckQrmds(const std::vector<Process>& processes) {
  std::vector<std::string> pids;
  for (const Process& process : processes) {
    if (process.program == "qrmd") {
      pids.push_back(process.pid);
    }
  }
  std::sort(pids.begin(), pids.end());
  if (pids.size() > 1) {
    return {"other qrmd", State::kFailing,
            fmt::format("{} run, with pids {}", pids.size(), fmt::join(pids, ", ")),
            "stop all but one: the service qrmd, or other releases of the chart on this node"};
  }
  return {"other qrmd", State::kOk, pids.empty() ? "none runs" : "one runs, with pid " + pids[0],
          ""};
}

}  // namespace

std::string ToString(NodeCheck::State state) {
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kDegraded:
      return "degraded";
    case State::kFailing:
      break;
  }
  return "failing";
}

StatusOr<NodePaths> ReadNodePaths(const std::string& root, const std::string& file) {
  NodePaths node{.root = root};
  if (!Exists(root + file)) {
    return node;
  }
  QRM_ASSIGN_OR_RETURN(const config::Section keys, config::Section::Load(root + file));
  for (const auto& [key, place] :
       {std::pair("cgroup-root", &node.cgroup_root), std::pair("nri-socket", &node.nri_socket),
        std::pair("cri-socket", &node.cri_socket),
        std::pair("kubelet-state-dir", &node.kubelet_dir),
        std::pair("kubelet-pods-socket", &node.pods_socket),
        std::pair("kubelet-url", &node.kubelet_url)}) {
    QRM_ASSIGN_OR_RETURN(*place, keys.Text(key, *place));
  }
  QRM_ASSIGN_OR_RETURN(const config::Section types, keys.Child("class-types"));
  node.uses_rdt = types.Has("rdt");
  node.uses_blockio = types.Has("blockio");
  return node;
}

std::vector<NodeCheck> CheckNode(const NodePaths& node) {
  const std::vector<Process> processes = Processes(node.root);
  return {CheckKernel(node),
          CheckCgroups(node),
          CheckCriSocket(node),
          CheckNri(node),
          CheckKubeletPolicies(node),
          CheckKubeletGates(node),
          CheckIrqbalance(node, processes),
          CheckResctrl(node),
          CheckClassKeys(node),
          CheckAppArmor(node, processes),
          CheckWriters(node, processes),
          CheckQrmds(processes)};
}

NodeCheck CheckRuntimeVersion(const std::string& name, const std::string& version) {
  NodeCheck check{"runtime", State::kOk, fmt::format("{} {}", Quoted(name), Quoted(version)), ""};
  const std::pair<int, int> found = VersionOf(version);
  if (name == "containerd" && found < std::pair(1, 7)) {
    check.state = State::kDegraded;
    check.cure = "update containerd to 1.7.16 or newer: older ones have no NRI";
  }
  if (name == "cri-o" && found < std::pair(1, 26)) {
    check.state = State::kDegraded;
    check.cure = "update CRI-O to 1.26 or newer: older ones have no NRI";
  }
  return check;
}

}  // namespace qrm::manager::cli
