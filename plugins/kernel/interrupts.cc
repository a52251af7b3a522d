// Reads the kernel's interrupt files, and speaks irqbalance's protocol: one request per connection.
// irqbalance reads only the first word after "settings cpus", so lists use commas, and it replaces
// all earlier bans.
#include "plugins/kernel/interrupts.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <sstream>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/file_descriptor.h"
#include "api/base/foreign_text.h"
#include "api/base/number.h"
#include "api/base/unix_socket.h"
#include "api/id_set.h"
#include "plugins/kernel/claim.h"

namespace qrm::kernel {
namespace {

constexpr char kInterrupts[] = "proc/irq";
constexpr char kAffinity[] = "/smp_affinity_list";  // in an interrupt's directory
constexpr char kDefaultAffinity[] = "proc/irq/default_smp_affinity";

/// The CPUs that handle the interrupt of `directory`; empty if unknown.
CpuSet HandlersOf(const std::string& directory, const KernelFiles& files) {
  const std::string text = files.Read(directory + "/effective_affinity_list").value_or("");
  return CpuSet::Parse(text).value_or(CpuSet());
}

/// Adds an interrupt that cannot be moved. Its name includes its handlers, which are the
/// subdirectories.
void NoteFixed(const KernelFiles& files, const std::string& directory, Interrupts& interrupts) {
  CpuSet cpus = HandlersOf(directory, files);
  if (cpus.Empty()) {
    return;
  }
  std::string name = directory.substr(directory.rfind('/') + 1);
  for (const std::string& entry : files.List(directory)) {
    if (!files.List(fmt::format("{}/{}", directory, entry)).empty() ||
        !files.Read(fmt::format("{}/{}", directory, entry)).ok()) {
      name += " " + entry;
    }
  }
  interrupts.fixed.push_back({.name = name, .cpus = std::move(cpus)});
}

/// Each interrupt has a directory.
void ReadAffinities(const KernelFiles& files, Interrupts& interrupts) {
  if (!files.MayWrite(kDefaultAffinity)) {
    return;
  }
  for (const std::string& number : files.List(kInterrupts)) {
    const std::string directory = fmt::format("{}/{}", kInterrupts, number);
    if (!ParseNumber<int>(number).has_value()) {
      continue;
    }
    if (files.MayWrite(directory + kAffinity)) {
      interrupts.movable.push_back(directory);
    } else {
      NoteFixed(files, directory, interrupts);
    }
  }
}

constexpr char kName[] = "irqbalance";
/// irqbalance answers between two rounds of work. A call of qrmd makes several requests, and ends
/// after half a second.
constexpr timeval kPatience{.tv_sec = 0, .tv_usec = 150'000};
constexpr int kPatienceAtTheEnd = 5000;  // milliseconds
/// Versions before 1.9.3 read no longer request.
constexpr std::size_t kMostRequest = 499;
constexpr std::size_t kMostAnswer = 64 << 10;
constexpr int64_t kMostInterval = 3600;

/// The process of a ban's path.
std::string ProcessOf(const std::string& path) {
  const std::size_t begin = path.find('/') + 1;
  return path.substr(begin, path.find('/', begin) - begin);
}

/// Returns -1 with errno if no process listens, or another process than `process`.
int Connect(const sockaddr_un& address, socklen_t length, const std::string& process) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) {
    return socket;
  }
  ucred peer{};
  socklen_t size = sizeof(peer);
  const bool connected =
      ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience)) == 0 &&
      ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience)) == 0 &&
      ::connect(socket, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
      ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  if (connected && std::to_string(peer.pid) == process) {
    return socket;
  }
  const int error = connected ? ECONNREFUSED : errno;
  ::close(socket);
  errno = error;
  return -1;
}

/// Since 1.5 the socket is a file below irqbalance's root; before, it had an abstract name.
int ConnectTo(const std::string& process, const std::string& path) {
  if (const std::optional<sockaddr_un> file = SocketAddress(path); file.has_value()) {
    if (const int socket = Connect(*file, sizeof(*file), process); socket >= 0) {
      return socket;
    }
  }
  const int error = errno;
  sockaddr_un abstract{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string name = fmt::format("{}{}.sock", kName, process);
  name.copy(&abstract.sun_path[1], sizeof(abstract.sun_path) - 1);
  const auto length = static_cast<socklen_t>(sizeof(sa_family_t) + 1 + name.size());
  const int socket = Connect(abstract, length, process);
  errno = socket < 0 ? error : 0;
  return socket;
}

/// All bytes until the peer closes; nothing, with errno, if it does not close.
std::optional<std::string> ReceiveAll(int socket) {
  std::string all;
  std::array<char, 4096> piece{};
  while (all.size() < kMostAnswer) {
    const ssize_t count = ::recv(socket, piece.data(), piece.size(), 0);
    if (count < 0) {
      return std::nullopt;
    }
    if (count == 0) {
      return all;
    }
    all.append(piece.data(), static_cast<std::size_t>(count));
  }
  errno = EMSGSIZE;
  return std::nullopt;
}

}  // namespace

Interrupts ReadInterrupts(const KernelFiles& files) {
  Interrupts interrupts;
  ReadAffinities(files, interrupts);
  for (const std::string& process : FindBalancers(files)) {
    interrupts.balancers.push_back(
        {.process = process, .takes_bans = files.MayWrite(BanFile(process))});
  }
  return interrupts;
}

std::vector<Claim> QuietClaims(const CpuSet& cpus, const Interrupts& interrupts) {
  // Balancers get their bans before interrupts are moved.
  std::vector<Claim> claims;
  claims.reserve(interrupts.balancers.size() + 1 + interrupts.movable.size());
  for (const Balancer& balancer : interrupts.balancers) {
    claims.push_back(BanClaim(balancer.process, ToString(cpus)));
  }
  // The default applies to interrupts that appear later.
  claims.push_back(
      {.path = kDefaultAffinity, .form = ClaimForm::kCpuMask, .value = ToString(cpus)});
  for (const std::string& directory : interrupts.movable) {
    claims.push_back({.path = directory + kAffinity,
                      .form = ClaimForm::kCpuList,
                      .value = ToString(cpus),
                      .is_optional = true});
  }
  return claims;
}

void ProbeInterrupts(KernelFiles& files, Interrupts& interrupts) {
  std::erase_if(interrupts.movable, [&](const std::string& directory) {
    const StatusOr<std::string> now = files.Read(directory + kAffinity);
    const bool is_fixed = now.ok() && !files.Write(directory + kAffinity, *now).ok();
    if (is_fixed) {
      NoteFixed(files, directory, interrupts);
    }
    return is_fixed;
  });
}

std::map<std::string, std::string> QuietOwners(const JournalRecords& records) {
  const auto record = std::ranges::find_if(
      records, [](const JournalRecord& of) { return of.path == kDefaultAffinity; });
  return record == records.end() ? std::map<std::string, std::string>() : record->claims;
}

bool IsHandledBy(const CpuSet& cpus, const std::string& path, const KernelFiles& files) {
  const CpuSet handlers = HandlersOf(path.substr(0, path.rfind('/')), files);
  return !handlers.Empty() && handlers.IsSubsetOf(cpus);
}

Claim BanClaim(const std::string& process, const std::string& cpus) {
  return {.path = BanFile(process), .form = ClaimForm::kCpuUnion, .value = cpus};
}

std::vector<std::string> FindBalancers(const KernelFiles& files) {
  std::vector<std::string> processes;
  for (const std::string& process : files.List("proc")) {
    if (ParseNumber<int>(process).has_value() &&
        files.Read(fmt::format("proc/{}/comm", process)).value_or("") == kName) {
      processes.push_back(process);
    }
  }
  return processes;
}

// Through /proc/PID/root, the socket is also visible to a process with another root.
std::string BanFile(const std::string& process) {
  return fmt::format("proc/{0}/root/run/{1}/{1}{0}.sock", process, kName);
}

bool IsBanFile(const std::string& path) {
  return path == BanFile(ProcessOf(path));
}

void RepeatBans(KernelFiles& files, const JournalRecords& records) {
  for (const JournalRecord& record : records) {
    if (!IsBanFile(record.path)) {
      continue;
    }
    const StatusOr<std::string> shown = files.Read(record.path);
    const auto is_shown = [&](const std::string& ours) {
      return shown.ok() && IsSameValue(record.form, *shown, ours);
    };
    if (std::ranges::any_of(record.ours, is_shown)) {
      // If irqbalance cannot be reached now, it gets the value when the claim ends.
      files.Write(record.path, record.ours.back()).IgnoreError();
    }
  }
}

StatusOr<std::string> BalancerFiles::Send(const std::string& path,
                                          const std::string& request) const {
  const std::string process = ProcessOf(path);
  const auto failed = [&](int error) {
    const bool is_gone = files_.Read(fmt::format("proc/{}/comm", process)).value_or("") != kName;
    return Errorf(is_gone ? StatusCode::kNotFound : StatusCode::kUnavailable,
                  "cannot connect to irqbalance (process {}): {}; restart it, or stop it", process,
                  std::strerror(error));
  };
  const auto before = unanswered_.find(path);
  if (before != unanswered_.end()) {
    if (!ReceiveAll(before->second->get()).has_value() && errno == EAGAIN) {
      return failed(EAGAIN);
    }
    unanswered_.erase(before);
  }
  auto socket = std::make_unique<FileDescriptor>(ConnectTo(process, root_ + "/" + path));
  // irqbalance requires the sender's credentials, which the kernel adds.
  if (socket->get() < 0 ||
      ::send(socket->get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    return failed(errno);
  }
  std::optional<std::string> answer = ReceiveAll(socket->get());
  if (answer.has_value()) {
    return *std::move(answer);
  }
  const int error = errno;
  if (error == EAGAIN) {
    unanswered_[path] = std::move(socket);
  }
  return failed(error);
}

BalancerFiles::~BalancerFiles() {
  for (const auto& [path, socket] : unanswered_) {
    pollfd answer{.fd = socket->get(), .events = POLLIN, .revents = 0};
    (void)::poll(&answer, 1, kPatienceAtTheEnd);
  }
}

/// "SLEEP 10 IRQ 5 ... BANNED 00000000,0000000c", where the listed interrupts are banned.
StatusOr<BalancerFiles::Setup> BalancerFiles::Ask(const std::string& path) const {
  QRM_ASSIGN_OR_RETURN(const std::string answer, Send(path, "setup"));
  std::istringstream words(answer);
  std::string interval;
  std::string mask;
  words >> interval >> interval;
  for (std::string word; words >> word;) {
    if (word == "BANNED") {
      words >> mask;
    }
  }
  const StatusOr<CpuSet> banned = ParseCpuMask(mask);
  const auto seconds = ParseNumber<int64_t>(interval);
  if (mask.empty() || !banned.ok() || !seconds.has_value()) {
    return Errorf(StatusCode::kUnavailable,
                  "cannot talk to irqbalance (process {}): unknown answer '{}'; stop it",
                  ProcessOf(path), Quoted(answer));
  }
  return Setup{.interval = std::chrono::seconds(std::clamp<int64_t>(*seconds, 0, kMostInterval)),
               .banned = ToString(*banned)};
}

StatusOr<std::string> BalancerFiles::Read(const std::string& path) const {
  if (!IsBanFile(path)) {
    return files_.Read(path);
  }
  QRM_ASSIGN_OR_RETURN(const Setup setup, Ask(path));
  const auto told = told_.find(path);
  const bool is_early = told != told_.end() && setup.banned == told->second.before &&
                        clock_.Steady() < told->second.until;
  return is_early ? told->second.value : setup.banned;
}

Status BalancerFiles::Write(const std::string& path, const std::string& value) {
  if (!IsBanFile(path)) {
    return files_.Write(path, value);
  }
  QRM_ASSIGN_OR_RETURN(const Setup setup, Ask(path));
  // Without the trailing blank, irqbalance reads beyond the end of the request.
  const std::string request = fmt::format("settings cpus {} ", value.empty() ? "NULL" : value);
  if (request.size() > kMostRequest) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot ban CPUs {} in irqbalance: it accepts only shorter lists; choose contiguous CPUs",
        value);
  }
  QRM_RETURN_IF_ERROR(Send(path, request).status());
  const auto told = told_.find(path);
  if (told != told_.end() && told->second.value == value && setup.banned == told->second.before &&
      setup.banned != value && clock_.Steady() >= told->second.until) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot ban CPUs {1} in irqbalance (process {0}): it bans {2} instead; restart "
                  "it, or stop it",
                  ProcessOf(path), value, setup.banned.empty() ? "none" : setup.banned);
  }
  // It balances once per interval, and may do so at any moment.
  told_[path] = {
      .value = value, .before = setup.banned, .until = clock_.Steady() + 2 * setup.interval};
  return OkStatus();
}

bool BalancerFiles::MayWrite(const std::string& path) const {
  return IsBanFile(path) ? Ask(path).ok() : files_.MayWrite(path);
}

}  // namespace qrm::kernel
