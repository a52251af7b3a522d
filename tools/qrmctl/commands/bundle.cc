// qrmctl bundle
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/file_descriptor.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/archive.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"

namespace qrm::manager::cli {
namespace {

constexpr std::size_t kMostLogBytes = 4 << 20;

struct Bundle {
  std::string socket;
  std::string config = kDefaultConfig;
  std::string log;
  std::string file;
};

/// The last bytes of `in`, from the begin of a line on.
std::string TailOf(std::istream& in) {
  std::string text;
  std::string more(kMostLogBytes, '\0');
  while (in.read(more.data(), static_cast<std::streamsize>(more.size())) || in.gcount() > 0) {
    text.append(more, 0, static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMostLogBytes) {
      text.erase(0, text.size() - kMostLogBytes);
      text.erase(0, text.find('\n') + 1);
    }
  }
  return text;
}

std::string TextOf(const std::string& file) {
  if (file == "-") {
    return TailOf(std::cin);
  }
  std::ifstream in(file);
  return in.is_open() ? TailOf(in)
                      : fmt::format("cannot read {}: {}\n", file, std::strerror(errno));
}

/// What the shell's `command` prints; it has no words of others in it.
std::string OutputOf(const char* command) {
  // NOLINTNEXTLINE(bugprone-command-processor): each command is a literal of this file
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command, "re"), pclose);
  std::string text;
  std::string more(1 << 16, '\0');
  for (std::size_t size = 1; pipe != nullptr && size > 0;) {
    size = std::fread(more.data(), 1, more.size(), pipe.get());
    text.append(more, 0, size);
  }
  return text;
}

/// What the command of qrmctl prints, or why it does not.
ArchivedFile Printed(const Bundle& bundle, const std::string& name, Args args) {
  args.insert(args.end(), {"--control-socket", bundle.socket});
  std::ostringstream out;
  std::ostringstream err;
  RunQrmctl(args, out, err);
  return {"qrm-bundle/" + name, out.str() + err.str()};
}

/// The line after `what` in each case, so that a missing version is seen.
std::string VersionLine(const std::string& what, const std::string& version) {
  const std::string line = version.substr(0, version.find('\n'));
  return fmt::format("{:<9}{}\n", what + ":", line.empty() ? "not known here" : line);
}

std::string Versions(const Bundle& bundle) {
  utsname kernel{};
  uname(&kernel);
  const auto status =
      ControlClient(bundle.socket).Ask<v1::GetStatusResponse>(v1::GetStatusRequest());
  const v1::GetStatusResponse known = status.value_or(v1::GetStatusResponse());
  const v1::RuntimeStatus& runtime = known.runtime();
  return VersionLine("qrmctl", QRM_VERSION) + VersionLine("qrmd", known.version()) +
         VersionLine("kernel", fmt::format("{} {}", kernel.release, kernel.version)) +
         VersionLine("runtime",
                     runtime.name().empty() ? "" : runtime.name() + " " + runtime.version()) +
         VersionLine("kubelet", OutputOf("kubelet --version 2>/dev/null")) +
         VersionLine("NRI", fmt::format("v1alpha1, {}",
                                        runtime.nri_connected() ? "connected" : "not connected"));
}

std::vector<ArchivedFile> Collect(const Bundle& bundle) {
  const auto json = [&bundle](const std::string& name, Args args) {
    args.insert(args.end(), {"-o", "json"});
    return Printed(bundle, name + ".json", std::move(args));
  };
  std::vector<ArchivedFile> files = {
      {"qrm-bundle/versions.txt", Versions(bundle)},
      Printed(bundle, "status.txt", {"status", "-o", "wide"}),
      Printed(bundle, "doctor.txt", {"doctor", "--config", bundle.config}),
      json("status", {"status"}),
      json("plugins", {"plugins"}),
      json("pods", {"pods"}),
      json("pools", {"pool", "get"}),
      json("classes", {"classes"}),
      json("events", {"events"}),
      json("refusals", {"refusals"}),
      json("topology", {"topology"}),
      json("permissions", {"permissions"}),
      json("policy", {"policy", "show"}),
      {"qrm-bundle/config.yaml", TextOf(bundle.config)},
      {"qrm-bundle/log.txt",
       bundle.log.empty() ? OutputOf("journalctl --unit qrmd --lines 5000 --no-pager 2>/dev/null")
                          : TextOf(bundle.log)}};
  if (files.back().text.empty()) {
    files.back().text = "no log: give it with --log FILE\n";
  }
  for (ArchivedFile& file : files) {
    file.text = WithoutSecrets(file.text);
  }
  return files;
}

/// Creates `file`, for its owner only. Errors: the system's.
Status WriteNew(const std::string& file, const std::string& text) {
  const FileDescriptor opened(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  std::size_t written = 0;
  while (opened.get() >= 0 && written < text.size()) {
    const ssize_t count = ::write(opened.get(), text.data() + written, text.size() - written);
    if (count < 0) {
      break;
    }
    written += static_cast<std::size_t>(count);
  }
  return opened.get() >= 0 && written == text.size()
             ? OkStatus()
             : Errorf(StatusCode::kFailedPrecondition,
                      "cannot write {}: {}; name another file, or - for standard output", file,
                      std::strerror(errno));
}

}  // namespace

int RunBundle(const Args& args, std::ostream& out, std::ostream& err) {
  Bundle bundle;
  CommandLine line(
      "bundle",
      "Writes one tar archive for a bug report: status, plugins, pods, pools, events, the\n"
      "node's checks, qrmd's configuration without secrets, its log, and versions.",
      "qrmctl bundle");
  line.ControlSocket()
      .Option("--config", bundle.config, "qrmd's configuration", "FILE")
      .Option("--log", bundle.log, "qrmd's log, or - for standard input; else that of the service",
              "FILE")
      .Optional("FILE", bundle.file, "the archive, which must not exist; - for standard output");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  bundle.socket = line.control_socket();
  const std::time_t now = std::time(nullptr);
  const std::string archive = TarOf(Collect(bundle), now);
  if (bundle.file == "-") {
    out << archive << std::flush;
    return kDone;
  }
  if (bundle.file.empty()) {
    bundle.file = fmt::format("qrm-bundle-{:%Y%m%dT%H%M%SZ}.tar", fmt::gmtime(now));
  }
  if (const Status written = WriteNew(bundle.file, archive); !written.ok()) {
    return line.Fail(written, err);
  }
  out << "wrote " << bundle.file << "; read it before you send it: it names pods\n";
  return kDone;
}

}  // namespace qrm::manager::cli
