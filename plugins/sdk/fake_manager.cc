// Serves the manager's side of both registration paths, and keeps a table of registered plugins.
#include "plugins/sdk/fake_manager.h"

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "api/base/cond_var.h"
#include "api/base/errorf.h"
#include "api/base/mutex.h"
#include "api/proto/qrm/v1/control.grpc.pb.h"
#include "api/proto/resourceplugin/v1alpha1/api.grpc.pb.h"
#include "api/rpc/grpc_lifetime.h"
#include "api/wire.h"
#include "plugins/sdk/calls/compute_calls.h"
#include "plugins/sdk/calls/extension_calls.h"
#include "plugins/sdk/calls/plugin_calls.h"
#include "plugins/sdk/calls/registration_calls.h"
#include "plugins/sdk/plugin_client.h"
#include "plugins/sdk/socket_file.h"

namespace qrm::sdk {
namespace {

namespace fs = std::filesystem;
namespace pb = ::resourceplugin::v1alpha1;

constexpr std::chrono::milliseconds kScanPeriod{10};

Status MakeDirectory(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    return Errorf(StatusCode::kFailedPrecondition, "cannot create directory {}: {}", path,
                  error.message());
  }
  return OkStatus();
}

void RemoveSockets(const std::string& directory) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.is_socket(ignored)) {
      fs::remove(entry.path(), ignored);
    }
  }
}

/// The registered plugins, by resource name.
class Table {
 public:
  void Add(const std::string& resource, const std::string& socket, const PluginOptions& options) {
    {
      const MutexLock lock(mutex_);
      RegisteredPlugin& plugin = plugins_[resource];
      plugin.socket = socket;
      plugin.options = options;
      ++plugin.registrations;
    }
    changed_.NotifyAll();
  }

  std::optional<RegisteredPlugin> Find(const std::string& resource) {
    const MutexLock lock(mutex_);
    const auto found = plugins_.find(resource);
    return found == plugins_.end() ? std::nullopt : std::optional(found->second);
  }

  bool WaitFor(const std::string& resource, int registrations, std::chrono::milliseconds limit) {
    const MutexLock lock(mutex_);
    return changed_.WaitUntil(
        mutex_, std::chrono::steady_clock::now() + limit, [&]() QRM_REQUIRES(mutex_) {
          const auto found = plugins_.find(resource);
          return found != plugins_.end() && found->second.registrations >= registrations;
        });
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, RegisteredPlugin> plugins_ QRM_GUARDED_BY(mutex_);
};

/// Serves Register.
class RegisterService final : public pb::Registration::CallbackService {
 public:
  RegisterService(std::string directory, Table& table)
      : directory_(std::move(directory)), table_(table) {}

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context,
                                     const pb::RegisterRequest* request, pb::Empty*) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    if (request->version() != wire::kPluginApiVersion) {
      reactor->Finish({grpc::StatusCode::INVALID_ARGUMENT,
                       fmt::format("cannot register: version {} is unknown; use {}",
                                   request->version(), wire::kPluginApiVersion)});
      return reactor;
    }
    table_.Add(request->resource_name(), directory_ + "/" + request->endpoint(),
               wire::FromWire(request->options()));
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  std::string directory_;
  Table& table_;
};

/// Serves NotifyChanged; the rest of qrmd's control API is missing.
class ControlService final : public v1::Control::CallbackService {
 public:
  grpc::ServerUnaryReactor* NotifyChanged(grpc::CallbackServerContext* context,
                                          const v1::NotifyChangedRequest* request,
                                          v1::NotifyChangedResponse*) override {
    {
      const MutexLock lock(mutex_);
      ++notifications_[request->resource_name()];
    }
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  int notifications(const std::string& resource) const {
    const MutexLock lock(mutex_);
    const auto found = notifications_.find(resource);
    return found == notifications_.end() ? 0 : found->second;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, int> notifications_ QRM_GUARDED_BY(mutex_);
};

/// Polls a directory, and registers each socket that is new in it.
class Watcher {
 public:
  Watcher(std::string directory, Table& table)
      : directory_(std::move(directory)),
        table_(table),
        thread_([this](const std::stop_token& stop) { Loop(stop); }) {}

 private:
  void Loop(const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any stopped;
    while (!stopped.wait_for(lock, stop, kScanPeriod, [&] { return stop.stop_requested(); })) {
      std::error_code ignored;
      for (const fs::directory_entry& entry : fs::directory_iterator(directory_, ignored)) {
        const std::string path = entry.path();
        if (entry.is_socket(ignored) && !entry.path().filename().string().starts_with('.')) {
          Look(path);
        }
      }
    }
  }

  /// A socket that does not answer is tried again at the next poll.
  void Look(const std::string& path) {
    const std::optional<FileId> id = FindFile(path);
    const auto known = known_.find(path);
    if (!id.has_value() || (known != known_.end() && known->second == *id)) {
      return;
    }
    PluginClient plugin(path);
    const StatusOr<calls::PluginIdentity> identity = plugin.Ask<calls::GetInfo>({});
    if (!identity.ok()) {
      return;
    }
    known_[path] = *id;
    const bool is_driver = identity->type == calls::kComputeDriverType;
    const StatusOr<PluginOptions> options =
        is_driver ? plugin.Ask<calls::ComputeOptions>({}) : plugin.Ask<calls::GetOptions>({});
    const bool ours = (is_driver || identity->type == wire::kResourcePluginType) && options.ok() &&
                      std::ranges::count(identity->supported_versions, wire::kPluginApiVersion) > 0;
    const auto told = plugin.Ask<calls::NotifyRegistrationStatus>(
        ours ? "" : "not a resource plugin of version " + std::string(wire::kPluginApiVersion));
    if (ours && told.ok()) {
      table_.Add(is_driver ? DriverResource(identity->name) : identity->name, path, *options);
    }
  }

  const std::string directory_;
  Table& table_;
  std::map<std::string, FileId> known_;
  std::jthread thread_;
};

}  // namespace

struct FakeManager::Impl {
  explicit Impl(const std::string& root)
      : registration_dir(root + "/resource-plugins"),
        plugins_dir(root + "/plugins_registry"),
        control_socket(root + "/control.sock"),
        service(registration_dir, table) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    for (grpc::Server* running : {server.get(), control_server.get()}) {
      if (running != nullptr) {
        running->Shutdown(std::chrono::system_clock::now());
      }
    }
  }

  Status Listen() {
    QRM_ASSIGN_OR_RETURN(server, ListenOn(registration_dir + "/kubelet.sock", service));
    QRM_ASSIGN_OR_RETURN(control_server, ListenOn(control_socket, control));
    return OkStatus();
  }

  /// Like qrmd: the socket appears once it accepts calls.
  static StatusOr<std::unique_ptr<grpc::Server>> ListenOn(const std::string& path,
                                                          grpc::Service& service) {
    KeepGrpcCallbackThreads();
    QRM_ASSIGN_OR_RETURN(const std::string temporary, TemporarySocketPath(path));
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + temporary, grpc::InsecureServerCredentials());
    builder.RegisterService(&service);
    std::unique_ptr<grpc::Server> listening = builder.BuildAndStart();
    if (listening == nullptr) {
      return Errorf(StatusCode::kFailedPrecondition,
                    "cannot listen on {}; choose a root that can be written", path);
    }
    QRM_RETURN_IF_ERROR(PlaceSocket(temporary, path));
    return listening;
  }

  /// Calls the plugin of `resource`.
  template <typename C>
  StatusOr<typename C::Answer> Ask(const std::string& resource, typename C::Request request) {
    const std::optional<RegisteredPlugin> plugin = table.Find(resource);
    if (!plugin.has_value()) {
      return Errorf(StatusCode::kNotFound,
                    "cannot call the plugin of {}: no such plugin registered; wait for it",
                    resource);
    }
    return PluginClient(plugin->socket).Ask<C>(std::move(request));
  }

  const std::string registration_dir;
  const std::string plugins_dir;
  const std::string control_socket;
  Table table;
  RegisterService service;
  ControlService control;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<grpc::Server> control_server;
  std::optional<Watcher> watcher;
};

StatusOr<std::unique_ptr<FakeManager>> FakeManager::Start(const std::string& root) {
  auto impl = std::make_unique<Impl>(root);
  QRM_RETURN_IF_ERROR(MakeDirectory(impl->registration_dir));
  QRM_RETURN_IF_ERROR(MakeDirectory(impl->plugins_dir));
  RemoveSockets(impl->registration_dir);
  std::error_code ignored;
  fs::remove(impl->control_socket, ignored);
  QRM_RETURN_IF_ERROR(impl->Listen());
  impl->watcher.emplace(impl->plugins_dir, impl->table);
  return std::unique_ptr<FakeManager>(new FakeManager(std::move(impl)));
}

FakeManager::FakeManager(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

FakeManager::~FakeManager() = default;

std::string FakeManager::registration_dir() const {
  return impl_->registration_dir;
}

std::string FakeManager::plugins_dir() const {
  return impl_->plugins_dir;
}

std::string FakeManager::control_socket() const {
  return impl_->control_socket;
}

int FakeManager::notifications(const std::string& resource) const {
  return impl_->control.notifications(resource);
}

StatusOr<RegisteredPlugin> FakeManager::WaitForPlugin(const std::string& resource,
                                                      int registrations,
                                                      std::chrono::milliseconds limit) {
  const bool is_there = impl_->table.WaitFor(resource, registrations, limit);
  std::optional<RegisteredPlugin> plugin = is_there ? impl_->table.Find(resource) : std::nullopt;
  if (!plugin.has_value()) {
    return Errorf(
        StatusCode::kDeadlineExceeded,
        "cannot find the plugin of {}: it did not register {} times within {} ms; see its log",
        resource, registrations, limit.count());
  }
  return *std::move(plugin);
}

StatusOr<ResourceAllocation> FakeManager::Admit(ContainerRequest request) {
  const std::optional<RegisteredPlugin> plugin = impl_->table.Find(request.resource);
  if (plugin.has_value() && plugin->options.with_topology_alignment) {
    QRM_ASSIGN_OR_RETURN(const HintList hints, Hints(request));
    if (hints.IsImpossible()) {
      return Errorf(StatusCode::kResourceExhausted,
                    "cannot admit container {}: no NUMA node can serve {}; release some of it",
                    request.key.container, request.resource);
    }
    const auto best = std::ranges::find_if(hints.hints(), &TopologyHint::preferred);
    request.hint = hints.IsNoPreference()        ? TopologyHint{.nodes = {}, .preferred = true}
                   : best == hints.hints().end() ? hints.hints().front()
                                                 : *best;
  }
  return Allocate(request);
}

StatusOr<ComputeGrant> FakeManager::ComputeAdmit(const ComputeRequest& request) {
  return impl_->Ask<calls::ComputeAdmit>(request.resource, request);
}

Status FakeManager::ComputeAdd(const ComputeInstance& instance) {
  return impl_->Ask<calls::ComputeAdd>(instance.resource, instance).status();
}

Status FakeManager::ComputeRemove(const ComputeRemoval& removal) {
  return impl_->Ask<calls::ComputeRemove>(removal.resource, removal).status();
}

StatusOr<HintList> FakeManager::Hints(const ContainerRequest& request) {
  return impl_->Ask<calls::GetTopologyHints>(request.resource, request);
}

StatusOr<ResourceAllocation> FakeManager::Allocate(const ContainerRequest& request) {
  QRM_ASSIGN_OR_RETURN(AllocationByResource allocations,
                       impl_->Ask<calls::Allocate>(request.resource, request));
  return std::move(allocations[request.resource]);
}

Status FakeManager::RemovePod(const std::string& resource, const std::string& pod_uid) {
  return impl_->Ask<calls::RemovePod>(resource, pod_uid).status();
}

Status FakeManager::ReleaseContainer(const std::string& resource, const ContainerKey& key) {
  return impl_->Ask<calls::ReleaseContainer>(resource, key).status();
}

StatusOr<std::map<ContainerKey, ResourceAllocation>> FakeManager::Reconcile(
    const std::string& resource) {
  QRM_ASSIGN_OR_RETURN(const calls::HeldAllocations held,
                       impl_->Ask<calls::GetResourcesAllocation>(resource, {}));
  std::map<ContainerKey, ResourceAllocation> allocations;
  for (const auto& [key, name, allocation] : *held) {
    if (name == resource) {
      allocations.emplace(key, allocation);
    }
  }
  return allocations;
}

StatusOr<AllocatableResource> FakeManager::Allocatable(const std::string& resource) {
  QRM_ASSIGN_OR_RETURN(AllocatableByResource resources,
                       impl_->Ask<calls::GetAllocatable>(resource, {}));
  return std::move(resources[resource]);
}

StatusOr<std::vector<Pool>> FakeManager::Pools(const std::string& resource) {
  return impl_->Ask<calls::GetPools>(resource, resource);
}

StatusOr<std::vector<Pool>> FakeManager::SetPools(
    const std::string& resource, const std::map<std::string, CpuSet>& cpus_by_pool) {
  calls::SetPools::Request request{.resource = resource};
  for (const auto& [name, cpus] : cpus_by_pool) {
    request.cpus_by_pool.emplace(name, ToString(cpus));
  }
  return impl_->Ask<calls::SetPools>(resource, std::move(request));
}

StatusOr<std::string> FakeManager::ExportState(const std::string& resource) {
  return impl_->Ask<calls::ExportState>(resource, {});
}

}  // namespace qrm::sdk
