// Handlers of the control API: read a snapshot and answer, or ask a plugin and answer when it does.
#include "manager/control/control_server.h"

#include <utility>

#include <unistd.h>

#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>

#include "api/base/clock.h"
#include "api/base/log.h"
#include "api/proto/qrm/v1/control.grpc.pb.h"
#include "manager/control/control_answers.h"
#include "manager/rpc/grpc_status.h"
#include "manager/rpc/unix_server.h"
#include "topology/describe.h"

namespace qrm::manager {
namespace {

constexpr char kDefaultPoolResource[] = "cpu";
constexpr mode_t kSocketMode = 0600;

UnixServerOptions ServerOptions(const ControlOptions& options) {
  UnixServerOptions server{.socket_mode = kSocketMode, .allowed_uids = options.allowed_uids};
  server.allowed_uids.push_back(0);
  server.allowed_uids.push_back(geteuid());
  return server;
}

/// Moves an answer into `response`, or its error into the status.
template <typename Response>
grpc::Status Deliver(StatusOr<Response> answer, Response& response) {
  if (!answer.ok()) {
    return ToGrpc(answer.status());
  }
  response = *std::move(answer);
  return grpc::Status::OK;
}

template <typename Response>
grpc::Status DeliverPools(const StatusOr<std::vector<PoolInfo>>& pools, Response& response) {
  if (!pools.ok()) {
    return ToGrpc(pools.status());
  }
  for (const PoolInfo& pool : *pools) {
    *response.add_pools() = PoolMessage(pool);
  }
  return grpc::Status::OK;
}

std::string PoolResource(const std::string& named) {
  return named.empty() ? kDefaultPoolResource : named;
}

/// What can be told without the plugin. Errors: kInvalidArgument.
Status CheckPools(const std::map<std::string, std::string>& cpus_by_pool) {
  if (cpus_by_pool.empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot set pools: none is named; give at least one as NAME=CPUS");
  }
  for (const auto& [name, cpus] : cpus_by_pool) {
    if (const auto parsed = CpuSet::Parse(cpus); !parsed.ok()) {
      return Annotate(parsed.status(), "cannot set pool " + name);
    }
  }
  return OkStatus();
}

}  // namespace

struct ControlServer::Impl final : public v1::Control::CallbackService {
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Impl(const Snapshots& state_snapshots, Plugins& registered, const Machine& node_machine,
       NodeServices& node_services, ControlOptions server_options)
      : snapshots(state_snapshots),
        plugins(registered),
        machine(node_machine),
        node(node_services),
        options(std::move(server_options)),
        server(ServerOptions(options)) {}

  static Reactor* Finish(Context* context, const grpc::Status& status) {
    Reactor* reactor = context->DefaultReactor();
    reactor->Finish(status);
    return reactor;
  }

  Reactor* GetStatus(Context* context, const v1::GetStatusRequest*,
                     v1::GetStatusResponse* response) override {
    *response = StatusAnswer(node.Status(), *snapshots.Load(), std::chrono::steady_clock::now());
    return Finish(context, grpc::Status::OK);
  }

  Reactor* ListPlugins(Context* context, const v1::ListPluginsRequest*,
                       v1::ListPluginsResponse* response) override {
    *response = PluginsAnswer(plugins.List(), std::chrono::steady_clock::now());
    return Finish(context, grpc::Status::OK);
  }

  Reactor* ListPods(Context* context, const v1::ListPodsRequest* request,
                    v1::ListPodsResponse* response) override {
    auto answer = PodsAnswer(*snapshots.Load(), request->pod(),
                             [this](const ContainerKey& key) { return node.RuntimeIdOf(key); });
    return Finish(context, Deliver(std::move(answer), *response));
  }

  Reactor* GetTopology(Context* context, const v1::GetTopologyRequest*,
                       v1::GetTopologyResponse* response) override {
    response->set_json(
        MachineToJson(machine).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    response->set_text(DescribeMachine(machine));
    for (v1::NodeUse& use : NodeUses(*snapshots.Load(), machine)) {
      *response->add_use() = std::move(use);
    }
    return Finish(context, grpc::Status::OK);
  }

  Reactor* Explain(Context* context, const v1::ExplainRequest* request,
                   v1::ExplainResponse* response) override {
    auto answer = ExplainAnswer(
        *snapshots.Load(), request->pod(),
        [this](const ContainerKey& key, auto decided) { return node.TimesOf(key, decided); });
    return Finish(context, Deliver(std::move(answer), *response));
  }

  Reactor* DryRun(Context* context, const v1::DryRunRequest* request,
                  v1::DryRunResponse* response) override {
    Reactor* reactor = context->DefaultReactor();
    node.TryPod(request->pod(), [reactor, response](const StatusOr<DryRunReport>& report) {
      if (report.ok()) {
        *response = DryRunAnswer(*report);
      }
      reactor->Finish(ToGrpc(report.status()));
    });
    return reactor;
  }

  Reactor* GetPools(Context* context, const v1::GetPoolsRequest* request,
                    v1::GetPoolsResponse* response) override {
    Reactor* reactor = context->DefaultReactor();
    plugins.GetPools(PoolResource(request->resource_name()), DeadlineAfter(options.plugin_timeout),
                     [reactor, response](const StatusOr<std::vector<PoolInfo>>& pools) {
                       reactor->Finish(DeliverPools(pools, *response));
                     });
    return reactor;
  }

  Reactor* SetPools(Context* context, const v1::SetPoolsRequest* request,
                    v1::SetPoolsResponse* response) override {
    const std::map<std::string, std::string> cpus_by_pool(request->cpus_by_pool().begin(),
                                                          request->cpus_by_pool().end());
    if (const Status checked = CheckPools(cpus_by_pool); !checked.ok()) {
      return Finish(context, ToGrpc(checked));
    }
    Reactor* reactor = context->DefaultReactor();
    const std::string resource = PoolResource(request->resource_name());
    plugins.SetPools(resource, cpus_by_pool, DeadlineAfter(options.plugin_timeout),
                     [this, reactor, response, resource,
                      count = cpus_by_pool.size()](const StatusOr<std::vector<PoolInfo>>& pools) {
                       if (pools.ok()) {
                         log::Info("pools changed", {{"resource", resource}, {"pools", count}});
                         node.ReconcileSoon(resource);
                       }
                       reactor->Finish(DeliverPools(pools, *response));
                     });
    return reactor;
  }

  Reactor* NotifyChanged(Context* context, const v1::NotifyChangedRequest* request,
                         v1::NotifyChangedResponse*) override {
    node.ReconcileSoon(request->resource_name());
    return Finish(context, grpc::Status::OK);
  }

  const Snapshots& snapshots;
  Plugins& plugins;
  const Machine& machine;
  NodeServices& node;
  const ControlOptions options;
  UnixServer server;
};

ControlServer::ControlServer(const Snapshots& snapshots, Plugins& plugins, const Machine& machine,
                             NodeServices& node, ControlOptions options)
    : impl_(std::make_unique<Impl>(snapshots, plugins, machine, node, std::move(options))) {}

ControlServer::~ControlServer() = default;

Status ControlServer::Start(const std::string& socket_path) {
  return impl_->server.Start(socket_path, {impl_.get()});
}

void ControlServer::Stop() {
  impl_->server.Stop();
}

}  // namespace qrm::manager
