// Converts between advisors' messages and the desk's values.
#include "plugins/cpu/advisor/advisor_server.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include <grpcpp/grpcpp.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/base/mutex.h"
#include "api/proto/qrm/v1/advisor.grpc.pb.h"
#include "api/rpc/grpc_lifetime.h"
#include "api/rpc/grpc_status.h"
#include "api/rpc/request_bounds.h"
#include "plugins/cpu/config/instances.h"
#include "plugins/sdk/socket_file.h"

namespace qrm::cpu {
namespace {

constexpr mode_t kSocketMode = 0600;
/// The most concurrent watches; each has a copy of the node to send.
constexpr int kMaxWatchers = 16;
constexpr int kMaxCallBytes = 1 << 20;

/// The pool and the instance that `name` names.
template <typename Message>
void SetName(const std::string& name, Message& message) {
  const std::string_view pool = ConfiguredName(name);
  message.set_pool(std::string(pool));
  if (pool.size() < name.size()) {
    message.set_instance(name.substr(pool.size() + 1));
  }
}

std::string NameIn(const v1::AdviceEntry& entry) {
  return entry.instance().empty() ? entry.pool() : entry.pool() + "/" + entry.instance();
}

int CountIn(const PoolSizes& sizes, const std::string& pool) {
  const auto size = sizes.find(pool);
  return size == sizes.end() ? 0 : size->second;
}

void FillPool(const NodeSight& sight, const AdvisorConfig& config, const std::string& name,
              const PoolAsk& ask, v1::AdvisedPool& pool) {
  SetName(name, pool);
  pool.set_min(ask.min);
  pool.set_max(ask.max);
  pool.set_wish(ask.wish);
  pool.set_size(CountIn(sight.advised.sizes, name));
  pool.set_advised(CountIn(sight.in_force, name));
  pool.set_may_be_advised(config.Advises(pool.pool()));
  if (const auto cpus = sight.pools.find(name); cpus != sight.pools.end()) {
    for (const auto& [node, online] : sight.online) {
      (*pool.mutable_cpus_by_numa())[node] = (cpus->second & online).Count();
    }
  }
}

v1::AdvisedNode ToWire(const NodeSight& sight, const AdvisorConfig& config) {
  v1::AdvisedNode wire;
  wire.set_generation(sight.advised.generation);
  wire.set_capacity(sight.advised.capacity);
  for (const auto& [id, online] : sight.online) {
    v1::MachineNode& node = *wire.add_nodes();
    node.set_numa_node(id);
    node.set_online_cpus(ToString(online));
  }
  for (const auto& [name, ask] : sight.advised.asks) {
    FillPool(sight, config, name, ask, *wire.add_pools());
  }
  for (const NodeSight::Container& seen : sight.containers) {
    v1::AdvisedContainer& container = *wire.add_containers();
    container.set_pod_uid(seen.key.pod_uid);
    container.set_container(seen.key.container);
    SetName(seen.pool, container);
    container.set_request_milli_cpus(seen.milli_cpus);
    container.set_limit_milli_cpus(seen.milli_limit);
  }
  return wire;
}

AdviceCall FromWire(const v1::AdviseRequest& wire) {
  AdviceCall call{.advisor = wire.advisor(),
                  .generation = wire.generation(),
                  .lease = std::chrono::milliseconds(wire.lease_millis()),
                  .entries = {}};
  call.entries.reserve(static_cast<std::size_t>(wire.entries_size()));
  for (const v1::AdviceEntry& entry : wire.entries()) {
    call.entries.push_back({NameIn(entry), entry.cpus(), entry.reason()});
  }
  return call;
}

/// Sends the node to one watcher, and again after each change. Changes during a send are combined.
/// Deletes itself.
class Watcher final : public grpc::ServerWriteReactor<v1::AdvisedNode> {
 public:
  /// Decrements `watchers` at the end.
  Watcher(AdviceDesk& desk, std::atomic<int>& watchers) : desk_(desk), watchers_(watchers) {
    listener_ = desk_.Listen([this] { Changed(); });
    Changed();
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mutex_);
    is_writing_ = false;
    if (!ok) {
      End();
    } else if (has_changed_) {
      Write();
    }
  }
  void OnCancel() override {
    MutexLock lock(mutex_);
    End();
  }
  void OnDone() override {
    desk_.Forget(listener_);
    --watchers_;
    delete this;
  }

 private:
  void Changed() {
    MutexLock lock(mutex_);
    has_changed_ = true;
    if (!is_writing_ && !has_ended_) {
      Write();
    }
  }
  void Write() QRM_REQUIRES(mutex_) {
    const auto sight = desk_.Sight();
    if (sight == nullptr) {
      return;
    }
    has_changed_ = false;
    is_writing_ = true;
    node_ = ToWire(*sight, desk_.config());
    StartWrite(&node_);
  }
  void End() QRM_REQUIRES(mutex_) {
    if (!std::exchange(has_ended_, true)) {
      Finish(grpc::Status::CANCELLED);
    }
  }

  AdviceDesk& desk_;
  std::atomic<int>& watchers_;
  uint64_t listener_ = 0;
  Mutex mutex_;
  bool is_writing_ QRM_GUARDED_BY(mutex_) = false;
  bool has_changed_ QRM_GUARDED_BY(mutex_) = false;
  bool has_ended_ QRM_GUARDED_BY(mutex_) = false;
  v1::AdvisedNode node_ QRM_GUARDED_BY(mutex_);  // being sent
};

/// Ends a watch that cannot start. Deletes itself.
class Refusal final : public grpc::ServerWriteReactor<v1::AdvisedNode> {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

class AdvisorService final : public v1::Advisor::CallbackService {
 public:
  explicit AdvisorService(AdviceDesk& desk) : desk_(desk) {}

  grpc::ServerUnaryReactor* GetNode(grpc::CallbackServerContext* context,
                                    const v1::GetNodeRequest* /*request*/,
                                    v1::AdvisedNode* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    if (const auto sight = desk_.Sight(); sight != nullptr) {
      *response = ToWire(*sight, desk_.config());
    }
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerWriteReactor<v1::AdvisedNode>* Watch(
      grpc::CallbackServerContext* /*context*/, const v1::WatchNodeRequest* /*request*/) override {
    if (++watchers_ > kMaxWatchers) {
      --watchers_;
      return new Refusal(rpc::ToGrpc(
          Errorf(StatusCode::kResourceExhausted,
                 "cannot watch the node: there are {} watches; end one of them", kMaxWatchers)));
    }
    return new Watcher(desk_, watchers_);
  }

  grpc::ServerUnaryReactor* Advise(grpc::CallbackServerContext* context,
                                   const v1::AdviseRequest* request,
                                   v1::AdviseResponse* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const StatusOr<AdviceDesk::Answer> answer =
        request->advisor() == kByUse ? Errorf(StatusCode::kInvalidArgument,
                                              "cannot take advice of {}: that is the name of the "
                                              "built-in advisor; use another name",
                                              kByUse)
                                     : desk_.Advise(FromWire(*request));
    if (answer.ok()) {
      response->set_generation(answer->generation);
      for (const AdviceResult& result : answer->results) {
        v1::AppliedAdvice& applied = *response->add_entries();
        SetName(result.pool, applied);
        applied.set_size(result.applied);
        applied.set_clipped_by(static_cast<v1::Clip>(result.clipped));
      }
    }
    reactor->Finish(rpc::ToGrpc(answer.status()));
    return reactor;
  }

 private:
  AdviceDesk& desk_;
  std::atomic<int> watchers_ = 0;
};

/// Ignores errors: creating the socket reports them.
void MakeDirectory(const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::create_directory(directory, ignored)) {
    fs::permissions(directory, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec,
                    ignored);
  }
}

}  // namespace

struct AdvisorServer::Impl {
  explicit Impl(AdviceDesk& desk) : service(desk) {}
  ~Impl() {
    if (id.has_value() && sdk::FindFile(path) == id) {
      ::unlink(path.c_str());
    }
    if (server != nullptr) {
      server->Shutdown(std::chrono::system_clock::now());  // watches do not end by themselves
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  AdvisorService service;
  std::string path;
  std::optional<sdk::FileId> id;
  std::unique_ptr<grpc::Server> server;
};

AdvisorServer::AdvisorServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

AdvisorServer::~AdvisorServer() = default;

StatusOr<std::unique_ptr<AdvisorServer>> AdvisorServer::Start(const std::string& socket,
                                                              AdviceDesk& desk) {
  MakeDirectory(std::filesystem::path(socket).parent_path());
  QRM_ASSIGN_OR_RETURN(const std::string temporary, sdk::TemporarySocketPath(socket));
  auto impl = std::make_unique<Impl>(desk);
  KeepGrpcCallbackThreads();
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + temporary, grpc::InsecureServerCredentials());
  rpc::BoundRequests(builder, kMaxCallBytes);
  builder.RegisterService(&impl->service);
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot listen on {}: cannot create a socket there; make the directory writable",
                  socket);
  }
  ::chmod(temporary.c_str(), kSocketMode);
  const std::optional<sdk::FileId> id = sdk::FindFile(temporary);
  if (Status placed = sdk::PlaceSocket(temporary, socket); !placed.ok()) {
    ::unlink(temporary.c_str());
    return placed;
  }
  impl->path = socket;
  impl->id = id;
  return std::unique_ptr<AdvisorServer>(new AdvisorServer(std::move(impl)));
}

}  // namespace qrm::cpu
