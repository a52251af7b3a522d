// qrmctl play -f FILE
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "api/base/clock.h"
#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/proto/core/v1/pod.pb.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "manager/demand/pod_spec.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/played_pod.h"
#include "tools/qrmctl/pod_file.h"
#include "tools/qrmctl/pod_tables.h"

namespace qrm::manager::cli {
namespace {

/// Where the runtime does not ask qrmd before it makes a container, qrmd places it soon after.
constexpr std::chrono::seconds kAdmissionTimeout{10};
constexpr std::chrono::milliseconds kBetweenLooks{100};
/// Between two looks at the containers of a pod that is kept running.
constexpr std::chrono::seconds kBetweenStatuses{1};

/// While it lives, a signal that ends programs waits, so that what was made is removed first.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&held_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      sigaddset(&held_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &held_, &former_);
  }
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &former_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  /// Whether one has come within `time`.
  bool ComeWithin(std::chrono::seconds time) const {
    const timespec limit{.tv_sec = time.count(), .tv_nsec = 0};
    return sigtimedwait(&held_, nullptr, &limit) > 0;
  }

 private:
  sigset_t held_{};
  sigset_t former_{};
};

std::string NewUid() {
  std::string uid;
  std::ifstream("/proc/sys/kernel/random/uuid") >> uid;
  return uid;
}

/// What crictl takes, too.
std::string DefaultRuntime() {
  const char* named = std::getenv("CONTAINER_RUNTIME_ENDPOINT");
  return named != nullptr && *named != '\0' ? named : "/run/containerd/containerd.sock";
}

/// The path of the socket, with or without a scheme before it.
std::string WithoutScheme(const std::string& endpoint) {
  constexpr std::string_view kUnixScheme = "unix://";
  return endpoint.starts_with(kUnixScheme) ? endpoint.substr(kUnixScheme.size()) : endpoint;
}

/// Names `image` for every container unless it is empty. Errors: kInvalidArgument for what cannot
/// be played.
Status CheckPlayable(const std::string& image, PodFile& file) {
  if (!file.pod->spec().init_containers().empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "the pod has init containers, which are not played; leave them out");
  }
  for (std::size_t i = 0; i < file.programs.size(); ++i) {
    if (!image.empty()) {
      file.programs[i].image = image;
    }
    if (file.programs[i].image.empty()) {
      return Errorf(StatusCode::kInvalidArgument,
                    "container {} has no image; add it, or name one with --image",
                    Escaped(file.pod->spec().containers(static_cast<int>(i)).name()));
    }
  }
  return OkStatus();
}

/// What qrmd has on record of the pod, as soon as it has all of its containers.
StatusOr<v1::ListPodsResponse> AwaitPlaced(const ControlClient& qrmd, const std::string& uid,
                                           int containers) {
  v1::ListPodsRequest request;
  request.set_pod(uid);
  const Deadline deadline = DeadlineAfter(kAdmissionTimeout);
  while (true) {
    auto pods = qrmd.Ask<v1::ListPodsResponse>(request);
    const bool is_whole = pods.ok() && pods->pods(0).containers_size() >= containers;
    const bool is_unknown = pods.status().code() == StatusCode::kNotFound;
    if (is_whole || (!pods.ok() && !is_unknown)) {
      return pods;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return Errorf(
          StatusCode::kDeadlineExceeded,
          "the pod runs, but qrmd has not placed it within {} s: qrmd skips such pods, or "
          "does not see them; see qrmctl status and qrmctl explain",
          kAdmissionTimeout.count());
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

struct Play {
  OutputFormat format = OutputFormat::kTable;
  std::string socket;
  std::string file;
  std::string runtime;
  std::string cgroup_parent;
  std::string image;
  std::string uid;
  bool wait = false;
};

/// Shows why the pod was placed as it was. A failure of that is ignored.
void Explain(const Play& play, const std::string& uid, std::ostream& out) {
  std::ostringstream ignored;
  RunExplain({uid, "--control-socket", play.socket}, out, ignored);
}

Status ShowPlayed(const Play& play, const PodFile& file, std::ostream& out) {
  const ControlClient qrmd(play.socket);
  const std::string& uid = file.pod->metadata().uid();
  QRM_ASSIGN_OR_RETURN(const v1::ListPodsResponse pods,
                       AwaitPlaced(qrmd, uid, file.pod->spec().containers_size()));
  if (play.format.IsText()) {
    PrintSheets(pods, out);
    out << '\n';
    Explain(play, uid, out);
  } else {
    PrintMessage(pods, play.format, out);
  }
  return OkStatus();
}

/// Reports containers that end, until a signal comes.
void AwaitInterrupt(const HeldSignals& signals, PlayedPod& pod, std::ostream& err) {
  bool is_told = false;
  while (!signals.ComeWithin(kBetweenStatuses)) {
    const auto ended = pod.NewlyEnded();
    for (const std::string& sentence : ended.value_or(std::vector<std::string>())) {
      err << "qrmctl play: " << Escaped(sentence) << '\n' << std::flush;
    }
    if (!ended.ok() && !std::exchange(is_told, true)) {
      err << "qrmctl play: " << Escaped(MessageOf(ended.status())) << '\n' << std::flush;
    }
  }
}

/// Runs the pod, shows its allocations, and removes it in any case.
Status PlayPod(const Play& play, const PodFile& file, std::ostream& out, std::ostream& err) {
  const HeldSignals signals;  // before the first call makes threads, which then hold them, too
  v1::AnnouncePodRequest announced;
  announced.set_pod(file.pod->SerializeAsString());
  QRM_RETURN_IF_ERROR(ControlClient(play.socket).Ask<v1::AnnouncePodResponse>(announced).status());
  QRM_ASSIGN_OR_RETURN(const PodSpec spec, ParsePodMessage(announced.pod()));
  PlayedPod pod(file, spec.qos_class,
                {.runtime_socket = play.runtime, .cgroup_parent = play.cgroup_parent});
  Status played = pod.Run();
  if (played.ok()) {
    played = ShowPlayed(play, file, out);
  } else if (play.format.IsText()) {
    Explain(play, spec.uid, out);
  }
  if (played.ok() && play.wait) {
    out << (play.format.IsText() ? "\nIt runs until this is interrupted.\n" : "") << std::flush;
    AwaitInterrupt(signals, pod, err);
  }
  const Status removed = pod.Remove();
  if (removed.ok()) {
    return played;
  }
  return played.ok() ? removed : Annotate(played, MessageOf(removed));
}

}  // namespace

int RunPlay(const Args& args, std::ostream& out, std::ostream& err) {
  Play play;
  CommandLine line(
      "play",
      "Creates a pod over CRI as kubelet would, shows its allocations and why, and deletes\n"
      "it again. For plugin authors. The pod uses the host's network, and has no init\n"
      "containers, volumes or variables. Kubelet and the scheduler do not know it.",
      "qrmctl play -f pod.yaml");
  line.Output()
      .ControlSocket()
      .Option("-f,--filename", play.file,
              "a Pod, or a Deployment or the like, in YAML or JSON; - for standard input", "FILE")
      .Option("--runtime-endpoint", play.runtime,
              "the runtime's CRI socket; else $CONTAINER_RUNTIME_ENDPOINT, else containerd's",
              "SOCKET")
      .Option("--image", play.image, "the image of all containers, instead of the file's", "IMAGE")
      .Option("--cgroup-parent", play.cgroup_parent,
              "parent of the pod's cgroup, instead of the runtime's default", "PATH")
      .Option("--uid", play.uid, "the pod's UID, instead of a random one", "UID")
      .Flag("--wait", play.wait, "keep the pod running until interrupted");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  if (play.file.empty()) {
    return line.Misuse("no pod given; name its file with -f", err);
  }
  play.format = line.format();
  play.socket = line.control_socket();
  play.runtime = WithoutScheme(play.runtime.empty() ? DefaultRuntime() : play.runtime);
  auto file = ReadPodAt(play.file);
  if (!file.ok()) {
    line.Fail(file.status(), err);
    return kMisuse;
  }
  if (const Status playable = CheckPlayable(play.image, *file); !playable.ok()) {
    return line.Misuse(MessageOf(playable), err);
  }
  file->pod->mutable_metadata()->set_uid(play.uid.empty() ? NewUid() : play.uid);
  const Status played = PlayPod(play, *file, out, err);
  return played.ok() ? kDone : line.Fail(played, err);
}

}  // namespace qrm::manager::cli
