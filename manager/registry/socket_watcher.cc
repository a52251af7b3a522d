// Follows each socket from its appearance to its plugin's registration.
#include "manager/registry/socket_watcher.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/core.h>

#include "api/base/log.h"
#include "api/wire.h"
#include "manager/registry/directory_scan.h"
#include "manager/registry/registration_check.h"
#include "plugins/sdk/calls/registration_calls.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::manager {
namespace {

/// Errors: kInvalidArgument for a name that is invalid for the plugin's type.
StatusOr<std::string> ResourceOf(const calls::PluginIdentity& identity) {
  if (identity.type == calls::kComputeDriverType) {
    QRM_RETURN_IF_ERROR(
        Annotate(sdk::CheckDriverName(identity.name), "cannot register a compute driver"));
    return sdk::DriverResource(identity.name);
  }
  QRM_RETURN_IF_ERROR(CheckPluginName(identity.name));
  return identity.name;
}

/// The registration for `identity`. Errors: kInvalidArgument for an invalid identity.
StatusOr<Registration> ReadIdentity(const calls::PluginIdentity& identity,
                                    const std::string& socket) {
  QRM_RETURN_IF_ERROR(CheckVersions(identity.supported_versions));
  QRM_ASSIGN_OR_RETURN(std::string resource, ResourceOf(identity));
  Registration registration{.resource = std::move(resource),
                            .registered_by = RegisteredBy::kWatcher};
  QRM_ASSIGN_OR_RETURN(registration.socket, SocketAnnounced(identity.endpoint, socket));
  return registration;
}

std::string RemovedSocket(const std::string& path) {
  return fmt::format("its registration socket {} was removed; restart the plugin", path);
}

/// An existing socket.
struct Candidate {
  Candidate(boost::asio::io_context& io, const SocketIdentity& socket_identity,
            std::chrono::milliseconds first_backoff)
      : identity(socket_identity), backoff(first_backoff), retry(io) {}

  const SocketIdentity identity;
  std::chrono::milliseconds backoff;
  boost::asio::steady_timer retry;
  std::optional<Registration> registered;
};

/// A candidate that was asked for its identity. It may be asked again before the first answer was
/// processed, so each question has its own client.
struct Asked {
  std::string path;
  std::shared_ptr<Candidate> candidate;
  std::shared_ptr<GrpcPluginClient> client;
};

}  // namespace

struct SocketWatcher::Impl : std::enable_shared_from_this<SocketWatcher::Impl> {
  using CandidatePtr = std::shared_ptr<Candidate>;

  Impl(boost::asio::io_context& loop, EndpointSet& set, SocketWatcherOptions opts)
      : io(loop),
        endpoints(set),
        options(std::move(opts)),
        scan(std::make_unique<DirectoryScan>(io, options.directory, options.rescan_period,
                                             [this] { Compare(); })) {}

  /// Updates the candidates to the existing sockets.
  void Compare();
  void Appeared(const std::string& path, const SocketIdentity& identity);
  void Vanished(const std::string& path, const Candidate& candidate);
  void AskIdentity(const std::string& path, const CandidatePtr& candidate);
  void TakeIdentity(const Asked& asked, const StatusOr<calls::PluginIdentity>& identity);
  void TakeOutcome(const Asked& asked, const Registration& registration, const Status& outcome);
  /// The socket was removed while its plugin was being registered: undoes the registration.
  void TakeBack(const std::string& path, const Registration& registration, const Status& outcome);
  void Refuse(const Asked& asked, const Status& cause);
  void Notify(const Asked& asked, const std::string& error) const;
  void TryAgainLater(const std::string& path, const CandidatePtr& candidate);

  bool IsCurrent(const std::string& path, const CandidatePtr& candidate) const;
  /// Runs `work` on the loop if `candidate` is still the one at `path`.
  void PostFor(const std::string& path, const CandidatePtr& candidate, std::function<void()> work);

  boost::asio::io_context& io;
  EndpointSet& endpoints;
  const SocketWatcherOptions options;
  std::map<std::string, CandidatePtr> candidates;
  bool stopped = false;  ///< `endpoints` may be gone
  std::unique_ptr<DirectoryScan> scan;
};

void SocketWatcher::Impl::Compare() {
  const Sockets sockets = scan->Scan();
  for (auto it = candidates.begin(); it != candidates.end();) {
    const auto now = sockets.find(it->first);
    if (now == sockets.end() || now->second != it->second->identity) {
      Vanished(it->first, *it->second);
      it = candidates.erase(it);
    } else {
      ++it;
    }
  }
  for (const auto& [path, identity] : sockets) {
    if (!candidates.contains(path)) {
      Appeared(path, identity);
    }
  }
}

void SocketWatcher::Impl::Appeared(const std::string& path, const SocketIdentity& identity) {
  const auto candidate = std::make_shared<Candidate>(io, identity, options.backoff_first);
  candidates.emplace(path, candidate);
  AskIdentity(path, candidate);
}

void SocketWatcher::Impl::Vanished(const std::string& path, const Candidate& candidate) {
  if (candidate.registered.has_value()) {
    endpoints.Withdraw(candidate.registered->resource, candidate.registered->socket,
                       RemovedSocket(path));
  }
}

void SocketWatcher::Impl::AskIdentity(const std::string& path, const CandidatePtr& candidate) {
  const Asked asked{path, candidate, endpoints.Connect(path)};
  asked.client->Ask<calls::GetInfo>(
      {}, DeadlineAfter(options.info_deadline),
      [weak = weak_from_this(), asked](calls::CallResult<calls::PluginIdentity> result) {
        const auto self = weak.lock();
        if (self == nullptr || result.blame == calls::Blame::kStopping) {
          return;
        }
        self->PostFor(asked.path, asked.candidate,
                      [self, asked, identity = std::move(result.value)] {
                        self->TakeIdentity(asked, identity);
                      });
      });
}

void SocketWatcher::Impl::TakeIdentity(const Asked& asked,
                                       const StatusOr<calls::PluginIdentity>& identity) {
  if (!identity.ok()) {
    log::Debug("socket does not identify its plugin",
               {{"socket", asked.path}, {"error", MessageOf(identity.status())}});
    TryAgainLater(asked.path, asked.candidate);
    return;
  }
  if (identity->type != wire::kResourcePluginType && identity->type != calls::kComputeDriverType) {
    log::Debug("socket belongs to another manager",
               {{"socket", asked.path}, {"type", identity->type}});
    return;
  }
  const StatusOr<Registration> registration = ReadIdentity(*identity, asked.path);
  if (!registration.ok()) {
    Refuse(asked, registration.status());
    return;
  }
  endpoints.Register(*registration, [weak = weak_from_this(), asked,
                                     registration = *registration](const Status& outcome) {
    const auto self = weak.lock();
    if (self == nullptr) {
      return;
    }
    boost::asio::post(self->io, [weak, asked, registration, outcome] {
      if (const auto again = weak.lock()) {
        again->TakeOutcome(asked, registration, outcome);
      }
    });
  });
}

void SocketWatcher::Impl::TakeOutcome(const Asked& asked, const Registration& registration,
                                      const Status& outcome) {
  if (!IsCurrent(asked.path, asked.candidate)) {
    TakeBack(asked.path, registration, outcome);
    return;
  }
  if (!outcome.ok()) {
    Refuse(asked, outcome);
    return;
  }
  asked.candidate->registered = registration;
  asked.candidate->backoff = options.backoff_first;
  Notify(asked, "");
}

void SocketWatcher::Impl::TakeBack(const std::string& path, const Registration& registration,
                                   const Status& outcome) {
  if (!outcome.ok() || stopped) {
    return;
  }
  endpoints.Withdraw(registration.resource, registration.socket, RemovedSocket(path));
  // It may have replaced the registration of the plugin whose socket exists now.
  if (const auto now = candidates.find(path); now != candidates.end()) {
    AskIdentity(path, now->second);
  }
}

void SocketWatcher::Impl::Refuse(const Asked& asked, const Status& cause) {
  log::Warning("plugin socket rejected", {{"socket", asked.path}, {"error", MessageOf(cause)}});
  Notify(asked, MessageOf(cause));
  TryAgainLater(asked.path, asked.candidate);
}

void SocketWatcher::Impl::Notify(const Asked& asked, const std::string& error) const {
  // A plugin that fails this call stays registered: it answered the probe.
  asked.client->Ask<calls::NotifyRegistrationStatus>(
      error, DeadlineAfter(options.notify_deadline),
      [asked](const calls::CallResult<calls::Nothing>& told) {
        if (!told.value.ok() && told.blame != calls::Blame::kStopping) {
          log::Warning("plugin does not accept its registration status",
                       {{"socket", asked.path}, {"error", MessageOf(told.value.status())}});
        }
      });
}

void SocketWatcher::Impl::TryAgainLater(const std::string& path, const CandidatePtr& candidate) {
  candidate->retry.expires_after(candidate->backoff);
  candidate->backoff = std::min(candidate->backoff * 2, options.backoff_last);
  candidate->retry.async_wait([weak = weak_from_this(), path,
                               candidate](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (self == nullptr || error) {
      return;
    }
    self->PostFor(path, candidate, [self, path, candidate] { self->AskIdentity(path, candidate); });
  });
}

bool SocketWatcher::Impl::IsCurrent(const std::string& path, const CandidatePtr& candidate) const {
  const auto now = candidates.find(path);
  return now != candidates.end() && now->second == candidate;
}

void SocketWatcher::Impl::PostFor(const std::string& path, const CandidatePtr& candidate,
                                  std::function<void()> work) {
  boost::asio::post(io, [weak = weak_from_this(), path, candidate, work = std::move(work)] {
    if (const auto self = weak.lock(); self != nullptr && self->IsCurrent(path, candidate)) {
      work();
    }
  });
}

SocketWatcher::SocketWatcher(boost::asio::io_context& io, EndpointSet& endpoints,
                             SocketWatcherOptions options)
    : impl_(std::make_shared<Impl>(io, endpoints, std::move(options))) {}

SocketWatcher::~SocketWatcher() {
  // Posted work may outlive the watcher: it then finds no candidate, and no scan adds one.
  impl_->stopped = true;
  impl_->scan.reset();
  impl_->candidates.clear();
}

Status SocketWatcher::Start() {
  QRM_RETURN_IF_ERROR(impl_->scan->Start());
  impl_->Compare();
  return OkStatus();
}

}  // namespace qrm::manager
