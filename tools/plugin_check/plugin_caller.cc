// Waits for a plugin that was started by asking it again and again.
#include "tools/plugin_check/plugin_caller.h"

#include <array>
#include <csignal>
#include <cstring>
#include <thread>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/base/errorf.h"
#include "plugins/sdk/calls/plugin_calls.h"

namespace qrm::manager {
namespace {

/// For a plugin that is started to be ready, in answers' timeouts.
constexpr int kStartLimit = 5;
constexpr std::chrono::milliseconds kStartPoll{20};

}  // namespace

// A process group of its own, so that a kill reaches all of it.
Status PluginProcess::Start() {
  std::string shell = "sh";
  std::string option = "-c";
  std::string command = command_;
  const std::array<char*, 4> words = {shell.data(), option.data(), command.data(), nullptr};
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int error = ::posix_spawn(&group_, "/bin/sh", nullptr, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    group_ = 0;
    return Errorf(StatusCode::kInternal, "cannot run \"{}\": {}; check that /bin/sh can be run",
                  command_, std::strerror(error));
  }
  return OkStatus();
}

void PluginProcess::Kill() {
  if (group_ > 0) {
    ::kill(-group_, SIGKILL);
    ::waitpid(group_, nullptr, 0);
    group_ = 0;
  }
}

PluginCaller::PluginCaller(const CheckSettings& settings, NumaMask machine_nodes)
    : settings_(settings),
      machine_nodes_(std::move(machine_nodes)),
      process_(settings_.command),
      in_flight_(std::make_shared<rpc::CallsInFlight>()),
      client_(Connect()) {}

PluginCaller::~PluginCaller() {
  in_flight_->StopAndWait();
}

// Source: our SDK answers with INTERNAL, gRPC for Python with UNKNOWN and this text. Other plugins
// reject with UNKNOWN, as Go's errors are sent.
bool PluginCaller::IsException(const Status& status) {
  return status.code() == StatusCode::kInternal ||
         (status.code() == StatusCode::kUnknown &&
          MessageOf(status).starts_with("Exception calling application"));
}

std::unique_ptr<GrpcPluginClient> PluginCaller::Connect() const {
  return std::make_unique<GrpcPluginClient>(settings_.socket, machine_nodes_, in_flight_);
}

Status PluginCaller::RunAnew() {
  process_.Kill();
  QRM_RETURN_IF_ERROR(process_.Start());
  const Deadline limit = DeadlineAfter(kStartLimit * settings_.timeout);
  for (;;) {
    client_ = Connect();
    Status answered = Ask<calls::GetOptions>({}).status();
    if (answered.ok() || refused_ || std::chrono::steady_clock::now() >= limit) {
      return answered;
    }
    std::this_thread::sleep_for(kStartPoll);
  }
}

}  // namespace qrm::manager
