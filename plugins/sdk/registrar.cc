// Checks repeatedly whether the socket exists and the plugin is registered with the current
// manager; keeps one notification in flight, and remembers whether another is needed.
#include "plugins/sdk/registrar.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <grpcpp/grpcpp.h>

#include "api/base/check.h"
#include "api/base/clock.h"
#include "api/base/log.h"
#include "api/base/mutex.h"
#include "api/base/status.h"
#include "api/proto/qrm/v1/control.grpc.pb.h"
#include "api/proto/resourceplugin/v1alpha1/api.grpc.pb.h"
#include "api/rpc/channel.h"
#include "api/rpc/unary_call.h"
#include "api/wire.h"
#include "plugins/sdk/directory_watch.h"
#include "plugins/sdk/socket_file.h"

namespace qrm::sdk {
namespace {

/// The manager dials the plugin before it answers.
constexpr std::chrono::seconds kRegisterTimeout{5};

using std::chrono::milliseconds;
using TimePoint = std::chrono::steady_clock::time_point;

/// Inotify reports nothing about a directory that does not exist yet, or on some network file
/// systems.
constexpr milliseconds kLookPeriod{1000};
constexpr milliseconds kFirstRetry{100};
constexpr milliseconds kLastRetry{5000};
std::string DirectoryOf(const std::string& path) {
  return std::filesystem::path(path).parent_path();
}

std::string FileNameOf(const std::string& path) {
  return std::filesystem::path(path).filename();
}

/// The last error, so that it is logged when it changes and not at every attempt.
class Complaint {
 public:
  bool IsNew(const Status& status) {
    const std::string before = std::exchange(last_, MessageOf(status));
    return before != last_;
  }
  void Forget() { last_.clear(); }

 private:
  std::string last_;
};

/// A call of resourceplugin.v1alpha1.Registration/Register, which another thread can cancel.
struct RegisterCall {
  explicit RegisterCall(const std::string& manager_socket)
      : stub(wire::pb::Registration::NewStub(rpc::UnixChannel(manager_socket))) {}

  const std::unique_ptr<wire::pb::Registration::Stub> stub;
  const std::shared_ptr<rpc::CallsInFlight> calls = std::make_shared<rpc::CallsInFlight>();
  std::promise<Status> answer;  ///< the manager's; also when none listens, answers or is waited for
};

void Send(const std::shared_ptr<RegisterCall>& call, const PluginHost& host,
          const std::string& endpoint) {
  using Async = wire::pb::Registration::StubInterface::async_interface;
  wire::pb::RegisterRequest request;
  request.set_version(wire::kPluginApiVersion);
  request.set_endpoint(endpoint);
  request.set_resource_name(host.resource());
  *request.mutable_options() = wire::ToWire(host.options());
  const bool sent = rpc::StartUnary(
      {call->calls, DeadlineAfter(kRegisterTimeout)}, call->stub->async(), &Async::Register,
      std::move(request), [call](const auto& answer) { call->answer.set_value(answer.status()); });
  QRM_CHECK(sent);  // only StopAndWait stops
}

/// Short, since the manager answers before it starts to reconcile.
constexpr std::chrono::seconds kCallTimeout{2};

}  // namespace

struct Registrar::Impl {
  Impl(PluginHost& plugin_host, MeetingPlace meeting_place)
      : host(plugin_host),
        place(std::move(meeting_place)),
        watch(DirectoryOf(place.plugin_socket),
              {FileNameOf(place.plugin_socket), FileNameOf(place.manager_socket)}),
        stop_event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    QRM_CHECK(stop_event >= 0);
  }
  ~Impl() { ::close(stop_event); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Loop();
  void Stop();
  void KeepSocket();
  void KeepRegistered();
  Status Register();
  void Wait();
  bool Stopping();

  PluginHost& host;
  const MeetingPlace place;
  DirectoryWatch watch;
  const int stop_event;  ///< readable when the loop must end

  std::optional<FileId> known_by;  ///< the manager's socket of the last registration
  TimePoint next_attempt;
  milliseconds retry = kFirstRetry;
  Complaint socket_complaint;
  Complaint register_complaint;

  Mutex mutex;
  bool stopping QRM_GUARDED_BY(mutex) = false;
  std::shared_ptr<RegisterCall> call QRM_GUARDED_BY(mutex);
  std::thread thread;
};

Registrar::Registrar(PluginHost& host, MeetingPlace place)
    : impl_(std::make_unique<Impl>(host, std::move(place))) {
  impl_->thread = std::thread([impl = impl_.get()] { impl->Loop(); });
}

Registrar::~Registrar() {
  impl_->Stop();
}

void Registrar::Impl::Stop() {
  std::shared_ptr<RegisterCall> in_flight;
  {
    const MutexLock lock(mutex);
    stopping = true;
    in_flight = call;
  }
  if (in_flight != nullptr) {
    in_flight->calls->StopAndWait();
  }
  ::eventfd_write(stop_event, 1);
  thread.join();
}

bool Registrar::Impl::Stopping() {
  const MutexLock lock(mutex);
  return stopping;
}

void Registrar::Impl::Loop() {
  while (!Stopping()) {
    watch.Arm();  // before the check, so that no later event is missed
    KeepSocket();
    if (!place.manager_socket.empty()) {
      KeepRegistered();
    }
    Wait();
  }
}

void Registrar::Impl::KeepSocket() {
  if (host.SocketInPlace()) {
    return;
  }
  const Status listening = host.Listen(place.plugin_socket);
  if (listening.ok()) {
    log::Info("plugin socket recreated", {{"socket", place.plugin_socket}});
    socket_complaint.Forget();
    known_by.reset();
  } else if (socket_complaint.IsNew(listening)) {
    log::Warning("cannot serve the plugin's socket", {{"error", MessageOf(listening)}});
  }
}

void Registrar::Impl::KeepRegistered() {
  const std::optional<FileId> manager = FindFile(place.manager_socket);
  const auto now = std::chrono::steady_clock::now();
  if (!manager.has_value() || !host.SocketInPlace()) {
    known_by.reset();
    retry = kFirstRetry;
    return;
  }
  if (known_by == manager || now < next_attempt) {
    return;
  }
  const Status registered = Register();
  if (registered.ok()) {
    log::Info("plugin registered",
              {{"resource", host.resource()}, {"manager", place.manager_socket}});
    known_by = manager;
    retry = kFirstRetry;
    register_complaint.Forget();
    return;
  }
  next_attempt = std::chrono::steady_clock::now() + retry;
  retry = std::min(retry * 2, kLastRetry);
  if (!Stopping() && register_complaint.IsNew(registered)) {
    log::Warning("cannot register the plugin; it tries again", {{"resource", host.resource()},
                                                                {"manager", place.manager_socket},
                                                                {"error", MessageOf(registered)}});
  }
}

Status Registrar::Impl::Register() {
  const auto begun = std::make_shared<RegisterCall>(place.manager_socket);
  Send(begun, host, FileNameOf(place.plugin_socket));
  {
    const MutexLock lock(mutex);
    call = begun;
    if (stopping) {
      begun->calls->StopAndWait();
    }
  }
  Status answer = begun->answer.get_future().get();
  const MutexLock lock(mutex);
  call.reset();
  return answer;
}

/// Returns when one of the two sockets appeared or disappeared, a retry is due, or the next check
/// is due. Events for other names, such as our temporary sockets, must not shorten the wait.
void Registrar::Impl::Wait() {
  const TimePoint now = std::chrono::steady_clock::now();
  const TimePoint look = now + kLookPeriod;
  const TimePoint end = next_attempt > now ? std::min(next_attempt, look) : look;
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
    std::array<pollfd, 2> events = {{{stop_event, POLLIN, 0}, {watch.fd(), POLLIN, 0}}};
    const int timeout = static_cast<int>(std::max(left, milliseconds::zero()).count());
    if (::poll(events.data(), events.size(), timeout) == 0 || events[0].revents != 0) {
      return;
    }
    if (watch.Drain()) {
      next_attempt = {};
      retry = kFirstRetry;
      return;
    }
  }
}

struct ChangeNotifier::Impl : std::enable_shared_from_this<ChangeNotifier::Impl> {
  Impl(std::string control_socket, std::string resource_name)
      : socket(std::move(control_socket)), resource(std::move(resource_name)) {}

  void Notify();
  void Send();
  void OnAnswer(const Status& answer);

  const std::string socket;
  const std::string resource;
  const std::shared_ptr<rpc::CallsInFlight> calls = std::make_shared<rpc::CallsInFlight>();
  Mutex mutex;
  bool sending QRM_GUARDED_BY(mutex) = false;
  bool again QRM_GUARDED_BY(mutex) = false;
  bool said QRM_GUARDED_BY(mutex) = false;  // that the manager was not notified
};

void ChangeNotifier::Impl::Notify() {
  {
    const MutexLock lock(mutex);
    if (std::exchange(sending, true)) {
      again = true;
      return;
    }
  }
  Send();
}

/// Each call has its own channel, so that it does not wait for the backoff of an earlier attempt.
void ChangeNotifier::Impl::Send() {
  using Async = v1::Control::StubInterface::async_interface;
  const std::shared_ptr<v1::Control::Stub> stub = v1::Control::NewStub(rpc::UnixChannel(socket));
  v1::NotifyChangedRequest request;
  request.set_resource_name(resource);
  const bool sent = rpc::StartUnary(
      {calls, DeadlineAfter(kCallTimeout)}, stub->async(), &Async::NotifyChanged,
      std::move(request),
      [self = shared_from_this(), stub](const auto& answer) { self->OnAnswer(answer.status()); });
  if (!sent) {  // stopped
    const MutexLock lock(mutex);
    sending = false;
  }
}

void ChangeNotifier::Impl::OnAnswer(const Status& answer) {
  bool say = false;
  bool send = false;
  {
    const MutexLock lock(mutex);
    say = !answer.ok() && !std::exchange(said, !answer.ok()) && !calls->stopped();
    send = std::exchange(again, false);
    sending = send;
  }
  if (say) {
    log::Info("cannot notify the manager of a change; it sees the change at its next reconcile",
              {{"resource", resource}, {"socket", socket}, {"error", MessageOf(answer)}});
  }
  if (send) {
    Send();
  }
}

ChangeNotifier::ChangeNotifier(std::string control_socket, std::string resource)
    : impl_(std::make_shared<Impl>(std::move(control_socket), std::move(resource))) {}

ChangeNotifier::~ChangeNotifier() {
  impl_->calls->StopAndWait();
}

void ChangeNotifier::Notify() {
  impl_->Notify();
}

}  // namespace qrm::sdk
