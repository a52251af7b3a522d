// Connects to the runtime, and connects again with backoff.
#include "manager/runtime/nri/nri_plugin.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/base/mutex.h"
#include "api/base/unix_socket.h"
#include "manager/runtime/nri/nri_session.h"

namespace qrm::manager {
namespace {

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsNameLetter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '+' ||
         c == '-';
}

Status CheckOptions(const NriOptions& options) {
  if (options.socket.empty() || options.socket.size() > kMaxSocketPath) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot attach to NRI socket \"{}\": its path must have 1 to {} bytes; move it",
                  options.socket, kMaxSocketPath);
  }
  if (options.index.size() != 2 ||
      !std::all_of(options.index.begin(), options.index.end(), IsDigit)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot register with NRI index \"{}\"; use two digits, 00 to 99", options.index);
  }
  if (options.name.empty() ||
      !std::all_of(options.name.begin(), options.name.end(), IsNameLetter)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot register with NRI name \"{}\"; use letters, digits and _ . + -",
                  options.name);
  }
  return OkStatus();
}

}  // namespace

struct NriPlugin::Impl : std::enable_shared_from_this<NriPlugin::Impl> {
  Impl(boost::asio::io_context& loop, NriOptions opts, RuntimeEvents& handler)
      : io(loop), options(std::move(opts)), events(handler), retry(loop) {
    status.problem =
        fmt::format("the first attempt at NRI socket \"{}\" has not ended yet", options.socket);
  }

  void Connect();
  void OnSynchronized(const RuntimeInfo& runtime);
  void OnEnd(const NriSession::End& end);
  void ConnectAfter(std::chrono::milliseconds wait);

  boost::asio::io_context& io;
  const NriOptions options;
  RuntimeEvents& events;
  boost::asio::steady_timer retry;
  std::chrono::milliseconds next_wait{0};
  std::shared_ptr<NriSession> session;

  mutable Mutex mutex;
  NriStatus status QRM_GUARDED_BY(mutex);
};

void NriPlugin::Impl::Connect() {
  session = std::make_shared<NriSession>(io, options, events);
  const std::weak_ptr<Impl> weak = weak_from_this();
  session->Start(
      [weak](const RuntimeInfo& runtime) {
        if (const std::shared_ptr<Impl> self = weak.lock()) {
          self->OnSynchronized(runtime);
        }
      },
      [weak](const NriSession::End& end) {
        if (const std::shared_ptr<Impl> self = weak.lock()) {
          self->OnEnd(end);
        }
      });
}

void NriPlugin::Impl::OnSynchronized(const RuntimeInfo& runtime) {
  {
    const MutexLock lock(mutex);
    status.connected = true;
    status.runtime = runtime;
    status.problem.clear();
    status.last_sync = std::chrono::steady_clock::now();
    ++status.connects;
  }
  log::Info("attached to runtime",
            {{"runtime", runtime.name}, {"version", runtime.version}, {"socket", options.socket}});
}

void NriPlugin::Impl::OnEnd(const NriSession::End& end) {
  session.reset();
  bool news = false;
  bool worked = false;  // if a runtime disconnects at once, do not reconnect without a wait
  {
    const MutexLock lock(mutex);
    worked = end.was_synchronized && status.last_sync.has_value() &&
             std::chrono::steady_clock::now() - *status.last_sync > options.backoff_first;
    news = status.problem != MessageOf(end.cause);
    status.connected = false;
    status.problem = MessageOf(end.cause);
    if (end.was_synchronized) {
      ++status.disconnects;
      status.kicked += end.answer_was_due ? 1 : 0;
    }
  }
  if (news) {  // log each problem once
    log::Warning("not attached to runtime", {{"error", MessageOf(end.cause)}});
  }
  if (end.was_synchronized) {
    events.OnDisconnected(end.cause);
  }
  const std::chrono::milliseconds wait = worked ? std::chrono::milliseconds(0) : next_wait;
  next_wait = std::min(std::max(wait * 2, options.backoff_first), options.backoff_last);
  ConnectAfter(wait);
}

void NriPlugin::Impl::ConnectAfter(std::chrono::milliseconds wait) {
  retry.expires_after(wait);
  retry.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const std::shared_ptr<Impl> self = weak.lock();
    if (!error && self != nullptr) {
      self->Connect();
    }
  });
}

NriPlugin::NriPlugin(boost::asio::io_context& io, NriOptions options, RuntimeEvents& events)
    : impl_(std::make_shared<Impl>(io, std::move(options), events)) {}

// NOLINTNEXTLINE(bugprone-exception-escape): cancelling a timer throws nothing on Linux.
NriPlugin::~NriPlugin() {
  Stop();
}

Status NriPlugin::Start() {
  QRM_RETURN_IF_ERROR(CheckOptions(impl_->options));
  impl_->ConnectAfter({});
  return OkStatus();
}

void NriPlugin::Stop() {
  impl_->retry.cancel();
  if (const std::shared_ptr<NriSession> session = std::exchange(impl_->session, nullptr)) {
    session->Abandon();
  }
}

void NriPlugin::Reconnect(Status cause) {
  if (const std::shared_ptr<NriSession> session = impl_->session; session != nullptr) {
    session->EndWhenAnswered(std::move(cause));
  }
}

NriStatus NriPlugin::GetStatus() const {
  const MutexLock lock(impl_->mutex);
  return impl_->status;
}

}  // namespace qrm::manager
