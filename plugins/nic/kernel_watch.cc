// Reads everything again after each change: a message alone would only be a part of it.
#include "plugins/nic/kernel_watch.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>

#include "api/base/check.h"
#include "api/base/log.h"
#include "plugins/nic/nic_plugin.h"

namespace qrm::nic {
namespace {

using std::chrono::milliseconds;

/// Many links change at once when pods come and go: one reading covers them all.
constexpr milliseconds kGathering{50};

/// Blocks signals in threads that start meanwhile; threads that wait for signals still get them.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

KernelWatch::KernelWatch(const std::vector<std::string>& namespaces, LookPeriods periods)
    : periods_(periods), stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  QRM_CHECK(stop_.get() >= 0);
  sockets_[""];
  std::map<std::string, std::vector<std::string>> names;
  for (const std::string& path : namespaces) {
    sockets_[path];
    const std::filesystem::path split(path);
    names[split.parent_path()].push_back(split.filename());
  }
  for (auto& [directory, files] : names) {
    directories_.push_back(std::make_unique<sdk::DirectoryWatch>(directory, std::move(files)));
  }
}

KernelWatch::~KernelWatch() {
  if (thread_.joinable()) {
    ::eventfd_write(stop_.get(), 1);
    thread_.join();
  }
}

void KernelWatch::Start(std::function<void(const NicFacts&)> on_change) {
  on_change_ = std::move(on_change);
  const SignalsHeld held;
  thread_ = std::thread([this] { Run(); });
}

NicFacts KernelWatch::Read() {
  for (const auto& directory : directories_) {
    directory->Arm();  // before reading, so that later changes are not missed
    directory->Drain();
  }
  NicFacts facts;
  for (const auto& [path, sockets] : sockets_) {
    const StatusOr<NamespaceFacts> one = ReadOne(path);
    Complain(path, one.status());
    if (one.ok()) {
      facts.emplace(path, *one);
    }
  }
  known_ = facts;
  return facts;
}

StatusOr<NamespaceFacts> KernelWatch::ReadOne(const std::string& path) {
  std::unique_ptr<NamespaceSockets>& sockets = sockets_[path];
  if (!path.empty()) {
    const StatusOr<NamespaceId> id = IdOf(path);
    if (sockets != nullptr && (!id.ok() || *id != sockets->id())) {
      sockets.reset();  // else a removed namespace would stay alive
    }
    if (id.status().code() == StatusCode::kNotFound) {
      return NamespaceFacts{.exists = false, .interfaces = {}};
    }
  }
  if (sockets == nullptr) {
    QRM_ASSIGN_OR_RETURN(sockets, NamespaceSockets::Open(path));
  }
  sockets->Drain();
  QRM_ASSIGN_OR_RETURN(auto interfaces, sockets->Read());
  return NamespaceFacts{.exists = true, .interfaces = std::move(interfaces)};
}

void KernelWatch::Complain(const std::string& path, const Status& status) {
  const std::string before = std::exchange(complaints_[path], MessageOf(status));
  if (!status.ok() && before != MessageOf(status)) {
    log::Warning("NICs are not followed",
                 {{"netns", path.empty() ? "the host's" : path}, {"error", MessageOf(status)}});
  }
}

void KernelWatch::Run() {
  do {
    const NicFacts before = known_;
    if (const NicFacts now = Read(); now != before) {
      on_change_(now);
    }
  } while (Wait());
}

/// False when the thread must end.
bool KernelWatch::Wait() {
  std::vector<pollfd> files = {{.fd = stop_.get(), .events = POLLIN, .revents = 0}};
  for (const auto& [path, sockets] : sockets_) {
    files.push_back(
        {.fd = sockets == nullptr ? -1 : sockets->events(), .events = POLLIN, .revents = 0});
  }
  for (const auto& directory : directories_) {
    files.push_back({.fd = directory->fd(), .events = POLLIN, .revents = 0});
  }
  const bool all_exist =
      std::ranges::all_of(known_, [](const auto& one) { return one.second.exists; });
  const milliseconds period =
      all_exist ? periods_.always : std::min(periods_.missing, periods_.always);
  ::poll(files.data(), files.size(), static_cast<int>(period.count()));
  return !StopsWithin(kGathering);
}

bool KernelWatch::StopsWithin(milliseconds time) const {
  pollfd stop = {.fd = stop_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&stop, 1, static_cast<int>(time.count())) > 0;
}

NicFacts ReadNicFacts(const NicPluginConfig& config) {
  return KernelWatch(FollowedNamespaces(config)).Read();
}

StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeLiveNicPlugin(NicPluginConfig config,
                                                                 const Machine& machine) {
  if (machine.parts().online.empty()) {
    config.follow = NicFollow::kNone;
  }
  auto watch = std::make_unique<KernelWatch>(FollowedNamespaces(config));
  const NicFacts facts = watch->Read();
  if (config.follow == NicFollow::kNone) {
    watch.reset();
  }
  return MakeNicPlugin(config, machine, facts, std::move(watch));
}

}  // namespace qrm::nic
