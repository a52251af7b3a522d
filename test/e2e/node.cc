// Starts the programs of one node and asks their sockets.
#include "test/e2e/node.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <grpcpp/grpcpp.h>

#include "api/base/errorf.h"
#include "api/proto/podresources/v1/api.grpc.pb.h"
#include "api/proto/qrm/v1/control.grpc.pb.h"
#include "test/support/await.h"

namespace qrm::test {
namespace {

constexpr std::chrono::seconds kCallTimeout{5};

/// A fresh connection, so that a restarted server is found at once.
template <typename Service>
std::unique_ptr<typename Service::Stub> Connect(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return Service::NewStub(
      grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
}

template <typename Stub, typename Request, typename Response>
StatusOr<Response> Ask(Stub& stub, const std::string& socket,
                       grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                    Response*),
                       const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallTimeout);
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) {
    return Errorf(static_cast<StatusCode>(status.error_code()), "cannot ask {}: {}", socket,
                  status.error_message());
  }
  return response;
}

/// One call on a connection of its own.
template <typename Service, typename Request, typename Response>
StatusOr<Response> Call(const std::string& socket,
                        grpc::Status (Service::Stub::*method)(grpc::ClientContext*, const Request&,
                                                              Response*),
                        const Request& request) {
  return Ask(*Connect<Service>(socket), socket, method, request);
}

}  // namespace

Node::Node(Options options) : options_(std::move(options)) {
  for (const char* directory : {"registration", "plugins", "state", "logs"}) {
    std::filesystem::create_directories(Path(directory));
  }
}

Node::~Node() = default;

Status Node::Launch() {
  std::vector<std::string> command = {options_.bin_dir + "/" + options_.daemon,
                                      "--simulate",
                                      "--config=" + options_.config,
                                      "--state-dir=" + Path("state/qrmd"),
                                      "--registration-dir=" + Path("registration"),
                                      "--plugins-registry-dir=" + Path("plugins"),
                                      "--pod-resources-socket=" + Path("pod-resources.sock"),
                                      "--control-socket=" + Path("control.sock"),
                                      "--nri-socket=" + options_.nri_socket,
                                      "--cri-socket=" + options_.cri_socket,
                                      "--builtin-plugins=" + options_.builtin_plugins,
                                      "--reconcile-period=" + options_.reconcile_period,
                                      "--metrics-address=" + options_.metrics_address,
                                      "--probe-address=" + options_.probe_address};
  command.insert(command.end(), options_.flags.begin(), options_.flags.end());
  QRM_ASSIGN_OR_RETURN(daemon_, Process::Start(command, Path("logs/qrmd.log")));
  return OkStatus();
}

Status Node::Start(std::size_t plugins) {
  QRM_RETURN_IF_ERROR(Launch());
  StatusOr<v1::GetStatusResponse> status;
  const bool attached = Await([&] {
    status = GetStatus();
    return !daemon_->Running() || (status.ok() && status->runtime().mode() == options_.mode);
  });
  if (!attached || !daemon_->Running()) {
    return Errorf(StatusCode::kUnavailable, "qrmd did not attach to the runtime: {}; it {}: {}",
                  status.ok() ? status->ShortDebugString() : MessageOf(status.status()),
                  daemon_->Running() ? "runs" : "has ended", daemon_->LastOutput());
  }
  return WaitForPlugins(plugins);
}

Status Node::WaitForPlugins(std::size_t count) {
  std::size_t live = 0;
  const bool all = Await([&] {
    live = 0;
    const StatusOr<std::vector<v1::Plugin>> known = ListPlugins();
    for (const v1::Plugin& plugin : known.value_or(std::vector<v1::Plugin>{})) {
      live += plugin.live() ? 1 : 0;
    }
    return live >= count || !daemon_->Running();
  });
  if (!all || live < count) {
    return Errorf(StatusCode::kUnavailable, "qrmd has {} plugins of {}: {}", live, count,
                  daemon_->LastOutput());
  }
  return OkStatus();
}

std::string Node::Metrics() const {
  boost::asio::ip::tcp::iostream stream("127.0.0.1", std::to_string(metrics_port()));
  stream << "GET /metrics HTTP/1.0\r\n\r\n" << std::flush;
  return {std::istreambuf_iterator<char>(stream), {}};
}

int Node::PortOf(std::string_view field) const {
  return NumberInLog(Path("logs/qrmd.log"), field);
}

bool Node::HasFollowedKubelet() const {
  std::ifstream log(Path("logs/qrmd.log"));
  for (std::string line; std::getline(log, line);) {
    if (line.find("\"following kubelet's Pods API\"") != std::string::npos) {
      return true;
    }
  }
  return false;
}

void Node::KillDaemon() {
  daemon_->Kill();
}

bool Node::IsLiveSince(const std::string& resource,
                       std::chrono::steady_clock::time_point begin) const {
  const StatusOr<std::vector<v1::Plugin>> known = ListPlugins();
  const std::chrono::duration<double> age = std::chrono::steady_clock::now() - begin;
  return known.ok() && std::any_of(known->begin(), known->end(), [&](const v1::Plugin& plugin) {
           return plugin.resource_name() == resource && plugin.live() &&
                  plugin.seconds_since_registration() < age.count();
         });
}

Status Node::StartPlugin(const std::string& name, const std::string& resource,
                         const std::string& config, RegisterBy by) {
  const bool by_socket = by == RegisterBy::kSocket;
  const std::string directory = Path(by_socket ? "registration" : "plugins");
  plugin_sockets_[resource] = directory + "/" + resource + ".sock";
  const auto begin = std::chrono::steady_clock::now();
  QRM_ASSIGN_OR_RETURN(
      plugins_[name],
      Process::Start({options_.bin_dir + "/qrm-plugin-" + name, "--config=" + config,
                      (by_socket ? "--registration-dir=" : "--plugins-registry-dir=") + directory,
                      "--state-dir=" + Path("state"), "--control-socket=" + Path("control.sock")},
                     Path("logs/" + name + ".log")));
  Process& process = *plugins_[name];
  if (!Await([&] { return !process.Running() || IsLiveSince(resource, begin); }) ||
      !process.Running()) {
    return Errorf(StatusCode::kUnavailable, "plugin {} did not register: {}", name,
                  process.LastOutput());
  }
  return OkStatus();
}

void Node::KillPlugin(const std::string& name) {
  plugins_.at(name)->Kill();
}

Status Node::Stop() {
  Status first;
  for (const auto& [name, plugin] : plugins_) {
    first.Update(plugin->Terminate());
  }
  plugins_.clear();
  if (daemon_ != nullptr) {
    first.Update(daemon_->Terminate());
    daemon_.reset();
  }
  return first;
}

Status Node::NotifyChanged(const std::string& resource) const {
  const std::string socket = Path("control.sock");
  v1::NotifyChangedRequest request;
  request.set_resource_name(resource);
  return Ask(*Connect<v1::Control>(socket), socket, &v1::Control::Stub::NotifyChanged, request)
      .status();
}

// Waits for the end of two runs: one may have begun before the request, and triggers during a run
// are served by the next.
Status Node::Reconcile() const {
  const std::string socket = Path("control.sock");
  const auto stub = Connect<v1::Control>(socket);  // qrmd bounds how many one process opens
  const auto get_status = [&] {
    return Ask(*stub, socket, &v1::Control::Stub::GetStatus, v1::GetStatusRequest());
  };
  QRM_ASSIGN_OR_RETURN(const v1::GetStatusResponse before, get_status());
  for (uint64_t ended = 1; ended <= 2; ++ended) {
    QRM_RETURN_IF_ERROR(
        Ask(*stub, socket, &v1::Control::Stub::NotifyChanged, v1::NotifyChangedRequest()).status());
    Status problem;
    const bool over = Await([&] {
      const StatusOr<v1::GetStatusResponse> now = get_status();
      problem = now.status();
      return !now.ok() || now->reconcile().runs() >= before.reconcile().runs() + ended;
    });
    if (!over || !problem.ok()) {
      return over ? problem
                  : Errorf(StatusCode::kDeadlineExceeded,
                           "no reconcile ended within 10 s; see qrmd's log for what it waits for");
    }
  }
  return OkStatus();
}

StatusOr<v1::GetStatusResponse> Node::GetStatus() const {
  return Call<v1::Control>(Path("control.sock"), &v1::Control::Stub::GetStatus,
                           v1::GetStatusRequest());
}

StatusOr<std::vector<v1::Plugin>> Node::ListPlugins() const {
  QRM_ASSIGN_OR_RETURN(const v1::ListPluginsResponse response,
                       Call<v1::Control>(Path("control.sock"), &v1::Control::Stub::ListPlugins,
                                         v1::ListPluginsRequest()));
  return std::vector<v1::Plugin>(response.plugins().begin(), response.plugins().end());
}

StatusOr<v1::ListPodsResponse> Node::ListPods() const {
  return Call<v1::Control>(Path("control.sock"), &v1::Control::Stub::ListPods,
                           v1::ListPodsRequest());
}

StatusOr<::v1::ListPodResourcesResponse> Node::ListPodResources() const {
  return Call<::v1::PodResourcesLister>(Path("pod-resources.sock"),
                                        &::v1::PodResourcesLister::Stub::List,
                                        ::v1::ListPodResourcesRequest());
}

StatusOr<::v1::AllocatableResourcesResponse> Node::GetAllocatableResources() const {
  return Call<::v1::PodResourcesLister>(Path("pod-resources.sock"),
                                        &::v1::PodResourcesLister::Stub::GetAllocatableResources,
                                        ::v1::AllocatableResourcesRequest());
}

StatusOr<v1::DryRunResponse> Node::DryRun(const std::string& pod) const {
  v1::DryRunRequest request;
  request.set_pod(pod);
  return Call<v1::Control>(Path("control.sock"), &v1::Control::Stub::DryRun, request);
}

StatusOr<std::string> Node::ExportState(const std::string& resource) const {
  QRM_ASSIGN_OR_RETURN(const v1::ExportStateResponse response,
                       Call<v1::PluginExtensions>(plugin_sockets_.at(resource),
                                                  &v1::PluginExtensions::Stub::ExportState,
                                                  v1::ExportStateRequest()));
  return response.json();
}

Status Node::SetPluginPools(const std::string& resource, const StringMap& cpus_by_pool) const {
  v1::SetPoolsRequest request;
  request.mutable_cpus_by_pool()->insert(cpus_by_pool.begin(), cpus_by_pool.end());
  return Call<v1::PluginExtensions>(plugin_sockets_.at(resource),
                                    &v1::PluginExtensions::Stub::SetPools, request)
      .status();
}

StatusOr<std::string> Node::Qrmctl(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), options_.bin_dir + "/qrmctl");
  arguments.push_back("--control-socket=" + Path("control.sock"));
  return RunCommand(arguments);
}

}  // namespace qrm::test
