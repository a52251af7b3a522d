// Registers plugins, and starts calls to them.
#include "manager/registry/endpoint_set.h"

#include <utility>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "manager/registry/calls/grpc_plugin_client.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::manager {
namespace {

constexpr char kBuiltInAddress[] = "built-in";

Status NoPlugin(const std::string& resource, const char* action) {
  return Errorf(StatusCode::kNotFound,
                "cannot {} the plugin of {}: no plugin of that resource has registered; start the "
                "plugin",
                action, resource);
}

Status Taken(const PluginInfo& holder, const std::string& by) {
  const bool built_in = holder.registered_by == RegisteredBy::kBuiltIn;
  return Errorf(StatusCode::kAlreadyExists,
                "cannot register {} for resource {}: {} already serves it; {}", by, holder.resource,
                built_in ? "the built-in plugin" : "the plugin at " + holder.endpoint,
                built_in ? "remove it from builtin-plugins" : "stop that plugin first");
}

}  // namespace

EndpointSet::EndpointSet(EndpointSetOptions options)
    : options_(std::move(options)), in_flight_(std::make_shared<rpc::CallsInFlight>()) {
  for (const std::string& resource : options_.known) {
    PluginInfo info{.resource = resource,
                    .registered_by = RegisteredBy::kCheckpoint,
                    .problem = "it has not registered since qrmd started; start the plugin"};
    endpoints_[resource] = std::make_shared<Endpoint>(std::move(info), OptionsFrom::kRegistration,
                                                      nullptr, options_.probe);
  }
}

EndpointSet::~EndpointSet() {
  in_flight_->StopAndWait();
  const MutexLock lock(mutex_);
  for (const auto& [resource, endpoint] : endpoints_) {
    endpoint->Close("qrmd is stopping; start qrmd");
  }
}

EndpointSet::EndpointPtr EndpointSet::Lookup(const std::string& resource) const {
  const MutexLock lock(mutex_);
  const auto found = endpoints_.find(resource);
  return found == endpoints_.end() ? nullptr : found->second;
}

std::shared_ptr<GrpcPluginClient> EndpointSet::Connect(const std::string& socket) const {
  return std::make_shared<GrpcPluginClient>(socket, options_.machine_nodes, in_flight_);
}

// --- registration

EndpointSet::EndpointPtr EndpointSet::NewEndpoint(const Registration& registration) const {
  PluginInfo info{.resource = registration.resource,
                  .endpoint = registration.socket,
                  .registered_by = registration.registered_by,
                  .options = registration.options.value_or(PluginOptions{}),
                  .problem = "it is being registered; wait a moment"};
  return std::make_shared<Endpoint>(
      std::move(info),
      registration.options.has_value() ? OptionsFrom::kRegistration : OptionsFrom::kProbe,
      ClientOf(registration), options_.probe);
}

std::shared_ptr<PluginClient> EndpointSet::ClientOf(const Registration& registration) const {
  if (sdk::IsDriverResource(registration.resource)) {
    return std::make_shared<DriverClient>(registration.socket, options_.machine_nodes, in_flight_);
  }
  return Connect(registration.socket);
}

Status EndpointSet::AddBuiltIn(const std::string& resource, LocalPlugin& plugin) {
  PluginInfo info{.resource = resource,
                  .endpoint = kBuiltInAddress,
                  .registered_by = RegisteredBy::kBuiltIn,
                  .options = plugin.options(),
                  .live = true};
  {
    const MutexLock lock(mutex_);
    locals_.emplace(resource, &plugin);
  }
  return Install(std::make_shared<Endpoint>(std::move(info), OptionsFrom::kRegistration, nullptr,
                                            options_.probe));
}

void EndpointSet::Register(Registration registration, std::function<void(Status)> done) {
  const EndpointPtr holder = Lookup(registration.resource);
  if (holder == nullptr || !holder->live() || holder->Info().endpoint == registration.socket) {
    Enroll(registration, std::move(done));
    return;
  }
  if (Local(registration.resource) != nullptr) {
    done(Taken(holder->Info(), registration.socket));
    return;
  }
  // The live plugin may have died a moment ago: probe it before the new one is rejected.
  holder->Probe([this, registration = std::move(registration), info = holder->Info(),
                 done = std::move(done)](const Status& live) {
    live.ok() ? done(Taken(info, registration.socket)) : Enroll(registration, done);
  });
}

void EndpointSet::Enroll(const Registration& registration, std::function<void(Status)> done) {
  const EndpointPtr endpoint = NewEndpoint(registration);
  endpoint->Probe([this, endpoint, done = std::move(done)](const Status& live) {
    const PluginInfo info = endpoint->Info();
    done(live.ok() ? Install(endpoint)
                   : Annotate(live, fmt::format("cannot register {} for resource {}", info.endpoint,
                                                info.resource)));
  });
}

Status EndpointSet::Install(const EndpointPtr& endpoint) {
  const PluginInfo info = endpoint->Info();
  EndpointPtr replaced;
  {
    const MutexLock lock(mutex_);
    EndpointPtr& place = endpoints_[info.resource];
    if (place != nullptr && place->live() && place->Info().endpoint != info.endpoint) {
      return Taken(place->Info(), info.endpoint);
    }
    replaced = std::exchange(place, endpoint);
  }
  if (replaced != nullptr) {
    replaced->Close("another registration replaced it");
  }
  endpoint->Follow(watcher_, options_.on_registered);
  log::Info("plugin registered", {{"resource", info.resource},
                                  {"endpoint", info.endpoint},
                                  {"by", ToString(info.registered_by)}});
  if (info.registered_by != RegisteredBy::kBuiltIn) {
    options_.probe.on_change(
        info.resource, fmt::format("plugin {} at {} has registered", info.resource, info.endpoint));
  }
  options_.on_registered(info.resource);
  return OkStatus();
}

void EndpointSet::Withdraw(const std::string& resource, const std::string& socket,
                           const std::string& why) {
  const EndpointPtr endpoint = Lookup(resource);
  if (endpoint == nullptr || endpoint->Info().endpoint != socket) {
    return;
  }
  endpoint->Close(why);
  log::Warning("plugin withdrawn", {{"resource", resource}, {"endpoint", socket}, {"error", why}});
  options_.probe.on_change(resource,
                           fmt::format("plugin {} at {} is withdrawn: {}", resource, socket, why));
}

// --- queries

std::vector<PluginInfo> EndpointSet::List() const {
  const MutexLock lock(mutex_);
  std::vector<PluginInfo> infos;
  infos.reserve(endpoints_.size());
  for (const auto& [resource, endpoint] : endpoints_) {
    infos.push_back(endpoint->Info());
  }
  return infos;
}

std::optional<PluginInfo> EndpointSet::Find(const std::string& resource) const {
  const EndpointPtr endpoint = Lookup(resource);
  return endpoint == nullptr ? std::nullopt : std::optional(endpoint->Info());
}

LocalPlugin* EndpointSet::Local(const std::string& resource) const {
  const MutexLock lock(mutex_);
  const auto found = locals_.find(resource);
  return found == locals_.end() ? nullptr : found->second;
}

void EndpointSet::MarkSuspect(const std::string& resource, const std::string& problem) {
  if (const EndpointPtr endpoint = Lookup(resource); endpoint != nullptr) {
    endpoint->MarkSuspect(problem);
  }
}

void EndpointSet::Forget(const std::string& resource) {
  EndpointPtr forgotten;
  const MutexLock lock(mutex_);
  const auto found = endpoints_.find(resource);
  if (found == endpoints_.end() || found->second->live()) {
    return;
  }
  forgotten = std::move(found->second);
  endpoints_.erase(found);
  forgotten->Close("it was forgotten; start the plugin");
}

// --- calls

void EndpointSet::NoteAnswer(const std::string& resource, const calls::Method& method,
                             std::chrono::steady_clock::time_point begun, const Status& status) {
  options_.on_call({.resource = resource,
                    .method = method.name(),
                    .took = std::chrono::steady_clock::now() - begun,
                    .ok = status.ok()});
  if (const EndpointPtr endpoint = Lookup(resource); status.ok() && endpoint != nullptr) {
    (void)endpoint->Judge(method, status, calls::Blame::kNobody);
  }
}

void EndpointSet::Start(const std::string& resource, std::shared_ptr<calls::Call> call,
                        Deadline deadline) {
  const auto ended = [this, resource, method = call->method().name(),
                      begun = std::chrono::steady_clock::now()](const Status& status) {
    options_.on_call({.resource = resource,
                      .method = method,
                      .took = std::chrono::steady_clock::now() - begun,
                      .ok = status.ok()});
  };
  EndpointPtr endpoint;
  // Another registration may have replaced the endpoint since it was looked up.
  for (EndpointPtr next = Lookup(resource); next != endpoint; next = Lookup(resource)) {
    endpoint = std::move(next);
    if (endpoint != nullptr && endpoint->Start(call, deadline, ended)) {
      return;
    }
  }
  const char* const action = call->method().action;
  if (endpoint == nullptr) {
    call->Fail(NoPlugin(resource, action), calls::Blame::kConnection);
    return;
  }
  const Status away = endpoint->Away(action);
  ended(away);
  call->Fail(away, calls::Blame::kConnection);
}

}  // namespace qrm::manager
