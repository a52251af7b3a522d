// Implements the control API's handlers. They answer from a snapshot, or after the answer of a
// plugin or a dry run.
#include "manager/control/control_server.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <unistd.h>

#include <grpcpp/grpcpp.h>

#include "api/base/clock.h"
#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/base/log_settings.h"
#include "api/proto/qrm/v1/classes.grpc.pb.h"
#include "api/proto/qrm/v1/control.grpc.pb.h"
#include "api/proto/qrm/v1/permissions.grpc.pb.h"
#include "api/proto/qrm/v1/policy.grpc.pb.h"
#include "api/rpc/grpc_status.h"
#include "manager/control/control_answers.h"
#include "manager/control/pool_change.h"
#include "manager/observability/config_trial.h"
#include "manager/observability/node_services.h"
#include "manager/registry/plugins.h"
#include "manager/rpc/counted_call.h"
#include "manager/rpc/unix_server.h"
#include "manager/state/state_loop.h"
#include "topology/machine.h"

namespace qrm::manager {
namespace {

constexpr char kDefaultPoolResource[] = "cpu";
constexpr mode_t kOwnersSocket = 0600;
/// With control-uids, all users can connect; qrmd then checks the kernel's peer credentials.
constexpr mode_t kUsersSocket = 0666;
constexpr mode_t kUsersDirectory = 0711;
/// A configuration to try has up to kMostConfigBytes.
constexpr int kMaxRequestBytes = 2 * kMostConfigBytes;

UnixServerOptions ServerOptions(const ControlOptions& options) {
  UnixServerOptions server{.socket_mode = kOwnersSocket,
                           .allowed_uids = options.allowed_uids,
                           .max_request_bytes = kMaxRequestBytes};
  if (!options.allowed_uids.empty()) {
    server.socket_mode = kUsersSocket;
    server.directory_mode = kUsersDirectory;
  }
  server.allowed_uids.push_back(0);
  server.allowed_uids.push_back(geteuid());
  return server;
}

SteadyTime Now() {
  return std::chrono::steady_clock::now();
}

std::string PoolResource(const std::string& named) {
  return named.empty() ? kDefaultPoolResource : named;
}

/// Logs a warning for each directory above `socket` that other users cannot enter. qrmd does not
/// change the modes of directories that it did not create.
void WarnOfClosedDirectory(const std::string& socket) {
  namespace fs = std::filesystem;
  for (fs::path at = fs::path(socket).parent_path(); at != at.root_path(); at = at.parent_path()) {
    std::error_code error;
    const fs::perms perms = fs::status(at, error).permissions();
    if (!error && (perms & fs::perms::others_exec) == fs::perms::none) {
      log::Warning("users of control-uids cannot reach the control socket; run chmod o+x",
                   {{"directory", at.string()}, {"socket", socket}});
    }
  }
}

/// Checks what needs no plugin. Errors: kInvalidArgument.
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

std::string WhoIs(const std::optional<PeerCredentials>& peer) {
  return peer.has_value() ? fmt::format("uid {}, pid {}", peer->uid, peer->pid)
                          : "a disconnected client";
}

/// Sets the level, unless `to` is empty, and returns the former one. Errors: kInvalidArgument.
StatusOr<v1::SetLogLevelResponse> ChangeLogLevel(const std::string& to, const std::string& by) {
  const log::Level former = log::CurrentLevel();
  log::Level level = former;
  if (!to.empty()) {
    QRM_ASSIGN_OR_RETURN(level, log::ParseLevel(to));
    log::SetLevel(std::min({former, level, log::Level::kInfo}));  // so that the next line is logged
    log::Info("log level set",
              {{"from", log::ToString(former)}, {"to", log::ToString(level)}, {"by", by}});
    log::SetLevel(level);
  }
  v1::SetLogLevelResponse response;
  response.set_former_level(std::string(log::ToString(former)));
  response.set_level(std::string(log::ToString(level)));
  return response;
}

using Context = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;

/// OK if this release knows all of `request`: to ignore a field would be to answer another
/// question. Errors: kUnimplemented.
Status CheckKnown(const google::protobuf::Message& request) {
  const auto& unknown = request.GetReflection()->GetUnknownFields(request);
  if (unknown.empty()) {
    return OkStatus();
  }
  return Errorf(
      StatusCode::kUnimplemented,
      "cannot answer as qrmd {}: it does not know field {} of {}; upgrade qrmd, or use the "
      "qrmctl of its version",
      QRM_VERSION, unknown.field(0).number(), request.GetDescriptor()->name());
}

/// Answers one call, once, with its response or an error.
template <typename Response>
struct Reply {
  Reply(Context* context, const google::protobuf::Message* request, Response* filled)
      : known(CheckKnown(*request)),
        call(CountedCall::Begin(*context)),
        reactor(call.reactor()),
        response(filled) {}

  Reactor* operator()(StatusOr<Response> answer) const {
    const Status status = answer.status();
    if (status.ok()) {
      *response = *std::move(answer);
    }
    Reactor* const answered = reactor;  // Answer may destroy the call
    call.Answer(rpc::ToGrpc(status), MessageAnswer(*response));
    return answered;
  }

  template <typename Made>
  struct Maker final : CountedCall::Maker {
    Maker(const Reply& to, Made made) : reply(to), answer(std::move(made)) {}
    void Make() override { reply(answer()); }

    const Reply reply;
    const Made answer;
  };

  /// Answers with the result of `make` once the answers that clients have not read leave room.
  template <typename Make>
  Reactor* WhenRoom(Make make) const {
    if (!known.ok()) {
      return (*this)(known);
    }
    Reactor* const answered = reactor;
    call.WhenRoom(std::make_shared<Maker<Make>>(*this, std::move(make)));
    return answered;
  }

  /// Begins with `start(reply)` what answers by `reply` later.
  template <typename Start>
  Reactor* Later(const Start& start) const {
    if (!known.ok()) {
      return (*this)(known);
    }
    Reactor* const answered = reactor;
    start(*this);
    return answered;
  }

  /// Answers with `to_answer(*result)`, or with the error.
  template <typename Result, typename ToAnswer>
  void With(const StatusOr<Result>& result, const ToAnswer& to_answer) const {
    (*this)(result.ok() ? StatusOr<Response>(to_answer(*result)) : result.status());
  }

  const Status known;
  CountedCall& call;
  Reactor* const reactor;
  Response* const response;
};

class PermissionsService final : public v1::Permissions::CallbackService {
 public:
  /// `node` outlives the service.
  explicit PermissionsService(const NodeServices& node) : node_(node) {}

  Reactor* GetPermissions(Context* context, const v1::GetPermissionsRequest* request,
                          v1::GetPermissionsResponse* response) override {
    return Reply(context, request, response).WhenRoom([this, request] {
      return PermissionsAnswer(node_.GetPermissions(), request->namespace_());
    });
  }

 private:
  const NodeServices& node_;
};

/// Checks that `peer` may try a configuration. Only users that can write the file may.
Status CheckConfigures(const std::optional<PeerCredentials>& peer) {
  if (peer.has_value() && (peer->uid == 0 || peer->uid == geteuid())) {
    return OkStatus();
  }
  return Errorf(StatusCode::kPermissionDenied,
                "cannot try a configuration for {}: only root and qrmd's own user may; run qrmctl "
                "as root",
                WhoIs(peer));
}

class PolicyService final : public v1::Policy::CallbackService {
 public:
  /// Both outlive the service.
  PolicyService(NodeServices& node, const UnixServer& server) : node_(node), server_(server) {}

  Reactor* GetPolicy(Context* context, const v1::GetPolicyRequest* request,
                     v1::GetPolicyResponse* response) override {
    return Reply(context, request, response).WhenRoom([this] {
      return PolicyAnswer(node_.Policies());
    });
  }

  Reactor* TryConfiguration(Context* context, const v1::TryConfigurationRequest* request,
                            v1::TryConfigurationResponse* response) override {
    const Status may = CheckConfigures(server_.FindPeer(context->peer()));
    return Reply(context, request, response).Later([&](const auto& reply) {
      if (!may.ok()) {
        reply(may);
        return;
      }
      node_.TryConfig(request->text(), request->name(),
                      [reply](const auto& trial) { reply.With(trial, TrialAnswer); });
    });
  }

 private:
  NodeServices& node_;
  const UnixServer& server_;
};

class ClassesService final : public v1::Classes::CallbackService {
 public:
  /// Both outlive the service.
  ClassesService(NodeServices& node, const UnixServer& server) : node_(node), server_(server) {}

  Reactor* ListClasses(Context* context, const v1::ListClassesRequest* request,
                       v1::ListClassesResponse* response) override {
    return Reply(context, request, response).WhenRoom([this] {
      return ClassesAnswer(node_.Classes());
    });
  }

  Reactor* SetClass(Context* context, const v1::SetClassRequest* request,
                    v1::SetClassResponse* response) override {
    const auto to_answer = [](const std::string& former) {
      v1::SetClassResponse answer;
      answer.set_former_class(former);
      return answer;
    };
    return Reply(context, request, response).Later([&](const auto& reply) {
      node_.SetClass({.pod = request->pod(),
                      .container = request->container(),
                      .type = request->type(),
                      .name = request->class_(),
                      .by = WhoIs(server_.FindPeer(context->peer()))},
                     [reply, to_answer](const auto& former) { reply.With(former, to_answer); });
    });
  }

 private:
  NodeServices& node_;
  const UnixServer& server_;
};

}  // namespace

struct ControlServer::Impl final : public v1::Control::CallbackService {
  Impl(const Snapshots& state_snapshots, Plugins& registered, const Machine& node_machine,
       NodeServices& node_services, ControlOptions server_options)
      : snapshots(state_snapshots),
        plugins(registered),
        machine(node_machine),
        node(node_services),
        permissions(node),
        policy(node, server),
        classes(node, server),
        options(std::move(server_options)),
        server(ServerOptions(options)) {}

  Reactor* GetStatus(Context* context, const v1::GetStatusRequest* request,
                     v1::GetStatusResponse* response) override {
    return Reply(context, request, response).WhenRoom([this] {
      return StatusAnswer(node.Status(), *snapshots.Load(), Now());
    });
  }

  Reactor* ListPlugins(Context* context, const v1::ListPluginsRequest* request,
                       v1::ListPluginsResponse* response) override {
    return Reply(context, request, response).WhenRoom([this] {
      return PluginsAnswer(plugins.List(), node.Status().requests, Now());
    });
  }

  Reactor* ForgetPlugin(Context* context, const v1::ForgetPluginRequest* request,
                        v1::ForgetPluginResponse* response) override {
    const Forget how = request->apply() ? Forget::kApply : Forget::kOnlyTell;
    return Reply(context, request, response).Later([&](const auto& reply) {
      node.ForgetPlugin(request->resource_name(), how,
                        [reply](const auto& records) { reply.With(records, ForgetAnswer); });
    });
  }

  Reactor* ListPods(Context* context, const v1::ListPodsRequest* request,
                    v1::ListPodsResponse* response) override {
    return Reply(context, request, response).WhenRoom([this, request] {
      MoreOfPods more;
      if (request->unpinned()) {
        more.unplaced = node.Unplaced();
      }
      if (request->since()) {
        more.decisions = node.Decisions();
      }
      return PodsAnswer(
          *snapshots.Load(), request->pod(),
          [this](const ContainerKey& key) { return node.RuntimeIdOf(key); },
          [this](const auto& pod, const std::string& name) { return node.RemarksOf(pod, name); },
          more);
    });
  }

  Reactor* GetTopology(Context* context, const v1::GetTopologyRequest* request,
                       v1::GetTopologyResponse* response) override {
    return Reply(context, request, response).WhenRoom([this] {
      return TopologyAnswer(*snapshots.Load(), machine);
    });
  }

  Reactor* Explain(Context* context, const v1::ExplainRequest* request,
                   v1::ExplainResponse* response) override {
    return Reply(context, request, response).WhenRoom([this, request] {
      return ExplainAnswer(*snapshots.Load(), node.Decisions(), request->pod(),
                           [this](const ContainerKey& key) { return node.LastUpdateOf(key); });
    });
  }

  Reactor* ListRefusals(Context* context, const v1::ListRefusalsRequest* request,
                        v1::ListRefusalsResponse* response) override {
    const std::chrono::system_clock::time_point since(
        std::chrono::milliseconds(request->since_unix_millis()));
    return Reply(context, request, response).WhenRoom([this, since] {
      return RefusalsAnswer(node.Decisions(), since);
    });
  }

  Reactor* ListEvents(Context* context, const v1::ListEventsRequest* request,
                      v1::ListEventsResponse* response) override {
    const std::chrono::system_clock::time_point since(
        std::chrono::milliseconds(request->since_unix_millis()));
    return Reply(context, request, response).WhenRoom([this, since] {
      return EventsAnswer(node.Events(), since);
    });
  }

  Reactor* SetLogLevel(Context* context, const v1::SetLogLevelRequest* request,
                       v1::SetLogLevelResponse* response) override {
    const Reply reply(context, request, response);
    return reply(reply.known.ok()
                     ? ChangeLogLevel(request->level(), WhoIs(server.FindPeer(context->peer())))
                     : reply.known);
  }

  Reactor* AnnouncePod(Context* context, const v1::AnnouncePodRequest* request,
                       v1::AnnouncePodResponse* response) override {
    const Reply reply(context, request, response);
    if (!reply.known.ok()) {
      return reply(reply.known);
    }
    const StatusOr<std::string> pod = node.AnnouncePod(request->pod());
    if (!pod.ok()) {
      return reply(pod.status());
    }
    log::Info("pod announced", {{"pod", *pod}, {"by", WhoIs(server.FindPeer(context->peer()))}});
    return reply(v1::AnnouncePodResponse());
  }

  Reactor* DryRun(Context* context, const v1::DryRunRequest* request,
                  v1::DryRunResponse* response) override {
    return Reply(context, request, response).Later([&](const auto& reply) {
      node.TryPod(request->pod(), [reply](const StatusOr<DryRunReport>& report) {
        reply.With(report, DryRunAnswer);
      });
    });
  }

  Reactor* GetPools(Context* context, const v1::GetPoolsRequest* request,
                    v1::GetPoolsResponse* response) override {
    const std::string resource = PoolResource(request->resource_name());
    return Reply(context, request, response).Later([&](const auto& reply) {
      plugins.Ask<calls::GetPools>(
          resource, resource, DeadlineAfter(options.plugin_timeout),
          [this, reply, resource](const auto& pools) {
            reply(PoolsAnswer<v1::GetPoolsResponse>(pools, resource, node.Status().pools));
          });
    });
  }

  Reactor* SetPools(Context* context, const v1::SetPoolsRequest* request,
                    v1::SetPoolsResponse* response) override {
    const Reply reply(context, request, response);
    if (!reply.known.ok()) {
      return reply(reply.known);
    }
    const calls::SetPools::Request change{
        .resource = PoolResource(request->resource_name()),
        .cpus_by_pool = {request->cpus_by_pool().begin(), request->cpus_by_pool().end()}};
    if (const Status checked = CheckPools(change.cpus_by_pool); !checked.ok()) {
      return reply(checked);
    }
    const PoolChange from_client{.to = change,
                                 .deadline = DeadlineAfter(options.plugin_timeout),
                                 .by = WhoIs(server.FindPeer(context->peer()))};
    ChangePools(plugins, node, from_client,
                [this, reply, resource = change.resource](const auto& pools) {
                  if (pools.ok()) {
                    node.ReconcileSoon(resource);
                  }
                  reply(PoolsAnswer<v1::SetPoolsResponse>(pools, resource, node.Status().pools));
                });
    return reply.reactor;
  }

  Reactor* NotifyChanged(Context* context, const v1::NotifyChangedRequest* request,
                         v1::NotifyChangedResponse* response) override {
    node.ReconcileSoon(request->resource_name());
    return Reply(context, request, response)(v1::NotifyChangedResponse());
  }

  const Snapshots& snapshots;
  Plugins& plugins;
  const Machine& machine;
  NodeServices& node;
  PermissionsService permissions;
  PolicyService policy;
  ClassesService classes;
  const ControlOptions options;
  UnixServer server;
};

ControlServer::ControlServer(const Snapshots& snapshots, Plugins& plugins, const Machine& machine,
                             NodeServices& node, ControlOptions options)
    : impl_(std::make_unique<Impl>(snapshots, plugins, machine, node, std::move(options))) {}

ControlServer::~ControlServer() = default;

Status ControlServer::Start(const std::string& socket_path) {
  QRM_RETURN_IF_ERROR(impl_->server.Start(
      socket_path, {impl_.get(), &impl_->permissions, &impl_->policy, &impl_->classes}));
  if (!impl_->options.allowed_uids.empty()) {
    WarnOfClosedDirectory(socket_path);
  }
  return OkStatus();
}

void ControlServer::Stop() {
  impl_->server.Stop();
}

}  // namespace qrm::manager
