// Registration of plugins, and the calls to several of them at once.
#include "manager/registry/endpoint_set.h"

#include <utility>

#include "api/base/log.h"

namespace qrm::manager {
namespace {

constexpr char kBuiltInAddress[] = "built-in";

/// `call` on one plugin; its arguments are bound by then.
template <typename T>
using PluginCall = std::function<void(PluginClient&, PluginClient::Done<T>)>;

Status NoPlugin(const std::string& resource, const char* action) {
  return Errorf(StatusCode::kNotFound,
                "cannot {} the plugin of {}: no plugin of that resource has registered; start it",
                action, resource);
}

Status Taken(const PluginInfo& holder, const std::string& by) {
  const bool built_in = holder.registered_by == RegisteredBy::kBuiltIn;
  return Errorf(StatusCode::kAlreadyExists,
                "cannot register {} for resource {}: {} serves it and is live; {}", by,
                holder.resource,
                built_in ? "the built-in plugin" : "the plugin at " + holder.endpoint,
                built_in ? "take it out of builtin-plugins" : "stop that one first");
}

}  // namespace

EndpointSet::EndpointSet(EndpointSetOptions options)
    : options_(std::move(options)), calls_(std::make_shared<CallsInFlight>()) {
  for (const std::string& resource : options_.known) {
    PluginInfo info{.resource = resource,
                    .registered_by = RegisteredBy::kCheckpoint,
                    .problem = "it has not registered since qrmd started; start it"};
    endpoints_[resource] = std::make_shared<Endpoint>(std::move(info), OptionsFrom::kRegistration,
                                                      nullptr, options_.probe);
  }
}

EndpointSet::~EndpointSet() {
  calls_->StopAndWait();
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
  return std::make_shared<GrpcPluginClient>(socket, options_.machine_nodes, calls_);
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
      Connect(registration.socket), options_.probe);
}

Status EndpointSet::AddBuiltIn(const std::string& resource, PluginClient& plugin) {
  PluginInfo info{
      .resource = resource, .endpoint = kBuiltInAddress, .registered_by = RegisteredBy::kBuiltIn};
  const std::shared_ptr<PluginClient> not_owned(std::shared_ptr<void>(), &plugin);
  const auto endpoint =
      std::make_shared<Endpoint>(std::move(info), OptionsFrom::kProbe, not_owned, options_.probe);
  const auto probed =
      FanOut<Acknowledged>(1, DeadlineAfter(options_.probe.deadline),
                           [&](std::size_t, AnswerCallback<Acknowledged> answer) {
                             endpoint->Probe([answer = std::move(answer)](const Status& live) {
                               live.ok() ? answer(Acknowledged{}) : answer(live);
                             });
                           });
  QRM_RETURN_IF_ERROR(
      Annotate(probed.front().status(), "cannot add the built-in plugin of " + resource));
  return Install(endpoint);
}

void EndpointSet::Register(Registration registration, std::function<void(Status)> done) {
  const EndpointPtr holder = Lookup(registration.resource);
  if (holder == nullptr || !holder->live() || holder->Info().endpoint == registration.socket) {
    Enroll(registration, std::move(done));
    return;
  }
  // The holder may have died a moment ago: ask it before its name is refused to somebody else.
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
    replaced->Close("another registration took its place");
  }
  endpoint->Follow(watcher_, options_.on_registered);
  log::Info("plugin registered", {{"resource", info.resource},
                                  {"endpoint", info.endpoint},
                                  {"by", ToString(info.registered_by)}});
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
  log::Warning("plugin withdrawn", {{"resource", resource}, {"endpoint", socket}, {"why", why}});
}

// --- what is known

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

void EndpointSet::MarkSuspect(const std::string& resource, const std::string& problem) {
  if (const EndpointPtr endpoint = Lookup(resource); endpoint != nullptr) {
    endpoint->MarkSuspect(problem);
  }
}

std::vector<EndpointSet::EndpointPtr> EndpointSet::Live(Interest interest) const {
  const MutexLock lock(mutex_);
  std::vector<EndpointPtr> live;
  for (const auto& [resource, endpoint] : endpoints_) {
    const PluginInfo info = endpoint->Info();
    if (info.live && (interest == Interest::kAnyLive || info.options.need_reconcile)) {
      live.push_back(endpoint);
    }
  }
  return live;
}

std::vector<EndpointSet::EndpointPtr> EndpointSet::Live(
    const std::set<std::string>& resources) const {
  std::vector<EndpointPtr> live = Live(Interest::kAnyLive);
  std::erase_if(live, [&](const EndpointPtr& endpoint) {
    return !resources.contains(endpoint->Info().resource);
  });
  return live;
}

// --- calls

template <typename T>
AnswerCallback<T> EndpointSet::Observed(const std::string& resource, const Question& question,
                                        AnswerCallback<T> done) const {
  return [this, resource, method = question.method, begun = std::chrono::steady_clock::now(),
          done = std::move(done)](StatusOr<T> answer) {
    options_.on_call({.resource = resource,
                      .method = method,
                      .took = std::chrono::steady_clock::now() - begun,
                      .ok = answer.ok()});
    done(std::move(answer));
  };
}

template <typename T>
void EndpointSet::AskOne(const std::string& resource, const Question& question,
                         const PluginCall<T>& call, AnswerCallback<T> done) const {
  const EndpointPtr endpoint = Lookup(resource);
  if (endpoint == nullptr) {
    done(NoPlugin(resource, question.action));
    return;
  }
  endpoint->Ask<T>(question.action, call, Observed<T>(resource, question, std::move(done)));
}

template <typename T>
std::map<std::string, Status> EndpointSet::TellEach(const std::vector<std::string>& resources,
                                                    const Question& question, Deadline deadline,
                                                    const PluginCall<T>& call) const {
  const auto answers =
      FanOut<T>(resources.size(), deadline, [&](std::size_t index, AnswerCallback<T> answer) {
        AskOne<T>(resources[index], question, call, std::move(answer));
      });
  std::map<std::string, Status> results;
  for (std::size_t index = 0; index < resources.size(); ++index) {
    results.emplace(resources[index], answers[index].status());
  }
  return results;
}

template <typename T>
void EndpointSet::AskEach(std::vector<EndpointPtr> live, const Question& question,
                          const PluginCall<T>& call,
                          std::function<void(std::map<std::string, StatusOr<T>>)> done) const {
  FanOutThen<T>(
      live.size(),
      [&](std::size_t index, AnswerCallback<T> answer) {
        live[index]->Ask<T>(question.action, call,
                            Observed<T>(live[index]->Info().resource, question, std::move(answer)));
      },
      [live, done = std::move(done)](std::vector<StatusOr<T>> answers) {
        std::map<std::string, StatusOr<T>> by_plugin;
        for (std::size_t index = 0; index < live.size(); ++index) {
          by_plugin.emplace(live[index]->Info().resource, std::move(answers[index]));
        }
        done(std::move(by_plugin));
      });
}

std::vector<StatusOr<HintList>> EndpointSet::GetTopologyHints(
    const std::vector<ContainerRequest>& requests, Deadline deadline) {
  return FanOut<HintList>(requests.size(), deadline,
                          [&](std::size_t index, AnswerCallback<HintList> answer) {
                            const ContainerRequest& request = requests[index];
                            AskOne<HintList>(
                                request.resource, {"GetTopologyHints", "get hints from"},
                                [&](PluginClient& plugin, PluginClient::Done<HintList> done) {
                                  plugin.GetTopologyHints(request, deadline, std::move(done));
                                },
                                std::move(answer));
                          });
}

std::vector<StatusOr<AllocationByResource>> EndpointSet::Allocate(
    const std::vector<ContainerRequest>& requests, Deadline deadline) {
  return FanOut<AllocationByResource>(
      requests.size(), deadline,
      [&](std::size_t index, AnswerCallback<AllocationByResource> answer) {
        const ContainerRequest& request = requests[index];
        AskOne<AllocationByResource>(
            request.resource, {"Allocate", "allocate with"},
            [&](PluginClient& plugin, PluginClient::Done<AllocationByResource> done) {
              plugin.Allocate(request, deadline, std::move(done));
            },
            std::move(answer));
      });
}

std::map<std::string, Status> EndpointSet::RemovePod(const std::string& pod_uid,
                                                     const std::vector<std::string>& resources,
                                                     Deadline deadline) {
  return TellEach<Acknowledged>(resources, {"RemovePod", "remove a pod from"}, deadline,
                                [&](PluginClient& plugin, PluginClient::Done<Acknowledged> done) {
                                  plugin.RemovePod(pod_uid, deadline, std::move(done));
                                });
}

std::map<std::string, Status> EndpointSet::ReleaseContainer(
    const ContainerKey& key, const std::vector<std::string>& resources, Deadline deadline) {
  return TellEach<Acknowledged>(resources, {"ReleaseContainer", "release a container of"}, deadline,
                                [&](PluginClient& plugin, PluginClient::Done<Acknowledged> done) {
                                  plugin.ReleaseContainer(key, deadline, std::move(done));
                                });
}

void EndpointSet::GetResourcesAllocation(const std::set<std::string>& resources, Deadline deadline,
                                         std::function<void(AllocationsByPlugin)> done) {
  AskEach<HeldAllocations>(
      resources.empty() ? Live(Interest::kNeedsReconcile) : Live(resources),
      {"GetResourcesAllocation", "get the allocations of"},
      [&](PluginClient& plugin, PluginClient::Done<HeldAllocations> answer) {
        plugin.GetResourcesAllocation(deadline, std::move(answer));
      },
      std::move(done));
}

void EndpointSet::GetAllocatable(
    Deadline deadline,
    std::function<void(std::map<std::string, StatusOr<AllocatableByResource>>)> done) {
  AskEach<AllocatableByResource>(
      Live(Interest::kAnyLive),
      {"GetTopologyAwareAllocatableResources", "get the allocatable resources of"},
      [&](PluginClient& plugin, PluginClient::Done<AllocatableByResource> answer) {
        plugin.GetAllocatable(deadline, std::move(answer));
      },
      std::move(done));
}

void EndpointSet::GetPlacement(const ContainerKey& key, const std::string& resource,
                               Deadline deadline,
                               std::function<void(StatusOr<PlacedByResource>)> done) {
  AskOne<PlacedByResource>(
      resource, {"GetTopologyAwareResources", "get a container's placement from"},
      [&](PluginClient& plugin, PluginClient::Done<PlacedByResource> answer) {
        plugin.GetPlacement(key, deadline, std::move(answer));
      },
      std::move(done));
}

void EndpointSet::GetPools(const std::string& resource, Deadline deadline, PoolsCallback done) {
  AskOne<std::vector<PoolInfo>>(
      resource, {"GetPools", "get the pools of"},
      [&](PluginClient& plugin, PluginClient::Done<std::vector<PoolInfo>> answer) {
        plugin.GetPools(resource, deadline, std::move(answer));
      },
      std::move(done));
}

void EndpointSet::SetPools(const std::string& resource,
                           const std::map<std::string, std::string>& cpus_by_pool,
                           Deadline deadline, PoolsCallback done) {
  AskOne<std::vector<PoolInfo>>(
      resource, {"SetPools", "set the pools of"},
      [&](PluginClient& plugin, PluginClient::Done<std::vector<PoolInfo>> answer) {
        plugin.SetPools(resource, cpus_by_pool, deadline, std::move(answer));
      },
      std::move(done));
}

}  // namespace qrm::manager
