// qrmctl checkpoint verify, dump, export, import and downgrade: the state on disk, without qrmd.
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "checkpoint/peer_json.h"
#include "checkpoint/sqlite/durable_file.h"
#include "checkpoint/store.h"
#include "manager/control/control_answers.h"
#include "manager/state/state_lock.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/pod_tables.h"
#include "tools/qrmctl/text.h"

namespace qrm::manager::cli {
namespace {

constexpr char kDefaultStateDir[] = "/var/lib/qrm/state";
constexpr char kStandardStream[] = "-";

void AddStateDir(CommandLine& line, std::string& directory) {
  directory = kDefaultStateDir;
  line.Option("--state-dir", directory,
              fmt::format("where qrmd keeps checkpoint.db (default: {})", kDefaultStateDir), "DIR");
}

StatusOr<std::string> ReadPeerFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) {
    return Errorf(StatusCode::kNotFound,
                  "cannot read {}: no such file, or no right to; check the path", path);
  }
  return text;
}

std::string SizeText(std::size_t pods, std::size_t containers) {
  return fmt::format("{} with {}", CountText(pods, "pod"), CountText(containers, "container"));
}

std::size_t PodCount(const AllocationByContainer& allocations) {
  std::size_t pods = 0;
  const SharedText* last = nullptr;
  for (const auto& [key, unused] : allocations) {
    pods += last == nullptr || *last != key.pod_uid ? 1 : 0;
    last = &key.pod_uid;
  }
  return pods;
}

/// Commits `allocations` to the checkpoint in `directory`; says what had to be repaired. A running
/// qrmd would not see it, and its next change would undo it: the directory must be free.
Status Import(const std::string& directory, const AllocationByContainer& allocations,
              std::ostream& err) {
  const auto lock = StateLock::Take(directory);
  if (!lock.ok()) {
    return lock.status();
  }
  QRM_ASSIGN_OR_RETURN(const checkpoint::OpenedStore opened,
                       checkpoint::OpenSqliteStore(directory));
  for (const std::string& repair : opened.repairs) {
    err << "note: " << repair << '\n';
  }
  return opened.store->Commit(checkpoint::ImportChange(opened.state, allocations));
}

}  // namespace

int RunCheckpointVerify(const Args& args, std::ostream& out, std::ostream& err) {
  std::string directory;
  std::string peer_file;
  CommandLine line("checkpoint verify",
                   "Reads the whole checkpoint, or an exported file, and shows whether it is\n"
                   "sound. Changes nothing; qrmd may run.",
                   "qrmctl checkpoint verify");
  AddStateDir(line, directory);
  line.Optional("FILE", peer_file, "a kubelet_qrm_checkpoint to verify instead");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  if (!peer_file.empty()) {
    const auto text = ReadPeerFile(peer_file);
    const auto peer = text.ok() ? checkpoint::ParsePeerCheckpoint(*text)
                                : StatusOr<checkpoint::PeerCheckpoint>(text.status());
    if (!peer.ok()) {
      return line.Fail(peer.status(), err);
    }
    out << peer_file
        << " is sound: " << SizeText(PodCount(peer->allocations), peer->allocations.size()) << '\n';
    return kDone;
  }
  const auto state = checkpoint::InspectSqliteStore(directory);
  if (!state.ok()) {
    return line.Fail(state.status(), err);
  }
  out << directory
      << "/checkpoint.db is sound: " << SizeText(state->pod_count(), state->container_count())
      << '\n';
  return kDone;
}

int RunCheckpointDump(const Args& args, std::ostream& out, std::ostream& err) {
  std::string directory;
  std::string pod;
  CommandLine line("checkpoint dump",
                   "Prints the checkpoint on disk, as qrmctl pods does; qrmd may run.",
                   "qrmctl checkpoint dump -o yaml");
  line.Output().Sorted().Optional("POD", pod, "a name, NAMESPACE/NAME or a UID");
  AddStateDir(line, directory);
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const auto state = checkpoint::InspectSqliteStore(directory);
  const auto pods = state.ok()
                        ? PodsAnswer(*state, pod, [](const ContainerKey&) { return std::string(); })
                        : StatusOr<v1::ListPodsResponse>(state.status());
  return ShowPods(line, pods, pod.empty() ? PodDetail::kRows : PodDetail::kSheets, out, err);
}

int RunCheckpointExport(const Args& args, std::ostream& out, std::ostream& err) {
  std::string directory;
  std::string file;
  CommandLine line("checkpoint export",
                   "Writes the checkpoint as the kubelet_qrm_checkpoint of Katalyst and kubelet's\n"
                   "QRM; qrmd may run.",
                   "qrmctl checkpoint export /tmp/kubelet_qrm_checkpoint");
  line.Required("FILE", file, "the file to write; - for standard output");
  AddStateDir(line, directory);
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const auto state = checkpoint::InspectSqliteStore(directory);
  if (!state.ok()) {
    return line.Fail(state.status(), err);
  }
  const auto text = checkpoint::ToPeerCheckpoint(checkpoint::AllocationsOf(*state));
  if (!text.ok()) {
    return line.Fail(text.status(), err);
  }
  if (file == kStandardStream) {
    out << *text << '\n';
    return kDone;
  }
  if (const Status written = checkpoint::WriteFileDurably(file, *text); !written.ok()) {
    return line.Fail(written, err);
  }
  out << "wrote " << SizeText(state->pod_count(), state->container_count()) << " to " << file
      << '\n';
  return kDone;
}

int RunCheckpointImport(const Args& args, std::ostream& out, std::ostream& err) {
  std::string directory;
  std::string file;
  CommandLine line(
      "checkpoint import",
      "Imports the allocations in a kubelet_qrm_checkpoint of Katalyst or kubelet's QRM.\n"
      "qrmd must be stopped.",
      "qrmctl checkpoint import /var/lib/kubelet/resource-plugins/kubelet_qrm_checkpoint");
  line.Required("FILE", file, "the file to import");
  AddStateDir(line, directory);
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const auto text = ReadPeerFile(file);
  const auto peer = text.ok() ? checkpoint::ParsePeerCheckpoint(*text)
                              : StatusOr<checkpoint::PeerCheckpoint>(text.status());
  if (!peer.ok()) {
    return line.Fail(peer.status(), err);
  }
  for (const std::string& skipped : peer->skipped) {
    err << "note: " << skipped << '\n';
  }
  if (const Status imported = Import(directory, peer->allocations, err); !imported.ok()) {
    return line.Fail(imported, err);
  }
  out << "imported " << SizeText(PodCount(peer->allocations), peer->allocations.size()) << " into "
      << directory << "/checkpoint.db\n";
  return kDone;
}

int RunCheckpointDowngrade(const Args& args, std::ostream& out, std::ostream& err) {
  std::string directory;
  CommandLine line(
      "checkpoint downgrade",
      "Converts the checkpoint of a newer release for this release, as far as this release\n"
      "can read it; the newer checkpoint is kept beside it. qrmd must be stopped.",
      "qrmctl checkpoint downgrade");
  AddStateDir(line, directory);
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const auto lock = StateLock::Take(directory);
  const auto kept = lock.ok() ? checkpoint::DowngradeSqliteStore(directory)
                              : StatusOr<std::string>(lock.status());
  if (!kept.ok()) {
    return line.Fail(kept.status(), err);
  }
  out << directory << "/checkpoint.db is readable for this release; the newer one is kept as "
      << *kept << '\n';
  return kDone;
}

}  // namespace qrm::manager::cli
