// Handles NRI's calls on one connection.
#include "manager/runtime/nri/nri_session.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <string_view>
#include <utility>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/message_fields.h"
#include "api/proto/nri/v1alpha1/nri.pb.h"
#include "manager/runtime/nri/nri_wire.h"
#include "manager/runtime/socket_cure.h"

namespace qrm::manager {
namespace {

using std::chrono::milliseconds;

constexpr const char* kRuntimeService = "nri.pkg.api.v1alpha1.Runtime";
constexpr const char* kPluginService = "nri.pkg.api.v1alpha1.Plugin";
/// The time for an answer to reach the runtime before the runtime's deadline.
constexpr milliseconds kAnswerMargin{200};
/// If an answer and the end of the connection arrive together, a runtime in Go may take either.
constexpr milliseconds kAnswerTravels{100};

bool Read(std::string_view bytes, google::protobuf::MessageLite& message) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

Status NotA(const google::protobuf::MessageLite& message, const std::string& method) {
  return Errorf(StatusCode::kInvalidArgument,
                "cannot take {}: its payload is not a {}; check the runtime's NRI version", method,
                std::string(message.GetTypeName()));
}

/// Reads a request, or answers with an error.
bool Parse(const TtrpcCall& call, const TtrpcReply& reply, google::protobuf::MessageLite& message) {
  const bool parsed = Read(call.payload, message);
  if (!parsed) {
    reply(NotA(message, call.method));
  }
  return parsed;
}

/// Reads a pod or container of a message, and keeps of it what FromWire does.
template <typename Message, typename Kept>
bool Keep(std::string_view bytes, std::vector<Kept>& kept) {
  Message message;
  const bool parsed = Read(bytes, message);
  if (parsed) {
    kept.push_back(FromWire(message));
  }
  return parsed;
}

/// Reads an event, which must not be answered with an error: containerd keeps a sandbox whose start
/// a plugin rejected, and cannot restart itself while it has two sandboxes with the same name.
/// Source: containerd issue 13609.
template <typename Message>
bool ParseEvent(const TtrpcCall& call, Message& message) {
  const bool parsed = Read(call.payload, message);
  if (!parsed) {
    log::Warning("cannot read an event of the runtime", {{"call", call.method}});
  }
  return parsed;
}

template <typename Response>
StatusOr<std::string> WithUpdates(const StatusOr<std::vector<ContainerUpdate>>& updates,
                                  Response response) {
  if (!updates.ok()) {
    return updates.status();
  }
  for (const ContainerUpdate& update : *updates) {
    nri::ContainerUpdate* added = response.add_update();
    *added = ToWire(update);
    // If the container is gone by now, the request must not fail.
    added->set_ignore_failure(true);
  }
  return response.SerializeAsString();
}

StatusOr<std::string> CreateResponse(const StatusOr<ContainerAdjustment>& adjustment) {
  if (!adjustment.ok()) {
    return adjustment.status();
  }
  nri::CreateContainerResponse response;
  QRM_ASSIGN_OR_RETURN(*response.mutable_adjust(), ToWire(*adjustment));
  return response.SerializeAsString();
}

}  // namespace

struct NriSession::Timers {
  boost::asio::steady_timer handshake;
  boost::asio::steady_timer ending;
};

NriSession::NriSession(boost::asio::io_context& io, const NriOptions& options,
                       RuntimeEvents& events)
    : io_(io),
      options_(options),
      events_(events),
      timers_(new Timers{boost::asio::steady_timer(io), boost::asio::steady_timer(io)}),
      reply_timeout_(options.reply_timeout) {}

NriSession::~NriSession() = default;

void NriSession::Start(Synchronized synchronized, Ended ended) {
  synchronized_ = std::move(synchronized);
  ended_ = std::move(ended);
  timers_->handshake.expires_after(options_.handshake_timeout);
  timers_->handshake.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const std::shared_ptr<NriSession> self = weak.lock();
    if (!error && self != nullptr && !self->is_synchronized_) {
      self->Finish(Errorf(StatusCode::kDeadlineExceeded,
                          "cannot attach to {}: the runtime did not synchronize within {} ms; "
                          "see the runtime's log",
                          self->options_.socket, self->options_.handshake_timeout.count()));
    }
  });
  auto socket = std::make_shared<Mux::Socket>(io_);
  socket->async_connect({options_.socket}, [self = shared_from_this(),
                                            socket](const boost::system::error_code& error) {
    if (error) {
      self->Finish(Errorf(StatusCode::kUnavailable, "cannot connect to {}: {}; {}",
                          self->options_.socket, error.message(),
                          SocketCure(RuntimeSocket::kNri, error.value())));
    } else if (self->ended_) {
      self->OnConnect(std::move(*socket));
    }
  });
}

void NriSession::OnConnect(Mux::Socket socket) {
  mux_ = std::make_shared<Mux>(std::move(socket));
  const std::weak_ptr<NriSession> weak = weak_from_this();
  ServeTtrpc(mux_, kPluginConnection, [weak](const TtrpcCall& call, const TtrpcReply& reply) {
    if (const std::shared_ptr<NriSession> self = weak.lock()) {
      self->Handle(call, reply);
    }
  });
  runtime_ = std::make_unique<TtrpcClient>(io_, mux_, kRuntimeConnection);
  mux_->Start([self = shared_from_this()](const Status& cause) { self->Finish(cause); });
  Register();
}

void NriSession::Register() {
  nri::RegisterPluginRequest request;
  request.set_plugin_name(options_.name);
  request.set_plugin_idx(options_.index);
  runtime_->Call(
      kRuntimeService, "RegisterPlugin", request.SerializeAsString(), options_.handshake_timeout,
      [weak = weak_from_this()](const StatusOr<std::string>& response) {
        const std::shared_ptr<NriSession> self = weak.lock();
        if (!response.ok() && self != nullptr && !self->is_synchronized_) {
          self->Finish(Annotate(response.status(), "cannot register at " + self->options_.socket));
        }
      });
}

void NriSession::Finish(const Status& cause) {
  // Not in the mux's own callback, which does not run when the loop has stopped.
  if (const std::shared_ptr<Mux> mux = std::exchange(mux_, nullptr)) {
    mux->Close(cause);
  }
  timers_->handshake.cancel();
  timers_->ending.cancel();
  if (const Ended ended = std::exchange(ended_, nullptr)) {
    ended(
        {.cause = cause, .was_synchronized = is_synchronized_, .answer_was_due = answers_due_ > 0});
  }
}

void NriSession::EndWhenAnswered(Status cause) {
  ending_ = std::move(cause);
  EndIfAnswered();
}

void NriSession::EndIfAnswered() {
  if (!ending_.has_value() || answers_due_ > 0) {
    return;
  }
  timers_->ending.expires_after(kAnswerTravels);
  timers_->ending.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const std::shared_ptr<NriSession> self = weak.lock();
    if (!error && self != nullptr && self->answers_due_ == 0) {
      self->Finish(*self->ending_);
    }
  });
}

void NriSession::Abandon() {
  ended_ = nullptr;
  Finish(Errorf(StatusCode::kCancelled, "the plugin stopped"));
}

NriSession::Method NriSession::FindMethod(const std::string& name) {
  static const std::map<std::string, Method> methods = {
      {"Configure", &NriSession::Configure},
      {"Synchronize", &NriSession::Synchronize},
      {"Shutdown", &NriSession::Shutdown},
      {"CreateContainer", &NriSession::CreateContainer},
      {"UpdateContainer", &NriSession::UpdateContainer},
      {"StartContainer", &NriSession::StartContainer},
      {"StateChange", &NriSession::StateChange},
      {"RunPodSandbox", &NriSession::Note<nri::RUN_POD_SANDBOX>},
      {"StopPodSandbox", &NriSession::Note<nri::STOP_POD_SANDBOX>},
      {"RemovePodSandbox", &NriSession::Note<nri::REMOVE_POD_SANDBOX>},
      {"PostStartContainer", &NriSession::Note<nri::POST_START_CONTAINER>},
      {"StopContainer", &NriSession::Note<nri::STOP_CONTAINER>},
      {"RemoveContainer", &NriSession::Note<nri::REMOVE_CONTAINER>},
  };
  const auto found = methods.find(name);
  return found == methods.end() ? nullptr : found->second;
}

void NriSession::Handle(const TtrpcCall& call, const TtrpcReply& reply) {
  if (!ended_) {
    return;
  }
  const Method method = call.service == kPluginService ? FindMethod(call.method) : nullptr;
  if (method == nullptr) {
    // Runtimes with newer events take exactly this code as "send a StateChange instead".
    reply(
        Errorf(StatusCode::kUnimplemented, "{}/{} is not implemented", call.service, call.method));
    return;
  }
  (this->*method)(call, reply);
}

void NriSession::Configure(const TtrpcCall& call, const TtrpcReply& reply) {
  nri::ConfigureRequest request;
  if (!Parse(call, reply, request)) {
    return;
  }
  info_ = {.name = request.runtime_name(), .version = request.runtime_version()};
  if (request.request_timeout() > 0) {
    const milliseconds limit = milliseconds(request.request_timeout()) - kAnswerMargin;
    reply_timeout_ = std::clamp(limit, milliseconds(1), options_.reply_timeout);
  }
  if (const std::string problem = KnownProblemOf(info_); !problem.empty()) {
    log::Warning("runtime has a known problem", {{"error", problem}});
  }
  nri::ConfigureResponse response;
  response.set_events(SubscribedEvents());
  reply(response.SerializeAsString());
}

// Reads one pod or container at a time: parsed, a message takes several times its bytes.
bool NriSession::ReadObjects(std::string_view synchronize_request) {
  using Request = nri::SynchronizeRequest;
  bool read = true;
  const auto rest = TakeFields(synchronize_request, [&](int field, std::string_view bytes) {
    if (field == Request::kPodsFieldNumber) {
      read = read && Keep<nri::PodSandbox>(bytes, pods_);
    } else if (field == Request::kContainersFieldNumber) {
      read = read && Keep<nri::Container>(bytes, containers_);
    }
    return true;
  });
  return read && rest.has_value();
}

void NriSession::Synchronize(const TtrpcCall& call, const TtrpcReply& reply) {
  nri::SynchronizeRequest request;  // without its pods and containers
  const auto rest = TakeFields(call.payload, [](int, std::string_view) { return true; });
  if (!rest.has_value() || !Read(*rest, request)) {
    return reply(NotA(request, call.method));
  }
  nri::SynchronizeResponse response;
  if (request.more()) {
    response.set_more(true);  // without updates: else the runtime disconnects the plugin
    reply(response.SerializeAsString());  // before reading: the runtime prepares the next part
  }
  if (!ReadObjects(call.payload)) {
    const Status cause = NotA(request, call.method);
    return request.more() ? Finish(cause) : reply(cause);
  }
  if (request.more()) {
    return;
  }
  if (!std::exchange(is_synchronized_, true)) {
    timers_->handshake.cancel();
    synchronized_(info_);
    events_.OnConnected(info_);
  }
  const AnyThreadReply answer = Awaited(call, reply, response.SerializeAsString());
  events_.OnSynchronize(std::exchange(pods_, {}), std::exchange(containers_, {}),
                        [answer](const StatusOr<std::vector<ContainerUpdate>>& updates) {
                          answer(WithUpdates(updates, nri::SynchronizeResponse()));
                        });
}

void NriSession::CreateContainer(const TtrpcCall& call, const TtrpcReply& reply) {
  nri::CreateContainerRequest request;
  if (!Parse(call, reply, request)) {
    return;
  }
  RuntimePod pod = FromWire(request.pod());
  RuntimeContainer container = FromWire(request.container());
  Status late = Errorf(StatusCode::kDeadlineExceeded,
                       "cannot admit container {} of pod {}/{}: no decision within {} ms (qrmctl "
                       "status names a slow disk or plugin); kubelet tries again",
                       container.name, pod.pod_namespace, pod.name, reply_timeout_.count());
  const AnyThreadReply answer = Awaited(call, reply, std::move(late));
  events_.OnCreateContainer(std::move(pod), std::move(container),
                            [answer](const StatusOr<ContainerAdjustment>& adjustment) {
                              answer(CreateResponse(adjustment));
                            });
}

void NriSession::UpdateContainer(const TtrpcCall& call, const TtrpcReply& reply) {
  nri::UpdateContainerRequest request;
  if (!Parse(call, reply, request)) {
    return;
  }
  const AnyThreadReply answer = Awaited(call, reply, std::string());
  events_.OnUpdateContainer(FromWire(request.pod()), FromWire(request.container()),
                            FromWire(request.linux_resources()),
                            [answer](const StatusOr<std::vector<ContainerUpdate>>& updates) {
                              answer(WithUpdates(updates, nri::UpdateContainerResponse()));
                            });
}

void NriSession::StateChange(const TtrpcCall& call, const TtrpcReply& reply) {
  nri::StateChangeEvent event;
  const bool parsed = ParseEvent(call, event);
  if (parsed && event.event() == nri::START_CONTAINER) {
    const TtrpcCall start{call.service, "StartContainer", {}, call.timeout};
    PrepareStart(start, reply, event.pod(), event.container());
    return;
  }
  if (parsed) {
    Deliver(event.event(), event.pod(), event.container());
  }
  reply(std::string());
}

void NriSession::StartContainer(const TtrpcCall& call, const TtrpcReply& reply) {
  nri::ContainerEventRequest request;
  if (Parse(call, reply, request)) {
    PrepareStart(call, reply, request.pod(), request.container());
  }
}

void NriSession::PrepareStart(const TtrpcCall& call, const TtrpcReply& reply,
                              const nri::PodSandbox& pod, const nri::Container& container) {
  Status late = Errorf(StatusCode::kDeadlineExceeded,
                       "cannot start container {} of pod {}/{}: it was not prepared in time; "
                       "kubelet tries again",
                       container.name(), pod.namespace_(), pod.name());
  const AnyThreadReply answer = Awaited(call, reply, std::move(late));
  events_.OnStartContainer(FromWire(pod), FromWire(container), [answer](const Status& prepared) {
    answer(prepared.ok() ? StatusOr<std::string>(std::string()) : prepared);
  });
}

template <nri::Event kEvent>
void NriSession::Note(const TtrpcCall& call, const TtrpcReply& reply) {
  nri::ContainerEventRequest request;  // a pod's event is the same message without the container
  if (ParseEvent(call, request)) {
    Deliver(kEvent, request.pod(), request.container());
  }
  reply(std::string());
}

void NriSession::Deliver(nri::Event event, const nri::PodSandbox& pod,
                         const nri::Container& container) {
  switch (event) {
    case nri::RUN_POD_SANDBOX:
      return events_.OnPodStarted(FromWire(pod));
    case nri::STOP_POD_SANDBOX:
      return events_.OnPodStopped(FromWire(pod));
    case nri::REMOVE_POD_SANDBOX:
      return events_.OnPodRemoved(FromWire(pod));
    case nri::POST_START_CONTAINER:
      return events_.OnContainerStarted(FromWire(pod), FromWire(container));
    case nri::STOP_CONTAINER:
      return events_.OnContainerStopped(FromWire(pod), FromWire(container));
    case nri::REMOVE_CONTAINER:
      return events_.OnContainerRemoved(FromWire(pod), FromWire(container));
    default:
      return;  // changes nothing that qrmd tracks
  }
}

void NriSession::Shutdown(const TtrpcCall&, const TtrpcReply& reply) {
  reply(std::string());
}

NriSession::AnyThreadReply NriSession::Awaited(const TtrpcCall& call, const TtrpcReply& reply,
                                               StatusOr<std::string> late) {
  struct Answer {
    Answer(boost::asio::io_context& io, TtrpcReply given) : reply(std::move(given)), timer(io) {}
    /// False when the call was answered before.
    bool Send(StatusOr<std::string> answer) {
      if (sent.exchange(true)) {
        return false;
      }
      reply(std::move(answer));
      took = std::chrono::steady_clock::now() - begin;
      return true;
    }
    const TtrpcReply reply;
    boost::asio::steady_timer timer;
    const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    std::chrono::nanoseconds took{0};
    std::atomic<bool> sent = false;
  };
  auto pending = std::make_shared<Answer>(io_, reply);
  ++answers_due_;
  const auto note = [weak = weak_from_this(), pending, method = call.method](bool decided) {
    pending->timer.cancel();
    if (const std::shared_ptr<NriSession> self = weak.lock(); self != nullptr) {
      --self->answers_due_;
      self->options_.on_answer({.call = method, .took = pending->took, .decided = decided});
      self->EndIfAnswered();
    }
  };
  pending->timer.expires_after(TimeFor(call));
  pending->timer.async_wait([note, late = std::move(late), method = call.method,
                             pending](const boost::system::error_code& error) {
    if (!error && pending->Send(late)) {
      log::Warning("no decision in time: the runtime was answered without one", {{"call", method}});
      note(false);
    }
  });
  return [&io = io_, note, pending](StatusOr<std::string> answer) {
    if (pending->Send(std::move(answer))) {
      boost::asio::dispatch(io, [note] { note(true); });
    }
  };
}

milliseconds NriSession::TimeFor(const TtrpcCall& call) const {
  if (call.timeout <= std::chrono::nanoseconds::zero()) {
    return reply_timeout_;
  }
  const auto left = std::chrono::duration_cast<milliseconds>(call.timeout) - kAnswerMargin;
  return std::clamp(left, milliseconds(1), reply_timeout_);
}

}  // namespace qrm::manager
