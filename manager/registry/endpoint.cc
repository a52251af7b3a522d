// Tracks liveness by probes and by the outcomes of calls.
#include "manager/registry/endpoint.h"

#include <chrono>

#include <grpcpp/alarm.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "plugins/sdk/calls/answer_check.h"
#include "plugins/sdk/calls/compute_calls.h"

namespace qrm::manager {
namespace {

/// Whether a good answer contains an allocation.
bool IsPlacement(std::string_view path) {
  return path == calls::Allocate::kMethod.path || path == calls::ComputeAdmit::kMethod.path;
}

constexpr char kOrRaise[] = "; restart the plugin, or raise plugin-call-deadline";

Status Unanswered(std::chrono::nanoseconds limit, const char* cure) {
  return Errorf(StatusCode::kDeadlineExceeded, "no answer within {} ms{}",
                std::chrono::duration_cast<std::chrono::milliseconds>(limit).count(), cure);
}

}  // namespace

struct Endpoint::RetryTimer {
  grpc::Alarm alarm;
};

Endpoint::Endpoint(PluginInfo info, OptionsFrom options_from, std::shared_ptr<PluginClient> client,
                   ProbeSettings settings)
    : resource_(info.resource),
      address_(info.endpoint),
      options_from_(options_from),
      settings_(std::move(settings)),
      info_(std::move(info)),
      client_(std::move(client)),
      retry_(std::make_unique<RetryTimer>()) {}

Endpoint::~Endpoint() = default;

std::string Endpoint::Name() const {
  return address_.empty() ? fmt::format("plugin {}", resource_)  // it has never registered
                          : fmt::format("plugin {} at {}", resource_, address_);
}

PluginInfo Endpoint::Info() const {
  const MutexLock lock(mutex_);
  return info_;
}

bool Endpoint::live() const {
  const MutexLock lock(mutex_);
  return info_.live;
}

std::shared_ptr<PluginClient> Endpoint::LiveClient() const {
  const MutexLock lock(mutex_);
  return info_.live ? client_ : nullptr;
}

Status Endpoint::Away(std::string_view action) const {
  const MutexLock lock(mutex_);
  return Errorf(StatusCode::kUnavailable, "cannot {} {}: it is not running: {}", action, Name(),
                info_.problem);
}

bool Endpoint::Start(const std::shared_ptr<calls::Call>& call, Deadline deadline,
                     std::function<void(const Status&)> ended) {
  const calls::Method method = call->method();
  const std::shared_ptr<PluginClient> client = LiveClient();
  if (client == nullptr) {
    return false;
  }
  const auto limit = deadline - std::chrono::steady_clock::now();
  call->set_judge([self = shared_from_this(), method, limit, ended = std::move(ended)](
                      const Status& status, calls::Blame blame) {
    Status judged = self->Judge(
        method, blame == calls::Blame::kTimeout ? Unanswered(limit, kOrRaise) : status, blame);
    ended(judged);
    return judged;
  });
  client->Start(call, deadline);
  return true;
}

void Endpoint::Probe(std::function<void(Status)> done) {
  std::shared_ptr<PluginClient> client;
  {
    const MutexLock lock(mutex_);
    client = client_;
  }
  if (client == nullptr) {
    done(Away("probe"));
    return;
  }
  client->Ask<calls::GetOptions>(
      {}, DeadlineAfter(settings_.deadline),
      [self = shared_from_this(), done = std::move(done)](const OptionsResult& result) {
        self->ProbeEnded(result, done);
      });
}

void Endpoint::ProbeEnded(const OptionsResult& result, const std::function<void(Status)>& done) {
  if (result.value.ok()) {
    Prepare(result, done);
    return;
  }
  Status cause = result.blame == calls::Blame::kTimeout ? Unanswered(settings_.deadline, "")
                                                        : result.value.status();
  if (cause.code() == StatusCode::kUnimplemented) {
    cause = Errorf(StatusCode::kFailedPrecondition,
                   "{} is not a resource plugin: it does not serve GetResourcePluginOptions; "
                   "register the socket of a resource plugin",
                   Name());
  }
  if (result.blame != calls::Blame::kStopping) {
    TakeFailure(cause);
  }
  done(cause);
}

void Endpoint::Prepare(const OptionsResult& result, const std::function<void(Status)>& done) {
  PluginInfo info;
  std::shared_ptr<PluginClient> client;
  {
    const MutexLock lock(mutex_);
    info = info_;
    client = client_;
  }
  auto ready = [self = shared_from_this(), result, done] {
    self->TakeAnswer(result);
    done(OkStatus());
  };
  if (info.live || client == nullptr) {
    ready();
  } else {
    settings_.prepare(info, client, std::move(ready));
  }
}

void Endpoint::TakeAnswer(const OptionsResult& result) {
  OnBack on_back;
  {
    const MutexLock lock(mutex_);
    probing_ = false;
    if (client_ == nullptr) {  // closed meanwhile
      return;
    }
    if (result.value.ok() && options_from_ == OptionsFrom::kProbe) {
      info_.options = *result.value;
    }
    if (info_.live) {
      return;
    }
    info_.live = true;
    info_.problem.clear();
    on_back = on_back_;
  }
  if (on_back) {
    log::Info("plugin is running again", {{"resource", resource_}, {"endpoint", address_}});
    settings_.on_change(resource_, Name() + " is running again");
    on_back(resource_);
  }
}

void Endpoint::TakeFailure(const Status& cause) {
  bool was_live = false;
  bool followed = false;
  const std::string problem = fmt::format("{}; restart the plugin", MessageOf(cause));
  {
    const MutexLock lock(mutex_);
    probing_ = false;
    if (client_ == nullptr) {
      return;
    }
    was_live = std::exchange(info_.live, false);
    followed = on_back_ != nullptr;
    info_.problem = problem;
  }
  if (was_live) {
    log::Warning("plugin is not running",
                 {{"resource", resource_}, {"endpoint", address_}, {"error", problem}});
    settings_.on_change(resource_, fmt::format("{} is not running: {}", Name(), problem));
  }
  if (followed) {
    RetryLater();
  }
}

void Endpoint::RetryLater() {
  const MutexLock lock(mutex_);
  if (client_ == nullptr) {
    return;
  }
  retry_ = std::make_unique<RetryTimer>();
  retry_->alarm.Set(std::chrono::system_clock::now() + settings_.interval,
                    [weak = weak_from_this()](bool expired) {
                      if (const auto self = weak.lock(); self != nullptr && expired) {
                        self->Doubt();
                      }
                    });
}

void Endpoint::Doubt() {
  {
    const MutexLock lock(mutex_);
    if (probing_ || client_ == nullptr) {
      return;
    }
    probing_ = true;
  }
  Probe([](const Status&) {});
}

void Endpoint::Follow(ChannelWatcher& watcher, OnBack on_back) {
  std::shared_ptr<grpc::Channel> channel;
  {
    const MutexLock lock(mutex_);
    on_back_ = std::move(on_back);
    info_.registered_at = std::chrono::steady_clock::now();
    channel = client_ == nullptr ? nullptr : client_->channel();
  }
  if (channel != nullptr) {
    watcher.Watch(*channel, [weak = weak_from_this()](bool /*connected*/) {
      if (const auto self = weak.lock()) {
        self->Doubt();
      }
    });
  }
}

void Endpoint::Close(const std::string& why) {
  std::shared_ptr<PluginClient> dropped;
  const MutexLock lock(mutex_);
  dropped = std::move(client_);
  info_.live = false;
  info_.problem = why;
}

void Endpoint::MarkSuspect(const std::string& problem) {
  const MutexLock lock(mutex_);
  if (info_.live) {
    info_.problem = "suspect: " + calls::OneLine(problem);
    suspect_of_ = {};
  }
}

// Good answers to other calls, as in each reconcile, do not clear the problem of a failed call.
Status Endpoint::Judge(const calls::Method& method, const Status& status, calls::Blame blame) {
  if (blame == calls::Blame::kConnection) {
    Doubt();
  }
  Status sentence =
      status.ok() ? status : Annotate(status, fmt::format("cannot {} {}", method.action, Name()));
  if (blame == calls::Blame::kProtocol) {
    sentence = Status(StatusCode::kInternal, MessageOf(sentence));
  }
  const MutexLock lock(mutex_);
  if (!info_.live) {
    return sentence;
  }
  if (blame == calls::Blame::kProtocol || blame == calls::Blame::kTimeout) {
    info_.problem = "suspect: " + MessageOf(sentence);
    suspect_of_ = method.path;
  } else if (blame == calls::Blame::kNobody &&
             (suspect_of_.empty() ? IsPlacement(method.path) : suspect_of_ == method.path)) {
    info_.problem.clear();
  }
  return sentence;
}

}  // namespace qrm::manager
